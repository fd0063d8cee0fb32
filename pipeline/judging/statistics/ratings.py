"""Numbers that judges gave to systems: means with intervals, and z-scores by judge."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import t

CONFIDENCE = 0.95
"""Of every interval."""
NUM_DRAWS, SEED = 1000, 12345
"""Of the segments, for intervals by bootstrap."""


@dataclass(frozen=True)
class Judgment:
    """One number that a judge gave to what a system made of a segment, or to a pair of systems there."""

    judge: str
    segment: str
    system: str
    value: float


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
