"""Preferences: Bradley and Terry's strengths beside a general optimiser, and the sign test beside plain counting."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from tfm.pipeline.judging.statistics.preferences import (
    Preference,
    bradley_terry,
    bradley_terry_strengths,
    connected_groups,
    preferences_from_best,
    sign_tests,
    win_counts,
)

SYSTEMS = ("x", "y", "z", "w")


def panel(num_segments: int, truth: tuple[float, ...], seed: int) -> list[Preference]:
    random = np.random.default_rng(seed)
    found = []
    for line in range(num_segments):
        for (i, first), (j, second) in combinations(enumerate(SYSTEMS[: len(truth)]), 2):
            wins = float(random.random() < 1 / (1 + math.exp(truth[j] - truth[i])))
            found.append(Preference("a", str(line), first, second, 0.5 if random.random() < 0.1 else wins))
    return found


@pytest.mark.parametrize("prior", [0.0, 1.0, 7.0])
def test_strengths_by_direct_maximisation(prior: float) -> None:
    counts = win_counts(panel(30, (0.8, 0.1, -0.3, -0.6), 3), SYSTEMS)[1].sum(0)

    def badness(free: np.ndarray) -> float:
        s = np.append(free, -free.sum())
        return sum(
            (counts[i, j] + prior / 2) * math.log1p(math.exp(s[j] - s[i])) for i in range(4) for j in range(4) if i != j
        )

    best = minimize(badness, np.zeros(3), tol=1e-12).x
    assert bradley_terry(counts, prior) == pytest.approx([*best, -best.sum()], abs=1e-5)


def test_strengths_of_two_systems_are_the_log_odds() -> None:
    won, lost = 70, 30
    found = bradley_terry(np.array([[0.0, won], [lost, 0]]))
    assert found[0] - found[1] == pytest.approx(math.log((won + 0.5) / (lost + 0.5)), abs=1e-9)


def test_a_planted_order_is_found_with_its_interval() -> None:
    truth = (0.6, 0.0, -0.6)
    held = 0
    for seed in range(10):
        found = bradley_terry_strengths(panel(150, truth, seed), SYSTEMS[:3])
        assert [each.system for each in found] == ["x", "y", "z"]
        assert [each.won + each.tied + each.lost for each in found] == [300] * 3
        # a tenth of ties, half a win each, draws the odds together
        pulled = {name: 0.9 * value for name, value in zip(SYSTEMS, truth, strict=False)}
        held += sum(each.low < pulled[each.system] < each.high for each in found if each.low and each.high)
    assert held >= 25, "of 30 intervals, at 95 %"


def test_wins_ties_and_losses_are_counted_for_either_side_of_a_pair() -> None:
    rows = [("x", "y", 1.0), ("y", "x", 0.0), ("z", "x", 0.5), ("y", "z", 1.0)]
    given = [Preference("a", str(line), *row) for line, row in enumerate(rows)]
    found = {each.system: (each.won, each.tied, each.lost) for each in bradley_terry_strengths(given, ["x", "y", "z"])}
    assert found == {"x": (2, 1, 0), "y": (1, 0, 2), "z": (0, 1, 1)}


def test_strengths_of_systems_that_seldom_win_have_no_intervals() -> None:
    for num, reason in ((9, "x won in 91 segments and lost in 9, and each system needs 10 of both"), (10, None)):
        rows = [Preference("a", str(line), "x", "y", float(line >= num)) for line in range(100)]
        for each in bradley_terry_strengths(rows, ["x", "y"]):
            assert each.no_interval_reason == reason
            assert (each.low is None) == (each.high is None) == (reason is not None)
        assert bradley_terry_strengths(rows[1:], ["x", "y"])[0].no_interval_reason == "99 segments, and it needs 100"


@pytest.mark.parametrize("num", [0, 9, 10])
def test_strengths_of_ties_have_no_intervals(num: int) -> None:
    """Draws of the same ties are all alike; ten segments with a preference, five a side, are enough."""
    rows = [Preference("a", str(line), "x", "y", line % 2 if line < num else 0.5) for line in range(120)]
    for each in bradley_terry_strengths(rows, ["x", "y"]):
        reason = f"x has another share of wins than its commonest one in {num} segments, and each system needs"
        assert each.no_interval_reason == (f"{reason} 10 of these" if num < 10 else None)
        assert (each.low is None) == (each.high is None) == (num < 10)


def test_who_wins_always_is_bounded_by_the_prior_alone() -> None:
    always = [
        Preference("a", str(line), first, second, 1) for line in range(9) for first, second in combinations("xyz", 2)
    ]
    found = bradley_terry_strengths(always, "xyz")
    assert all(math.isfinite(each.value) for each in found)
    assert {each.low for each in found} == {None}, "every draw of the segments is the same"
    counts = win_counts(always, "xyz")[1].sum(0)
    assert connected_groups(counts, "xyz", "strong") == [["x"], ["y"], ["z"]]
    assert connected_groups(counts, "xyz", "weak") == [["x", "y", "z"]]
    apart = [Preference("a", "1", "x", "y", 0.5), Preference("a", "1", "z", "w", 0.5)]
    assert connected_groups(win_counts(apart, SYSTEMS)[1].sum(0), SYSTEMS, "weak") == [["x", "y"], ["z", "w"]]
    assert bradley_terry(win_counts(apart, SYSTEMS)[1].sum(0)) == pytest.approx([0, 0, 0, 0])


def test_the_best_of_several_beat_the_others() -> None:
    found = {
        (each.first, each.second): each.wins
        for each in preferences_from_best("a", "1", ["x", "y", "z", "w"], ["y", "w"])
    }
    assert found == {("x", "y"): 0, ("y", "z"): 1, ("x", "w"): 0, ("z", "w"): 0, ("y", "w"): 0.5}
    assert preferences_from_best("a", "1", ["x", "y"], ["x", "y"]) == [Preference("a", "1", "x", "y", 0.5)]


def test_the_sign_test_counts_segments_by_their_majority() -> None:
    def given(line: int, *wins: float) -> list[Preference]:
        return [Preference(f"judge {who}", str(line), "x", "y", each) for who, each in enumerate(wins)]

    rows = (
        [each for line in range(9) for each in given(line, 1, 1, 0)]
        + given(9, 0, 0, 1)
        + given(10, 1, 0)
        + given(11, 0.5)
    )
    (test,) = sign_tests(rows, ["x", "y"])
    assert (test.won, test.tied, test.lost) == (9, 2, 1)
    assert test.p == pytest.approx(2 * sum(math.comb(10, k) for k in (0, 1)) / 2**10)
    assert test.p_holm == test.p
    assert test.is_significant
    (turned,) = sign_tests(rows, ["y", "x"])
    assert (turned.won, turned.lost, turned.p) == (1, 9, test.p)


def test_sign_tests_are_corrected_and_of_pairs_that_met() -> None:
    rows = [Preference("a", str(line), first, "z", 1) for line in range(6) for first in "xy"]
    found = sign_tests(rows, ["x", "y", "z"])
    assert [(test.first, test.second) for test in found] == [("x", "z"), ("y", "z")]
    assert [test.p for test in found] == [2 / 2**6] * 2
    assert [test.p_holm for test in found] == pytest.approx([4 / 2**6] * 2)
    (ties,) = sign_tests([Preference("a", "1", "x", "y", 0.5)], ["x", "y"])
    assert (ties.p, ties.is_significant) == (1, False)
