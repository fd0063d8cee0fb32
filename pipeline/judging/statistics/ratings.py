"""Numbers that judges gave to systems: means with intervals, and z-scores by judge."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, t

from tfm.pipeline.judging.statistics.minimums import (
    MIN_SEGMENTS,
    UNDEFINED_REASON,
    no_mean_interval_problem,
    too_few_differences_problem,
    too_few_segments_problem,
)
from tfm.pipeline.significance.intervals import IDENTICAL_DRAWS_REASON

CONFIDENCE_LEVEL = 0.95
"""Confidence level of every interval."""
NUM_DRAWS, SEED = 1000, 12345
"""Number of resamples of the segments, for bootstrap intervals."""
ROUNDING_TOLERANCE = 1e-12
"""Relative: what varies by less does not vary."""
JudgedUnit: TypeAlias = tuple[str, str]
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
    """A figure with its 95 % interval over resamples of the segments; each is None if it is not defined."""

    value: float | None
    low: float | None = None
    high: float | None = None
    no_interval_reason: str | None = None


@dataclass(frozen=True)
class MeanRating:
    """A mean over segments with its interval, which few segments, or equal ones, do not give."""

    value: float
    low: float | None
    high: float | None
    num_segments: int
    no_interval_reason: str | None = None


def bootstrap_counts(num_segments: int, num_draws: int) -> npt.NDArray[np.int64]:
    """How often each of some segments comes up (num_draws, num_segments) in bootstrap draws of as many (Efron 1979)."""
    random = np.random.default_rng(SEED)
    return random.multinomial(num_segments, np.full(num_segments, 1 / num_segments), size=num_draws)


def estimate_interval(
    value: float | None,
    units: Sequence[JudgedUnit],
    bootstrap_statistic: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]],
    difference_flags: Mapping[str, Sequence[Sequence[bool]]],
    num_draws: int = NUM_DRAWS,
) -> Estimate:
    """A figure of units with the `expanded_interval_percentiles` of it over bootstrap draws of whole segments.

    bootstrap_statistic: the figure (D,) of draws that hold each unit as often as an array (D, units) says; nan: not
    defined, left out. difference_flags: by reason, which units differ, each time one flag a unit. No interval of fewer
    than MIN_SEGMENTS, nor where fewer than MIN_DIFFERENCES differ, or all draws give the same.
    """
    segments = list(dict.fromkeys(segment for segment, _ in units))
    problem = UNDEFINED_REASON if value is None else too_few_segments_problem(len(segments), MIN_SEGMENTS)
    for reason, flags in ((reason, flags) for reason, several in difference_flags.items() for flags in several):
        num_apart = len({segment for (segment, _), flag in zip(units, flags, strict=True) if flag})
        problem = problem or too_few_differences_problem(num_apart, reason)
    if problem:
        return Estimate(value, no_interval_reason=problem)
    positions = {segment: i for i, segment in enumerate(segments)}
    counts = bootstrap_counts(len(segments), num_draws)[:, [positions[segment] for segment, _ in units]]
    bootstrap_values = bootstrap_statistic(counts.astype(np.float64))
    bootstrap_values = bootstrap_values[~np.isnan(bootstrap_values)]
    if not bootstrap_values.size or np.ptp(bootstrap_values) <= ROUNDING_TOLERANCE * np.abs(bootstrap_values).max():
        return Estimate(value, no_interval_reason=IDENTICAL_DRAWS_REASON)
    low, high = np.percentile(bootstrap_values, expanded_interval_percentiles(len(segments)))
    return Estimate(value, float(low), float(high))


def expanded_interval_percentiles(num_segments: int) -> tuple[float, float]:
    """Between which bootstrap figures are 95 % of those of other texts: 2.5 and 97.5 of many segments, wider of few.

    With n segments 100 Φ(− √(n / (n − 1)) t(n − 1)), so that the interval of a mean is about Student's: the expanded
    percentiles of Hesterberg 2015, "What Teachers Should Know About the Bootstrap".
    """
    quantile = math.sqrt(num_segments / (num_segments - 1)) * float(t.ppf((1 + CONFIDENCE_LEVEL) / 2, num_segments - 1))
    return 100 * float(norm.cdf(-quantile)), 100 * float(norm.cdf(quantile))


def segment_means(judgments: Iterable[Judgment]) -> dict[str, dict[str, float]]:
    """For each system, in order of first appearance, the mean over the judges of each segment."""
    values_by_system: dict[str, dict[str, list[float]]] = {}
    for judgment in judgments:
        values_by_system.setdefault(judgment.system, {}).setdefault(judgment.segment, []).append(judgment.value)
    return {
        system: {segment: math.fsum(values) / len(values) for segment, values in segments.items()}
        for system, segments in values_by_system.items()
    }


def estimate_mean(values: Sequence[float], min_segments: int = MIN_SEGMENTS) -> MeanRating:
    """The mean of one value a segment; from `min_segments` segments on, Student's t interval: mean ± t(n − 1) s / √n.

    It is about other segments, judged by the same judges. None if fewer than MIN_DIFFERENCES segments differ from
    the commonest value.
    """
    num = len(values)
    mean = math.fsum(values) / num
    problem = no_mean_interval_problem(values, min_segments)
    if problem:
        return MeanRating(mean, None, None, num, problem)
    half = float(t.ppf((1 + CONFIDENCE_LEVEL) / 2, num - 1)) * float(np.std(values, ddof=1)) / math.sqrt(num)
    return MeanRating(mean, mean - half, mean + half, num)


def values_vary(values: Sequence[float]) -> bool:
    """Whether values differ by more than what is lost in rounding."""
    return max(values) - min(values) > ROUNDING_TOLERANCE * max(map(abs, values))


def mean_ratings(judgments: Iterable[Judgment], min_segments: int = MIN_SEGMENTS) -> dict[str, MeanRating]:
    """The mean of each system over its segments, each by its judges' mean; intervals of `estimate_mean`."""
    return {
        system: estimate_mean(list(segments.values()), min_segments)
        for system, segments in segment_means(judgments).items()
    }


def z_scores(judgments: Sequence[Judgment]) -> tuple[list[Judgment], list[str]]:
    """The ratings as (value − mean of the judge) / standard deviation of the judge, and the judges who have none.

    A judge who gave one value only has no deviation: their ratings are left out.
    """
    values_by_judge: dict[str, list[float]] = {}
    for judgment in judgments:
        values_by_judge.setdefault(judgment.judge, []).append(judgment.value)
    scale = {
        judge: (math.fsum(values) / len(values), float(np.std(values, ddof=1)))
        for judge, values in values_by_judge.items()
        if values_vary(values)
    }
    scores = []
    for judgment in judgments:
        if judgment.judge in scale:
            mean, deviation = scale[judgment.judge]
            scores.append(replace(judgment, value=(judgment.value - mean) / deviation))
    return scores, [judge for judge in values_by_judge if judge not in scale]
