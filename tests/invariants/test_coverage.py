"""An interval of 95 % holds the true figure in 93 to 97 of 100 cases, or it is not given; of one segment nothing is."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from tests.invariants.test_significance import SEGMENTS, over_seeds, percent, tags
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.alternative_scores import proportion_interval
from tfm.pipeline.significance.intervals import (
    MIN_DIFFERING_SEGMENTS,
    MIN_SEGMENTS,
    difference_interval,
    score_interval,
)
from tfm.pipeline.significance.paired_tests import compare_systems
from tfm.pipeline.significance.resampling import bootstrap_scores
from tfm.pipeline.significance.seeds import MIN_SEGMENTS as MIN_SEGMENTS_OF_SEEDS
from tfm.pipeline.significance.seeds import compare_recipes
from tfm.pipeline.significance.segment_statistics import (
    SegmentStatistics,
    mean_statistics,
    perplexity_statistics,
    segment_statistics,
)
from tfm.pipeline.significance.shares import MIN_SEGMENTS_FOR_SHARE_INTERVAL, newcombe_interval

Draw = Callable[[np.random.Generator, int], SegmentStatistics]


def perplexity(rng: np.random.Generator, num: int) -> SegmentStatistics:
    words = rng.integers(1, 40, num)
    return perplexity_statistics(list(-words * rng.gamma(4, 0.5, num)), list(map(int, words)))


SCORES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, num: mean_statistics(rng.normal(0, 1, num)), 0.0),
    "skewed": (lambda rng, num: mean_statistics(rng.exponential(1, num)), 1.0),
    "near 0 or 1": (lambda rng, num: mean_statistics(rng.beta(0.5, 1.5, num)), 0.25),
    "mostly 0": (lambda rng, num: mean_statistics(rng.beta(2, 2, num) * (rng.random(num) < 0.2)), 0.1),
    "perplexity": (perplexity, float(np.exp(2))),
}
"""Scores of segments, and what their mean is of all segments there could be."""


def held(kind: str, num_segments: int, draws: int) -> float:
    """In percent, how often the interval holds the score of all segments there could be."""
    draw, true = SCORES[kind]
    rng, found = np.random.default_rng(11), []
    for _ in range(draws):
        system = draw(rng, num_segments)
        reason, low, high = score_interval(system, bootstrap_scores([system], seed=int(rng.integers(2**31)))[0])
        assert reason is None
        assert low is not None
        assert high is not None
        found.append(low <= true <= high)
    return percent(found)


@pytest.mark.slow
@pytest.mark.parametrize("num_segments", [MIN_SEGMENTS, 300])
@pytest.mark.parametrize("kind", SCORES)
def test_intervals_of_scores_hold_them(kind: str, num_segments: int) -> None:
    assert 92.4 <= held(kind, num_segments, 3000) <= 97  # 93 less twice the error of 3,000 draws


@pytest.mark.parametrize("kind", ["normal", "mostly 0"])
def test_intervals_of_scores_hold_them_mostly(kind: str) -> None:
    assert held(kind, MIN_SEGMENTS, 150) >= 88


@pytest.mark.parametrize("num_segments", [1, 2, 20, MIN_SEGMENTS - 1])
def test_of_fewer_segments_none_is_given(num_segments: int) -> None:
    rng = np.random.default_rng(1)
    for draw, _ in SCORES.values():
        pair = [draw(rng, num_segments) for _ in range(2)]
        one, other = compare_systems(pair, resamples=50, trials=50)
        assert (one.low, one.high, other.low, other.high) == (None,) * 4
        assert one.no_interval_reason is not None
        assert (other.versus is None) == (num_segments == 1)
        if other.versus is not None:
            assert (other.versus.low, other.versus.high) == (None, None)


def test_what_does_not_vary_has_no_interval() -> None:
    for value in (0.0, 0.1, 7.0):
        (found,) = compare_systems([mean_statistics([value] * MIN_SEGMENTS)], resamples=50)
        assert (found.low, found.high) == (None, None)


def test_macro_f1_of_rare_labels_has_no_interval() -> None:
    for num_rare, is_given in ((19, False), (20, True)):
        wanted = ["a"] * 100 + ["b"] * num_rare
        said = ["a"] * 90 + ["b"] * (10 + num_rare)
        config = EvaluationConfig(labels="line")
        (system,) = segment_statistics("macro_f1", [["a"] * len(wanted)], [wanted], config)
        assert (score_interval(system, bootstrap_scores([system], resamples=200)[0])[0] is None) == is_given
        (system,) = segment_statistics("macro_f1", [said], [wanted], config)
        assert score_interval(system, bootstrap_scores([system], resamples=200)[0])[0] is None


def test_a_difference_in_few_segments_has_no_interval() -> None:
    rng = np.random.default_rng(2)
    one = rng.normal(0, 1, 200)
    for num_apart, is_given in ((0, False), (MIN_DIFFERING_SEGMENTS - 1, False), (MIN_DIFFERING_SEGMENTS, True)):
        other = one.copy()
        other[:num_apart] += rng.random(num_apart) + 0.1
        pair = mean_statistics(one), mean_statistics(other)
        drawn = bootstrap_scores(pair, resamples=200)
        reason, low, high = difference_interval(*pair, drawn[1] - drawn[0])
        assert (reason is None) == (low is not None) == (high is not None) == is_given


@pytest.mark.parametrize("count", [1, 2, 4, *range(5, 13), 20, 50, 51, 100, 1000])
def test_the_interval_of_a_share_holds_it(count: int) -> None:
    """By all outcomes there are: 93 to 97 % on average over shares, and 88 % at each; of fewer than 5 95 % at each."""
    limits = np.array([proportion_interval(right, count) for right in range(count + 1)])
    shares = np.linspace(0.0005, 0.9995, 2000)
    inside = (limits[:, :1] <= shares) & (shares <= limits[:, 1:])
    coverage = (stats.binom.pmf(np.arange(count + 1)[:, None], count, shares) * inside).sum(0)
    assert coverage.min() >= (0.95 if count < 5 else 0.88)
    assert 0.93 <= coverage.mean() <= (1 if count < 5 else 0.97)


@pytest.mark.parametrize("right", [0, 20])
def test_shares_at_the_ends_have_intervals_of_some_width(right: int) -> None:
    lines = ["x"] * 20
    said = lines if right else ["y"] * 20
    for metric in ("exact_match", "accuracy"):
        config = EvaluationConfig(labels="line")
        (system,) = segment_statistics(metric, [said], [lines], config)
        (found,) = compare_systems([system], resamples=50)
        assert (found.low, found.high) == pytest.approx([100 * each for each in proportion_interval(right, 20)])
        assert found.low is not None
        assert found.high is not None
        assert found.high - found.low > 10
        few = segment_statistics(
            metric,
            [said[: MIN_SEGMENTS_FOR_SHARE_INTERVAL - 1]],
            [lines[: MIN_SEGMENTS_FOR_SHARE_INTERVAL - 1]],
            config,
        )
        assert compare_systems(few, resamples=50)[0].low is None


def test_the_difference_of_shares_is_newcombes() -> None:
    """His example (1998, table II, case 1 of method 10): 36, 12, 2, 0 of 50."""
    low, high = newcombe_interval(36, 12, 2, 0)
    assert (low, high) == pytest.approx((0.0569, 0.3404), abs=1e-3)
    assert newcombe_interval(20, 0, 0, 0)[0] < 0 < newcombe_interval(20, 0, 0, 0)[1]
    low, high = newcombe_interval(3, 5, 1, 2)
    assert newcombe_interval(3, 1, 5, 2) == pytest.approx((-high, -low))


def shares_held(draws: int, count: int) -> float:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(draws):
        hard = rng.beta(2, 1, count)
        one, other = rng.random(count) < hard, rng.random(count) < hard
        low, high = newcombe_interval(
            *(int(each.sum()) for each in (one & other, one & ~other, ~one & other, ~one & ~other))
        )
        found.append(low <= 0 <= high)
    return percent(found)


@pytest.mark.parametrize("count", [MIN_SEGMENTS_FOR_SHARE_INTERVAL, 20, 100])
def test_differences_of_shares_are_held(count: int) -> None:
    assert shares_held(2000, count) >= 93


@pytest.mark.slow
@pytest.mark.parametrize("num_segments", [MIN_SEGMENTS, 300])
def test_intervals_of_tags_and_of_labels_hold_them(num_segments: int) -> None:
    """Accuracy of tags, drawn as for the tests of its level: a share of words, whose sentences are hard or easy."""
    rng, found = np.random.default_rng(4), []
    for _ in range(1500):
        system = tags(rng)[0]
        rows = system.rows[rng.integers(0, SEGMENTS, num_segments)]
        small = SegmentStatistics(rows, system.score)
        _, low, high = score_interval(small, bootstrap_scores([small])[0])
        assert low is not None
        assert high is not None
        found.append(low <= system.value <= high)
    assert 92 <= percent(found) <= 97.5


@pytest.mark.slow
@pytest.mark.parametrize("parts", [(0.0, 0.7), (0.08, 0.0), (0.5, 0.0)])
def test_two_seeds_each_hold_the_level(parts: tuple[float, float]) -> None:
    found = over_seeds(2, 2000, of_seeds=parts[0], of_recipe=parts[1])
    assert percent([each.p < 0.05 for each in found]) <= 6.5
    held_ = [each.low is not None and each.high is not None and each.low <= 0 <= each.high for each in found]
    assert percent(held_) >= 93


@pytest.mark.parametrize("seeds", [1, 2, 3, 5])
@pytest.mark.parametrize("num_segments", [2, MIN_SEGMENTS_OF_SEEDS - 1, MIN_SEGMENTS_OF_SEEDS])
def test_few_seeds_or_segments_are_not_tested(seeds: int, num_segments: int) -> None:
    rng = np.random.default_rng(5)
    recipes = [[mean_statistics(rng.normal(0, 1, num_segments)) for _ in range(seeds)] for _ in range(2)]
    first, second = compare_recipes(recipes)
    assert first.versus is None
    assert (second.versus is not None) == (seeds > 1 and num_segments >= MIN_SEGMENTS_OF_SEEDS)
    assert seeds == 1 or (first.low, first.high) == (None, None)
