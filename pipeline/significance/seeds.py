"""Tests whether a recipe is better than another, where each was trained with several seeds.

A test over segments asks whether two models differ. Two models of one recipe often do, so that it says "better" of a
recipe and itself (Clark et al. 2011; Dror et al. 2018 list the tests). Here seeds and segments vary together, and a
score is a mean over segments,

    x_rsi = mu_r + alpha_rs + delta_ri + epsilon_rsi    recipe r, seed s, segment i

and a difference of means varies by seeds (alpha), by segments that suit one recipe (delta), and by both (epsilon).
A metric that is no mean is made one by the jackknife: the pseudo-value of segment i is n f(all) - (n - 1) f(all but i)
(Tukey 1958).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tfm.data.errors import DataError
from tfm.pipeline.significance.holm import SIGNIFICANCE_LEVEL, holm_correction
from tfm.pipeline.significance.segment_statistics import Array, SegmentStatistics

MIN_SEGMENTS = 20
"""Fewest segments of a test over seeds: of 10 it calls recipes that are the same different in up to 8 of 100 cases."""
SEVERAL_SEEDS_REASON = "of the mean of several seeds it would hold too little where seeds and segments matter"
_ROUNDING_TOLERANCE = 1e-12


@dataclass(frozen=True)
class SeedDifference:
    """A recipe's mean score less the baseline's.

    Args:
        difference: the difference.
        low: the lower end of its 95 % interval over seeds and segments.
        high: the upper end.
        p: of a two-sided t-test.
        p_holm: p after Holm's correction over all recipes given.
        degrees_of_freedom: of the t-test.
        share_of_seeds: of the variance, in 0..1.
        better: whether the recipe is better; None if neither is.
        no_interval_reason: why there is no interval.
    """

    difference: float
    low: float | None
    high: float | None
    p: float
    p_holm: float
    degrees_of_freedom: float
    share_of_seeds: float
    better: bool | None
    no_interval_reason: str | None = None

    @property
    def is_significant(self) -> bool:
        """Whether the difference is significant at 5 % after correction."""
        return self.p_holm < SIGNIFICANCE_LEVEL


@dataclass(frozen=True)
class RecipeResult:
    """A recipe's score by one metric over its seeds.

    Args:
        values: of each seed.
        mean: of the values.
        deviation: their standard deviation (n - 1); None of one seed.
        low: the lower end of the 95 % interval of one seed over segments; None if there is a no_interval_reason: of
            several seeds it holds the mean in as few as 90 of 100 cases.
        high: the upper end.
        versus: the test against the baseline; None of the baseline, where the recipe or the baseline has one seed,
            which says nothing of how much seeds matter, and of fewer than MIN_SEGMENTS.
        no_interval_reason: why there is no interval.
    """

    values: tuple[float, ...]
    mean: float
    deviation: float | None
    low: float | None
    high: float | None
    versus: SeedDifference | None = None
    no_interval_reason: str | None = None


def compare_recipes(recipes: Sequence[Sequence[SegmentStatistics]]) -> list[RecipeResult]:
    """Score recipes, each a sequence of seeds, and test each against the first, the baseline.

    All recipes here are one family for Holm's correction, as in `compare_systems`. Seeds are taken to matter as much to
    both recipes. If they matter twice as much to one of two that are the same, the test says "different" in 6 of 100
    cases with 3 seeds each, but in 10 with 3 of that one beside 5, and in 14 with 2 beside 5: give both as many. Two
    seeds each find only large differences. Raises DataError if the numbers of segments differ, or are less than 2.
    """
    lengths = sorted({len(run) for runs in recipes for run in runs})
    if len(lengths) != 1 or lengths[0] < 2:
        raise DataError(f"runs of {' and '.join(map(str, lengths))} segments: compare them on the same ones, 2 or more")
    with np.errstate(invalid="ignore"):  # infinite perplexities
        pseudo = [np.stack([pseudo_values(run) for run in runs]) for runs in recipes]
        results = [_recipe_result(runs, each) for runs, each in zip(recipes, pseudo, strict=True)]
        for index in range(1, len(results)):
            if min(len(recipes[0]), len(recipes[index])) > 1 and lengths[0] >= MIN_SEGMENTS:
                difference = results[index].mean - results[0].mean
                variance = _pooled_variance([pseudo[0], pseudo[index]])
                versus = _test_difference(difference, variance, lengths[0], recipes[0][0].higher_is_better)
                results[index] = replace(results[index], versus=versus)
    return _correct_p_values(results)


def pseudo_values(statistics: SegmentStatistics) -> Array:
    """The jackknife's pseudo-value of each segment (segments,); of a mean, the segment's own value."""
    num_segments = len(statistics)
    total = statistics.rows.sum(0)
    values: Array = num_segments * statistics.value - (num_segments - 1) * statistics.score(total - statistics.rows)
    return values


def _recipe_result(runs: Sequence[SegmentStatistics], pseudo: Array) -> RecipeResult:
    values = np.array([run.value for run in runs])
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    variance = _pooled_variance([pseudo])
    reason = SEVERAL_SEEDS_REASON if len(runs) > 1 else _no_interval_reason(variance)
    low, high = _interval_around(values.mean(), variance) if reason is None else (None, None)
    mean = float(values.mean())
    return RecipeResult(tuple(map(float, values)), mean, deviation, low, high, no_interval_reason=reason)


def _no_interval_reason(variance: "_Variance") -> str | None:
    """The reason why there is no interval; None if there is one."""
    return None if 0 < variance.total < np.inf else "seeds and segments all give the same"


@dataclass(frozen=True)
class _Variance:
    """Variance of a mean or of a difference of means: the total, its degrees of freedom, and the part of the seeds."""

    total: float
    degrees_of_freedom: float
    of_seeds: float


def _pooled_variance(recipes: Sequence[Array]) -> _Variance:
    """The variance of a recipe's mean, or of the difference of two recipes' means; each is (seeds, segments).

    The variance is the sum of two parts. By seeds: k s^2 with k = sum of 1 / S_r and s^2 the pooled variance of the
    seeds' scores (Student), which holds alpha and epsilon. By segments: the variance of the segments' means, less the
    part of it that is epsilon, k e^2 / n with e^2 the residual of seeds by segments; where an F test at 5 % does not
    find it to be more than that, 0. Degrees of freedom: Satterthwaite 1946.
    """
    from scipy import stats  # here, not at the top: it takes long to load

    num_segments = recipes[0].shape[1]
    k = sum(1 / len(each) for each in recipes)
    free = sum(len(each) - 1 for each in recipes)
    by_segment = recipes[-1].mean(0) - (recipes[0].mean(0) if len(recipes) > 1 else 0)
    of_segments = float(by_segment.var(ddof=1)) / num_segments
    if not free:
        return _Variance(of_segments, num_segments - 1, 0.0)
    of_seeds = k * sum(float(((each.mean(1) - each.mean()) ** 2).sum()) for each in recipes) / free
    residual = sum(
        float(((each - each.mean(1, keepdims=True) - each.mean(0) + each.mean()) ** 2).sum()) for each in recipes
    ) / (free * (num_segments - 1))
    of_both = k * residual / num_segments
    if (
        of_seeds <= _ROUNDING_TOLERANCE * of_segments
    ):  # seeds that score alike, if by chance, tell nothing of their spread
        return _Variance(of_segments, num_segments - 1, 0.0)
    if of_segments <= of_both * stats.f.ppf(0.95, num_segments - 1, free * (num_segments - 1)):
        return _Variance(of_seeds, free, of_seeds)
    total = of_seeds + of_segments - of_both
    degrees = total**2 / (of_seeds**2 / free + of_segments**2 / (num_segments - 1))
    return _Variance(total, degrees, of_seeds)


def _test_difference(
    difference: float, variance: _Variance, num_segments: int, higher_is_better: bool
) -> SeedDifference:
    from scipy import stats  # here, not at the top: it takes long to load

    p = 1.0
    if difference and np.isfinite(difference) and np.isfinite(variance.total):
        with np.errstate(divide="ignore"):
            ratio = abs(difference) / np.sqrt(variance.total)
        p = float(2 * stats.t.sf(ratio, variance.degrees_of_freedom))
        if not variance.total:  # all segments differ by the same: of 2^n ways to exchange the two, 2 are as extreme
            p = 2.0 ** (1 - min(num_segments, 1000))
    reason = _no_interval_reason(variance)
    low, high = _interval_around(difference, variance) if reason is None else (None, None)
    better = None if not difference or np.isnan(difference) else (difference > 0) == higher_is_better
    share = variance.of_seeds / variance.total if variance.total else 0.0
    return SeedDifference(difference, low, high, p, p, variance.degrees_of_freedom, share, better, reason)


def _interval_around(mean: float, variance: _Variance) -> tuple[float, float]:
    """The 95 % interval of Student's t."""
    from scipy import stats  # here, not at the top: it takes long to load

    half_width = float(stats.t.ppf(0.975, variance.degrees_of_freedom)) * variance.total**0.5
    return float(mean - half_width), float(mean + half_width)


def _correct_p_values(results: Sequence[RecipeResult]) -> list[RecipeResult]:
    """The results with Holm's correction over all recipes that were tested."""
    p_values = iter(holm_correction([result.versus.p for result in results if result.versus is not None]))
    return [
        result if result.versus is None else replace(result, versus=replace(result.versus, p_holm=next(p_values)))
        for result in results
    ]
