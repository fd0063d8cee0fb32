"""The test over seeds and segments, against the textbook where the textbook has it."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from tfm.data.errors import DataError
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.registry import score_texts
from tfm.pipeline.significance.seeds import RecipeResult, SeedDifference, compare_recipes, pseudo_values
from tfm.pipeline.significance.segment_statistics import (
    SegmentStatistics,
    mean_statistics,
    perplexity_statistics,
    segment_statistics,
)

Runs = Sequence[SegmentStatistics]


def recipe(
    seed: int, num_seeds: int, *, of_seeds: float, of_recipe: float, of_both: float = 0.3, shift: float = 0.0
) -> list[SegmentStatistics]:
    """Runs on 150 segments of which some are harder for all; the standard deviation of each part."""
    draw = np.random.default_rng(seed)
    shared = np.random.default_rng(99).normal(0, 1, 150) + draw.normal(0, of_recipe, 150) + shift
    return [mean_statistics(shared + draw.normal(0, of_seeds) + draw.normal(0, of_both, 150)) for _ in range(num_seeds)]


def versus(result: RecipeResult) -> SeedDifference:
    assert result.versus is not None
    return result.versus


def scores(runs: Runs) -> list[float]:
    return [run.value for run in runs]


def test_where_seeds_decide_it_is_students_test() -> None:
    one, other = recipe(1, 4, of_seeds=1, of_recipe=0), recipe(2, 3, of_seeds=1, of_recipe=0)
    found = versus(compare_recipes([one, other])[1])
    expected = stats.ttest_ind(scores(other), scores(one))
    assert (found.p, found.degrees_of_freedom) == (pytest.approx(expected.pvalue), 5)
    interval = expected.confidence_interval()
    assert (found.low, found.high) == (pytest.approx(interval.low), pytest.approx(interval.high))
    assert found.share_of_seeds == 1


def test_where_seeds_change_nothing_it_is_the_paired_test_of_segments() -> None:
    one, other = recipe(1, 1, of_seeds=0, of_recipe=1), recipe(2, 1, of_seeds=0, of_recipe=1, shift=0.2)
    found = versus(compare_recipes([one * 3, other * 3])[1])
    expected = stats.ttest_rel(other[0].rows[:, 0], one[0].rows[:, 0])
    assert (found.p, found.degrees_of_freedom) == (pytest.approx(expected.pvalue), 149)
    interval = expected.confidence_interval()
    assert (found.low, found.high) == (pytest.approx(interval.low), pytest.approx(interval.high))
    assert found.share_of_seeds == pytest.approx(0)


def test_where_both_matter_the_variance_is_that_of_the_model() -> None:
    """Mean over many draws of what is estimated, against the model's variance written out."""
    of_seeds, of_recipe, of_both, found = 0.1, 0.8, 1.0, []
    for place in range(200):
        pair = [
            recipe(1000 * place + each, 3, of_seeds=of_seeds, of_recipe=of_recipe, of_both=of_both) for each in (1, 2)
        ]
        each = versus(compare_recipes(pair)[1])
        half_width = (each.high - each.low) / 2
        found.append((half_width / stats.t.ppf(0.975, each.degrees_of_freedom)) ** 2)
    expected = 2 * of_seeds**2 / 3 + 2 * of_recipe**2 / 150 + 2 * of_both**2 / (3 * 150)
    assert np.mean(found) == pytest.approx(expected, rel=0.1)


def test_seeds_widen_the_interval() -> None:
    for num_seeds in (3, 5):
        widths = []
        for of_seeds in (0.0, 0.5):
            pair = [recipe(each, num_seeds, of_seeds=of_seeds, of_recipe=0.5) for each in (1, 2)]
            found = versus(compare_recipes(pair)[1])
            assert found.low <= found.difference <= found.high
            widths.append(found.high - found.low)
        assert widths[1] > 2 * widths[0]


def test_one_seed_says_nothing_of_the_recipe() -> None:
    several, one = recipe(1, 3, of_seeds=0.1, of_recipe=0.1), recipe(2, 1, of_seeds=0.1, of_recipe=0.1)
    for pair in ([one, several], [several, one]):
        results = compare_recipes(pair)
        assert results[1].versus is None
        single = results[pair.index(one)]
        assert single.deviation is None
        expected = stats.ttest_1samp(one[0].rows[:, 0], 0).confidence_interval()
        assert (single.low, single.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    # of the baseline's and a third recipe's several seeds the test remains
    results = compare_recipes([several, one, recipe(3, 2, of_seeds=0.1, of_recipe=0.1)])
    assert (results[1].versus, versus(results[2]).p_holm) == (None, versus(results[2]).p)


def test_what_is_told_of_a_recipe() -> None:
    runs = recipe(1, 4, of_seeds=1, of_recipe=0)
    (found,) = compare_recipes([runs])
    assert found.values == pytest.approx(scores(runs))
    assert (found.mean, found.deviation) == (
        pytest.approx(np.mean(scores(runs))),
        pytest.approx(stats.tstd(scores(runs))),
    )
    assert (found.low, found.high) == (None, None), "it would hold the mean too seldom"


def test_holm_is_over_all_recipes() -> None:
    recipes = [recipe(each, 3, of_seeds=0.2, of_recipe=0.2, shift=each / 4) for each in range(4)]
    found = [versus(result) for result in compare_recipes(recipes)[1:]]
    smallest = min(found, key=lambda each: each.p)
    assert smallest.p_holm == min(1, 3 * smallest.p)
    assert all(each.p_holm >= each.p for each in found)
    assert found[2].is_significant is (found[2].p_holm < 0.05)


def test_higher_or_lower_is_better() -> None:
    for values, higher in (([1.0, 2, 3, 4, 5] * 4, True), ([1.0, 2, 3, 4, 5] * 4, False)):
        one, other = (
            [mean_statistics([value + shift for value in values], higher_is_better=higher)] * 2 for shift in (0, 1)
        )
        found = versus(compare_recipes([one, other])[1])
        assert (found.difference, found.better) == (1, higher)
        assert found.p == 2 / 2**20, "as by all exchanges of twenty segments"
        same = versus(compare_recipes([one, one])[1])
        assert (same.difference, same.p, same.better) == (0, 1, None)


def test_seeds_that_score_alike_by_chance_are_no_proof() -> None:
    """Exact match of few segments: two seeds with the same count, on other segments."""
    one = [mean_statistics([1, 0, 0, 1, 0, 0, 0, 1, *[0] * 12]), mean_statistics([0, 1, 1, 0, 0, 1, 0, 0, *[0] * 12])]
    other = [mean_statistics([1, 1, 0, 1, 0, 0, 0, 1, *[0] * 12]), mean_statistics([0, 1, 1, 0, 0, 1, 0, 1, *[0] * 12])]
    found = versus(compare_recipes([one, other])[1])
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0 < found.high
    assert found.p > 0.05


def test_pseudo_values_of_a_mean_are_its_values() -> None:
    values = [3.0, 1.0, 4.0, 1.5]
    assert pseudo_values(mean_statistics(values)) == pytest.approx(values)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter", "macro_f1"])
def test_pseudo_values_are_what_a_score_loses_without_the_segment(metric: str) -> None:
    """By scoring the texts without each segment in turn."""
    draw = random.Random(3)
    words = "ein Hund läuft über die große Wiese كلب 狗".split()
    reference = [" ".join(draw.choices(words, k=9)) for _ in range(9)]
    hypotheses = [" ".join(word for word in text.split() if draw.random() < 0.8) for text in reference]
    config = EvaluationConfig.model_validate({"metrics": (metric,), "labels": "word"})

    def score(rows: Sequence[int]) -> float:
        return score_texts([hypotheses[row] for row in rows], [[reference[row] for row in rows]], config)[metric].score

    (found,) = segment_statistics(metric, [hypotheses], [reference], config)
    expected = [9 * score(range(9)) - 8 * score([row for row in range(9) if row != left]) for left in range(9)]
    assert pseudo_values(found) == pytest.approx(expected, abs=1e-8)


def test_perplexities_beyond_floats_are_not_compared() -> None:
    one, other = ([perplexity_statistics([log_p] * 20, [1] * 20)] * 2 for log_p in (-1.0, -1e6))
    for pair in ([one, other], [other, one]):
        assert versus(compare_recipes(pair)[1]).p == 1


def test_runs_of_other_segments_are_refused() -> None:
    for recipes in (
        [[mean_statistics([1, 2]), mean_statistics([1])]],
        [[mean_statistics([1])]],
        [[mean_statistics([1, 2])], [mean_statistics([1, 2, 3])]],
    ):
        with pytest.raises(DataError, match="segments: compare them on the same ones"):
            compare_recipes(recipes)
