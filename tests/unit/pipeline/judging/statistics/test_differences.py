"""Tests of differences between systems beside plain enumeration and other tests, and clusters of ranks."""

import math
from itertools import combinations, product
from statistics import fmean, stdev

import numpy as np
import pytest
from scipy.stats import t, ttest_ind

from tfm.pipeline.judging.statistics.differences import difference_tests, permutation_p_value, rank_clusters
from tfm.pipeline.judging.statistics.ratings import Judgment

BOTH = ("first", "second")


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
    (test,) = difference_tests(two_systems([float(x) for x in first], [float(x) for x in second]), BOTH)
    assert test.p == pytest.approx(fmean(as_far), abs=0.01)
    assert (test.difference, test.num_first, test.paired) == (pytest.approx(0.8), 10, True)
    assert (test.low, test.no_interval_reason) == (None, "10 segments, and it needs 20")


def test_the_interval_of_shared_segments_is_student_s() -> None:
    differences = [float(line % 4) for line in range(20)]
    (test,) = difference_tests(two_systems([1 + each for each in differences], [1.0] * 20), BOTH)
    half = 2.093024 * stdev(differences) / math.sqrt(20)  # t(19) at 97.5 %, from a table
    assert (test.low, test.high) == (pytest.approx(1.5 - half, abs=1e-5), pytest.approx(1.5 + half, abs=1e-5))
    (test,) = difference_tests(two_systems([2.0] * 9 + [1.0] * 91, [1.0] * 100), BOTH)
    assert (test.low, test.high) == (None, None)
    assert test.no_interval_reason == "another value than the commonest one is in 9 segments, and it needs 10"


def test_the_paired_test_takes_shared_segments_and_corrects() -> None:
    rows = two_systems([1, 2, 3, 4, 5], [1, 2, 3])
    (test,) = difference_tests(rows, BOTH)
    assert (test.first, test.second, test.num_first, test.p) == ("first", "second", 3, 1)
    random = np.random.default_rng(1)
    rows = [
        Judgment("a", str(line), name, float(shift + random.normal()))
        for name, shift in (("x", 0), ("y", 0.1), ("z", 3))
        for line in range(40)
    ]
    tests = {(test.first, test.second): test for test in difference_tests(rows, "xyz")}
    assert [test.is_significant for test in tests.values()] == [False, True, True]
    assert tests["x", "z"].p_holm == pytest.approx(3 * tests["x", "z"].p)
    assert tests["x", "z"].difference < -2


def test_clusters_begin_where_all_differ() -> None:
    apart = {frozenset(pair) for pair in ("ac", "ad", "bc", "bd")}
    assert rank_clusters("abcd", lambda x, y: frozenset((x, y)) in apart) == [1, 1, 2, 2]
    assert rank_clusters("abcd", lambda x, y: True) == [1, 2, 3, 4]
    some = {frozenset(pair) for pair in ("bc", "bd", "ad")}  # b differs from c, and a, further off, does not
    assert rank_clusters("abcd", lambda x, y: frozenset((x, y)) in some) == [1, 1, 1, 1]
    assert rank_clusters("abc", lambda x, y: {x, y} == {"a", "c"}) == [1, 1, 1], "b is not apart from either"
    assert rank_clusters([], lambda x, y: True) == []


def apart(first: list[float], second: list[float]) -> list[Judgment]:
    """Two systems that share no segment."""
    mine = [Judgment("a", f"t:{line}", "first", value) for line, value in enumerate(first)]
    return mine + [Judgment("a", f"u:{line}", "second", value) for line, value in enumerate(second)]


def test_the_unpaired_test_by_all_ways_of_dealing_out() -> None:
    first, second = [5.0, 4, 4, 3, 5], [2.0, 3, 4, 1, 2, 3]
    values = first + second
    seen = abs(fmean(first) - fmean(second))
    splits = [{*some} for some in combinations(range(11), 5)]
    far = [
        abs(fmean(values[i] for i in some) - fmean(values[i] for i in range(11) if i not in some)) >= seen - 1e-9
        for some in splits
    ]
    (test,) = difference_tests(apart(first, second), BOTH)
    assert test.p == pytest.approx(fmean(far), abs=0.005)
    assert (test.paired, test.num_first, test.num_second) == (False, 5, 6)
    assert (test.low, test.no_interval_reason) == (None, "5 segments, and it needs 100")


def test_the_interval_of_segments_that_are_not_shared_is_welch_s() -> None:
    """By hand, with t at his degrees of freedom."""
    first, second = [5.0, 4, 4, 3, 5] * 20, [2.0, 3, 4, 1, 2, 3] * 20
    of_first, of_second = stdev(first) ** 2 / 100, stdev(second) ** 2 / 120
    freedom = (of_first + of_second) ** 2 / (of_first**2 / 99 + of_second**2 / 119)
    (test,) = difference_tests(apart(first, second), BOTH)
    half = t.ppf(0.975, freedom) * math.sqrt(of_first + of_second)
    assert (test.low, test.high) == pytest.approx((test.difference - half, test.difference + half), abs=1e-9)
    (test,) = difference_tests(apart(first, second), BOTH, 200)
    assert (test.low, test.no_interval_reason) == (None, "100 segments, and it needs 200")


def test_the_unpaired_test_is_near_student_s_where_values_are_normal() -> None:
    random = np.random.default_rng(6)
    for shift in (0.0, 0.3, 0.5):
        first, second = random.normal(shift, size=60).tolist(), random.normal(size=50).tolist()
        assert permutation_p_value(first, second) == pytest.approx(ttest_ind(first, second).pvalue, abs=0.015)


def test_systems_of_one_segment_or_one_value() -> None:
    (test,) = difference_tests(apart([1.0], [2.0]), BOTH)
    assert (test.p, test.low) == (1, None)
    (test,) = difference_tests(apart([1.0, 1.0], [1.0, 1.0]), BOTH)
    assert (test.p, test.low, test.high) == (1, None, None)


def test_a_system_with_few_segments_that_the_other_has_too_is_compared_on_them() -> None:
    """Half of its segments are enough, however many more the other has."""
    shared = [Judgment("a", f"t:{line}", "second", 1.0) for line in range(4)]
    (test,) = difference_tests([*apart([5.0, 4, 4, 3, 5, 4, 5, 4, 3, 4, 5, 3], []), *shared], BOTH)
    assert (test.paired, test.num_first, test.num_second) == (True, 4, 4)


def test_no_p_is_0() -> None:
    assert permutation_p_value([1.0] * 30, [2.0] * 30) == 1 / 10_001


def test_few_shared_segments_are_not_the_only_ones_that_count() -> None:
    rows = [*apart([5.0, 4, 4, 3, 5, 4], [2.0, 3, 4, 1, 2]), Judgment("a", "t:0", "second", 1.0)]
    (test,) = difference_tests(rows, BOTH)
    assert (test.paired, test.num_first, test.num_second) == (False, 6, 6)
