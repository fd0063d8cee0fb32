"""Do people rate one system higher than another? Tests of every two systems, and the clusters of ranks that follow."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

import numpy as np
from scipy.stats import ttest_ind

from tfm.pipeline.judging.statistics.minimums import MIN_DIFFERENCES, MIN_SEGMENTS, no_mean_interval_problem
from tfm.pipeline.judging.statistics.ratings import CONFIDENCE_LEVEL, Judgment, estimate_mean, segment_means
from tfm.pipeline.significance.holm import SIGNIFICANCE_LEVEL, holm_correction
from tfm.pipeline.significance.intervals import IntervalOrReason
from tfm.pipeline.significance.paired_tests import compare_systems
from tfm.pipeline.significance.segment_statistics import mean_statistics as statistics_of

MIN_SHARED_SEGMENT_RATIO = 0.5
"""Two systems are compared segment by segment if they share so large a part of the segments of the one with fewer."""
PERMUTATION_TRIALS, SEED = 10_000, 12345
PERMUTATIONS_PER_BLOCK = 500


@dataclass(frozen=True)
class DifferenceTest:
    """The first system less the second: the difference of their means over segments with its interval, and p.

    paired: over the segments that both have, by approximate randomisation (each trial swaps segments between the
    systems); otherwise over all segments of each, by a permutation test (each trial deals them out again). Both
    two-sided, 10,000 trials. p_holm: corrected over all pairs of systems.
    """

    first: str
    second: str
    paired: bool
    difference: float
    low: float | None
    high: float | None
    num_first: int
    num_second: int
    p: float
    p_holm: float
    no_interval_reason: str | None = None

    @property
    def is_significant(self) -> bool:
        """Whether the difference is significant at 5 % after correction."""
        return self.p_holm < SIGNIFICANCE_LEVEL


def difference_tests(
    judgments: Iterable[Judgment], systems: Sequence[str], min_unpaired_segments: int = MIN_SEGMENTS
) -> list[DifferenceTest]:
    """The test of every two of some systems, in their order, on the means of the segments' judges.

    min_unpaired_segments: segments of each of two systems, if not shared, that an interval of the difference needs.
    """
    means, tests = segment_means(judgments), []
    for first, second in combinations([system for system in systems if system in means], 2):
        first_means, second_means = means[first], means[second]
        shared = len(first_means.keys() & second_means.keys())
        is_paired = shared and shared >= MIN_SHARED_SEGMENT_RATIO * min(len(first_means), len(second_means))
        test, min_segments = (paired_test, MIN_DIFFERENCES) if is_paired else (unpaired_test, min_unpaired_segments)
        tests.append(test(first, first_means, second, second_means, min_segments))
    p_values = holm_correction([test.p for test in tests])
    return [replace(test, p_holm=p) for test, p in zip(tests, p_values, strict=True)]


def paired_test(
    first: str, first_means: Mapping[str, float], second: str, second_means: Mapping[str, float], min_segments: int
) -> DifferenceTest:
    """Over the segments that both systems have; the interval is Student's, of the differences."""
    segments = [segment for segment in first_means if segment in second_means]
    a, b = [first_means[segment] for segment in segments], [second_means[segment] for segment in segments]
    versus = compare_systems([statistics_of(b), statistics_of(a)])[1].versus
    p = 1.0 if versus is None else versus.p  # None of one segment: to swap it changes nothing
    estimate = estimate_mean([x - y for x, y in zip(a, b, strict=True)], min_segments)
    ends = estimate.low, estimate.high
    return DifferenceTest(
        first,
        second,
        True,
        estimate.value,
        *ends,
        len(segments),
        len(segments),
        p,
        p,
        no_interval_reason=estimate.no_interval_reason,
    )


def unpaired_test(
    first: str, first_means: Mapping[str, float], second: str, second_means: Mapping[str, float], min_segments: int
) -> DifferenceTest:
    """Over all segments of each system; the interval is Welch's.

    Segments that both have make the interval too wide and p too large, rather than the reverse.
    """
    a, b = list(first_means.values()), list(second_means.values())
    problem, low, high = welch_interval(a, b, min_segments)
    p = permutation_p_value(a, b)
    difference = fmean(a) - fmean(b)
    return DifferenceTest(first, second, False, difference, low, high, len(a), len(b), p, p, no_interval_reason=problem)


def welch_interval(a: Sequence[float], b: Sequence[float], min_segments: int) -> IntervalOrReason:
    """Welch's interval (1947) of the difference of two means, or the reason if there are fewer than `min_segments`
    values.
    """
    problem = no_mean_interval_problem(a, min_segments) or no_mean_interval_problem(b, min_segments)
    if problem is not None:
        return problem, None, None
    low, high = ttest_ind(a, b, equal_var=False).confidence_interval(CONFIDENCE_LEVEL)
    return None, float(low), float(high)


def permutation_p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """How often groups of these sizes, dealt out again, have means as far apart: (count + 1) / (trials + 1)."""
    values, size = np.array([*a, *b]), len(a)
    threshold = abs(fmean(a) - fmean(b)) - 1e-9 * float(np.abs(values).max())
    random, total = np.random.default_rng(SEED), math.fsum(values)
    count = 0
    for _ in range(0, PERMUTATION_TRIALS, PERMUTATIONS_PER_BLOCK):
        group_sums = random.permuted(np.tile(values, (PERMUTATIONS_PER_BLOCK, 1)), axis=1)[:, :size].sum(1)
        count += int((np.abs(group_sums / size - (total - group_sums) / len(b)) >= threshold).sum())
    return (count + 1) / (PERMUTATION_TRIALS + 1)


def rank_clusters(systems: Sequence[str], is_better: Callable[[str, str], bool]) -> list[int]:
    """The rank cluster of each system, from 1; `systems` has the best first.

    A new cluster begins where every system so far is significantly better than every system still to come, as at WMT.
    """
    ranks, cluster = [], 1
    for index in range(len(systems)):
        if index and all(is_better(before, after) for before in systems[:index] for after in systems[index:]):
            cluster += 1
        ranks.append(cluster)
    return ranks
