"""Numbers that judges gave to systems: means with intervals, and z-scores by judge."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import t

CONFIDENCE = 0.95
"""Of every interval."""
NUM_DRAWS, SEED = 1000, 12345
"""Of the segments, for intervals by bootstrap."""
Unit: TypeAlias = tuple[str, str]
"""A segment and what was judged there: a system, or a pair of systems."""


@dataclass(frozen=True)
class Judgment:
    """One number that a judge gave to what a system made of a segment, or to a pair of systems there."""

    judge: str
    segment: str
    system: str
    value: float


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval over draws of the segments; None where it is not defined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Mean:
    """A mean over segments with its interval, which one segment alone does not give."""

    value: float
    low: float | None
    high: float | None
    num_segments: int


def drawn_segments(num_segments: int, num_draws: int) -> npt.NDArray[np.int64]:
    """How often each of some segments comes up (num_draws, num_segments) in bootstrap draws of as many (Efron 1979)."""
    random = np.random.default_rng(SEED)
    return random.multinomial(num_segments, np.full(num_segments, 1 / num_segments), size=num_draws)


def estimate(
    value: float | None,
    units: Sequence[Unit],
    of_draws: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]],
    num_draws: int = NUM_DRAWS,
) -> Estimate:
    """A figure of units with the 2.5th and 97.5th percentile of it over bootstrap draws of whole segments.

    of_draws: the figure (D,) of draws that hold each unit as often as an array (D, units) says; nan: not defined, left
    out. No interval of one segment.
    """
    segments = list(dict.fromkeys(segment for segment, _ in units))
    if value is None or len(segments) < 2:
        return Estimate(value)
    place = {segment: i for i, segment in enumerate(segments)}
    counts = drawn_segments(len(segments), num_draws)[:, [place[segment] for segment, _ in units]]
    again = of_draws(counts.astype(np.float64))
    again = again[~np.isnan(again)]
    if not again.size:
        return Estimate(value)
    low, high = np.percentile(again, (2.5, 97.5))
    return Estimate(value, float(low), float(high))


def by_segment(judgments: Iterable[Judgment]) -> dict[str, dict[str, float]]:
    """For each system, in order of first appearance, the mean over the judges of each segment."""
    given: dict[str, dict[str, list[float]]] = {}
    for each in judgments:
        given.setdefault(each.system, {}).setdefault(each.segment, []).append(each.value)
    return {
        system: {segment: math.fsum(values) / len(values) for segment, values in segments.items()}
        for system, segments in given.items()
    }


def mean_of(values: Sequence[float]) -> Mean:
    """The mean of one value a segment, and Student's t interval: mean ± t(n − 1) s / √n.

    It is about other segments, judged by the same judges; values of few segments should not be far from normal.
    """
    num = len(values)
    mean = math.fsum(values) / num
    if num < 2:
        return Mean(mean, None, None, num)
    half = float(t.ppf((1 + CONFIDENCE) / 2, num - 1)) * float(np.std(values, ddof=1)) / math.sqrt(num)
    return Mean(mean, mean - half, mean + half, num)


def means(judgments: Iterable[Judgment]) -> dict[str, Mean]:
    """The mean of each system over its segments, each segment by the mean of its judges."""
    return {system: mean_of(list(segments.values())) for system, segments in by_segment(judgments).items()}


def z_scores(judgments: Sequence[Judgment]) -> tuple[list[Judgment], list[str]]:
    """The ratings as (value − mean of the judge) / standard deviation of the judge, and the judges who have none.

    A judge who gave one value only has no deviation: their ratings are left out.
    """
    given: dict[str, list[float]] = {}
    for each in judgments:
        given.setdefault(each.judge, []).append(each.value)
    scale = {
        judge: (math.fsum(values) / len(values), float(np.std(values, ddof=1)))
        for judge, values in given.items()
        if len(set(values)) > 1
    }
    scores = []
    for each in judgments:
        if each.judge in scale:
            mean, deviation = scale[each.judge]
            scores.append(replace(each, value=(each.value - mean) / deviation))
    return scores, [judge for judge in given if judge not in scale]
