"""Numbers that judges gave to systems: means with intervals, z-scores by judge, paired tests, clusters of ranks."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.stats import t

from tfm.pipeline.significance.holm import LEVEL, holm
from tfm.pipeline.significance.paired_tests import compare_systems
from tfm.pipeline.significance.segment_statistics import means as statistics_of

CONFIDENCE = 0.95
"""Of every interval."""


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


@dataclass(frozen=True)
class PairedTest:
    """The first system less the second over the segments that both have: the mean of the differences, and p.

    p: of approximate randomisation, 10,000 trials, two-sided; p_holm: corrected over all pairs of systems.
    """

    first: str
    second: str
    difference: Mean
    p: float
    p_holm: float

    @property
    def stands(self) -> bool:
        """Whether the difference is significant at 5 % after correction."""
        return self.p_holm < LEVEL


def paired_tests(judgments: Iterable[Judgment]) -> list[PairedTest]:
    """The paired test of every two systems that have a segment in common, on the means of the segments' judges."""
    found = []
    for (first, mine), (second, theirs) in combinations(by_segment(judgments).items(), 2):
        both = [segment for segment in mine if segment in theirs]
        if both:
            a, b = [mine[segment] for segment in both], [theirs[segment] for segment in both]
            versus = compare_systems([statistics_of(b), statistics_of(a)])[1].versus
            assert versus is not None
            difference = mean_of([x - y for x, y in zip(a, b, strict=True)])
            found.append(PairedTest(first, second, difference, versus.p, versus.p))
    corrected = holm([test.p for test in found])
    return [replace(test, p_holm=p) for test, p in zip(found, corrected, strict=True)]


def clusters(systems: Sequence[str], differ: Callable[[str, str], bool]) -> list[int]:
    """The rank cluster of each system, from 1; `systems` has the best first.

    A new cluster begins where every system so far differs significantly from every system still to come, as at WMT.
    """
    found, cluster = [], 1
    for place in range(len(systems)):
        if place and all(differ(before, after) for before in systems[:place] for after in systems[place:]):
            cluster += 1
        found.append(cluster)
    return found
