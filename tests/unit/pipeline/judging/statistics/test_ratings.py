"""Means, intervals, z-scores, paired tests and clusters of ratings, each by a second way."""

import math
from itertools import product
from statistics import fmean, stdev

import numpy as np
import pytest

from tfm.pipeline.judging.statistics.ratings import (
    Judgment,
    by_segment,
    clusters,
    mean_of,
    means,
    paired_tests,
    z_scores,
)


def test_a_segment_counts_once_however_many_judges_it_has() -> None:
    rows = [
        Judgment("a", "1", "s", 1),
        Judgment("b", "1", "s", 2),
        Judgment("c", "1", "s", 3),
        Judgment("a", "2", "s", 5),
    ]
    assert by_segment(rows) == {"s": {"1": 2, "2": 5}}
    assert means(rows)["s"].value == 3.5
    assert means(rows)["s"].num_segments == 2


def test_the_interval_of_a_mean() -> None:
    """Student's sleep data (1908): the ten differences, 0.70 ≤ mean ≤ 2.46 at 95 %."""
    found = mean_of([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])
    assert (found.value, found.low, found.high) == pytest.approx((1.58, 0.7001, 2.4599), abs=1e-4)
    assert mean_of([4.0]).low is None
    assert mean_of([2.0, 2.0]).low == mean_of([2.0, 2.0]).high == 2


def test_intervals_hold_the_truth_in_95_of_100() -> None:
    random = np.random.default_rng(5)
    held = 0
    for _ in range(2000):
        drawn = mean_of(random.integers(1, 6, size=30).tolist())
        assert drawn.low is not None
        assert drawn.high is not None
        held += drawn.low <= 3 <= drawn.high
    assert 0.935 < held / 2000 < 0.965


def test_z_scores_are_of_each_judge() -> None:
    random = np.random.default_rng(2)
    rows = [
        Judgment(judge, str(line), "s", float(shift + scale * random.normal()))
        for judge, shift, scale in (("mild", 80, 5), ("harsh", 20, 15))
        for line in range(40)
    ]
    rows += [Judgment("middle", str(line), "s", 50) for line in range(40)] + [Judgment("once", "1", "s", 3)]
    scores, without = z_scores(rows)
    assert without == ["middle", "once"]
    assert {each.judge for each in scores} == {"mild", "harsh"}
    for judge in ("mild", "harsh"):
        own = [each.value for each in scores if each.judge == judge]
        assert fmean(own) == pytest.approx(0, abs=1e-9)
        assert stdev(own) == pytest.approx(1)
    assert z_scores([]) == ([], [])


def two_systems(first: list[float], second: list[float]) -> list[Judgment]:
    return [
        Judgment("a", str(line), system, value)
        for system, values in (("first", first), ("second", second))
        for line, value in enumerate(values)
    ]


def test_the_paired_test_by_all_swaps() -> None:
    """With ten segments all 2^10 swaps can be counted; 10,000 drawn ones come close."""
    first, second = [3, 4, 5, 2, 5, 4, 3, 5, 4, 4], [2, 4, 3, 2, 4, 4, 4, 3, 3, 2]
    differences = [x - y for x, y in zip(first, second, strict=True)]
    seen = abs(sum(differences))
    as_far = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= seen
        for signs in product((1, -1), repeat=10)
    ]
    (test,) = paired_tests(two_systems([float(x) for x in first], [float(x) for x in second]))
    assert test.p == pytest.approx(fmean(as_far), abs=0.01)
    assert (test.difference.value, test.difference.num_segments) == (pytest.approx(0.8), 10)
    half = 2.262157 * stdev(differences) / math.sqrt(10)  # t(9) at 97.5 %, from a table
    assert test.difference.high == pytest.approx(0.8 + half, abs=1e-5)


def test_the_paired_test_takes_shared_segments_and_corrects() -> None:
    rows = [*two_systems([1, 2, 3, 4, 5], [1, 2, 3]), Judgment("a", "9", "alone", 1)]
    (test,) = paired_tests(rows)
    assert (test.first, test.second, test.difference.num_segments, test.p) == ("first", "second", 3, 1)
    random = np.random.default_rng(1)
    rows = [
        Judgment("a", str(line), name, float(shift + random.normal()))
        for name, shift in (("x", 0), ("y", 0.1), ("z", 3))
        for line in range(40)
    ]
    tests = {(test.first, test.second): test for test in paired_tests(rows)}
    assert [test.stands for test in tests.values()] == [False, True, True]
    assert tests["x", "z"].p_holm == pytest.approx(3 * tests["x", "z"].p)
    assert tests["x", "z"].difference.value < -2


def test_clusters_begin_where_all_differ() -> None:
    apart = {frozenset(pair) for pair in ("ac", "ad", "bc", "bd")}
    assert clusters("abcd", lambda x, y: frozenset((x, y)) in apart) == [1, 1, 2, 2]
    assert clusters("abcd", lambda x, y: True) == [1, 2, 3, 4]
    assert clusters("abc", lambda x, y: {x, y} == {"a", "c"}) == [1, 1, 1], "b is not apart from either"
    assert clusters([], lambda x, y: True) == []
