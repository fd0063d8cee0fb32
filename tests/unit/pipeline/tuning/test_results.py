"""What a search says of its trials: the best, which are not worse, the paragraph, the page."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t, ttest_rel

from tfm.pipeline.tuning.config import SearchConfig
from tfm.pipeline.tuning.report import methods_paragraph, search_page
from tfm.pipeline.tuning.results import (
    SearchResults,
    TrialResult,
    equally_good_trials,
    fold_means,
    paired_not_worse_p_value,
    summarize_trials,
    welch_not_worse_p_value,
)
from tfm.pipeline.tuning.space import make_parameters, suggest_configuration
from tfm.pipeline.tuning.study_opening import open_trials

CONFIG = SearchConfig.model_validate(
    {
        "name": "some",
        "base": "b.toml",
        "method": "evolution",
        "pruning": "median",
        "trials": 4,
        "repeats": 3,
        "space": {
            "model.norm": {"choices": ["pre", "post"]},
            "training.schedule.warmup_steps": {"values": [10, 20], "only_if": {"model.norm": "post"}},
            "training.schedule.peak": {"low": 0.001, "high": 0.1, "log": True},
        },
    }
)


def trial(number: int, values: tuple[float, ...], ended: str = "finished", reason: str = "") -> TrialResult:
    value = math.fsum(values) / len(values) if values else None
    configuration = {"model.norm": "pre", "training.schedule.peak": 0.01 * (number + 1)}
    return TrialResult(number, configuration, ended, reason, value, values, values[:1], 100, 3600.0, 0.0)  # type: ignore[arg-type]


def welch(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """p of the other's mean not being above the first's, by the formulas of Welch 1947."""
    means = [sum(each) / len(each) for each in (one, other)]
    shares = [
        sum((x - mean) ** 2 for x in each) / (len(each) - 1) / len(each)
        for each, mean in zip((one, other), means, strict=True)
    ]
    freedom = sum(shares) ** 2 / sum(
        share**2 / (len(each) - 1) for share, each in zip(shares, (one, other), strict=True)
    )
    return float(t.sf((means[1] - means[0]) / math.sqrt(sum(shares)), freedom))


BEST, NEAR, FAR = (1.0, 1.1, 0.9), (1.05, 1.2, 0.95), (2.0, 2.1, 2.2)


def test_worse_is_what_welchs_formulas_say() -> None:
    for other in (NEAR, FAR):
        assert welch_not_worse_p_value(BEST, other, "loss") == pytest.approx(welch(BEST, other), rel=1e-9)
        turned = tuple(-each for each in BEST), tuple(-each for each in other)
        assert welch_not_worse_p_value(*turned, "accuracy") == pytest.approx(welch(BEST, other), rel=1e-9)
    assert welch_not_worse_p_value((1.0, 1.0), (1.0, 1.0), "loss") == 1
    assert welch_not_worse_p_value((1.0, 1.0), (1.5, 1.5), "loss") == 0


def test_the_best_stands_with_all_that_are_not_worse() -> None:
    ranked = (trial(2, BEST), trial(0, NEAR), trial(1, FAR))
    assert [each.number for each in equally_good_trials(ranked, "loss")] == [2, 0]
    assert [each.number for each in equally_good_trials((trial(0, (1.0,)), trial(1, (1.0,))), "loss")] == [0]
    assert equally_good_trials((), "loss") == []


def test_folds_are_compared_in_pairs_with_more_variance_as_their_trainings_share_data() -> None:
    best, other = (1.0, 1.4, 0.8, 1.2, 1.1), (1.05, 1.41, 0.93, 1.24, 1.12)
    plain = ttest_rel(other, best).statistic
    corrected = plain * math.sqrt((1 / 5) / (1 / 5 + 1 / 4))  # Nadeau and Bengio 2003
    assert paired_not_worse_p_value(best, other, "loss") == pytest.approx(float(t.sf(corrected, 4)), rel=1e-9)
    turned = [-each for each in best], [-each for each in other]
    assert paired_not_worse_p_value(*turned, "accuracy") == pytest.approx(float(t.sf(corrected, 4)), rel=1e-9)
    assert welch_not_worse_p_value(best, other, "loss") > 0.3 > 0.1 > paired_not_worse_p_value(best, other, "loss")
    assert paired_not_worse_p_value((1.0, 2.0), (1.5, 2.5), "loss") == 0
    assert paired_not_worse_p_value((1.0, 2.0), (1.0, 2.0), "loss") == 1


def test_with_folds_the_best_stands_with_those_that_folds_do_not_find_worse() -> None:
    assert fold_means((1.0, 3.0, 5.0, 7.0, 0.0, 1.0), 3) == [2.0, 6.0, 0.5]
    best = (1.0, 1.0, 5.0, 5.2, 2.0, 1.8, 3.0, 3.0)  # four folds of two seeds
    always = tuple(each + extra for each, extra in zip(best, (0.1, 0.12, 0.09, 0.1, 0.1, 0.11, 0.1, 0.1), strict=True))
    once = (*best[:6], 3.9, 4.0)
    ranked = (trial(0, best), trial(1, always), trial(2, once), trial(3, ()))
    assert [each.number for each in equally_good_trials(ranked, "loss", 4)] == [0, 2]
    assert [each.number for each in equally_good_trials(ranked, "loss")] == [0, 1, 2]


def some_results() -> SearchResults:
    failed = trial(3, (), "failed", "loss & gradient <b>not finite</b>")
    trials = (trial(0, NEAR), trial(1, FAR), trial(2, BEST), failed)
    return SearchResults(
        "loss", trials, (trials[2], trials[0], trials[1]), (trials[2], trials[0]), {"model.norm": 0.25}
    )


def test_the_paragraph_says_what_a_reader_must_know() -> None:
    text = methods_paragraph(CONFIG, make_parameters(CONFIG.space), some_results())
    for part in (
        "evolutionary search (generations of 12, 4 survivors",
        "trials worse than the median of earlier finished ones",
        "by the loss of the validation set (seed 1)",
        "model.norm: one of pre, post",
        "training.schedule.warmup_steps: 10, 20 (only if model.norm = post)",
        "training.schedule.peak: between 0.001 and 0.1, by the logarithm",
        "4 trials were trained: 3 finished (3 seeds each, of which the mean counts), 1 failed; they took",
        "400 updates and 4.00 hours in all",
        "The best, trial 2, had loss 1.0000 with model.norm = pre, training.schedule.peak = 0.03",
        "trial 0 is not found to be worse than it at p < 0.05",
    ):
        assert part in text


def test_the_paragraph_says_every_configuration_only_where_none_is_left() -> None:
    grid = CONFIG.model_copy(update={"method": "grid"})
    some = some_results()
    text = methods_paragraph(grid, make_parameters(CONFIG.space), some)
    assert "by grid search over every configuration, by the" in text
    some = replace(some, trials=(*some.trials, trial(4, (), "waiting")))
    text = methods_paragraph(grid, make_parameters(CONFIG.space), some)
    assert "by grid search, by the" in text
    assert "Of 5 trials, 1 not begun; 4 were trained: 3 finished" in text


def test_the_paragraph_of_folds_names_them_and_their_test() -> None:
    folds = CONFIG.model_copy(update={"folds": 5, "repeats": 1})
    text = methods_paragraph(folds, make_parameters(CONFIG.space), some_results())
    assert "by the mean loss of 5-fold cross-validation on the training data (seed 1)" in text
    assert "4 trials were trained: 3 finished (one seed each), 1 failed;" in text
    assert "By the one-sided paired t-test over folds" in text
    assert "trial 0 is not found to be worse" in text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"repeats": 1}, "by the loss of the validation set (seed 1); trials were ended early by H (L). The space was"),
        ({"repeats": 3}, "H (L), by the training with the first of 3 seeds alone. The space was"),
        ({"folds": 5, "repeats": 1}, "H (L), by the training on the first of 5 folds alone. The space was"),
        ({"folds": 5}, "H (L), by the training on the first of 5 folds with the first of 3 seeds alone. The space was"),
        ({"folds": 5, "pruning": "none"}, "cross-validation on the training data (seed 1). The space was"),
    ],
)
def test_the_paragraph_says_by_which_training_trials_were_ended_early(settings: dict[str, Any], words: str) -> None:
    config = CONFIG.model_copy(update={"pruning": "hyperband", **settings})
    text = methods_paragraph(config, make_parameters(config.space), some_results())
    assert words in text.replace("Hyperband (Li et al. 2018)", "H (L)")


def test_the_paragraph_counts_as_trained_what_was_trained() -> None:
    """Six trials drew the configurations of two, which were trained."""
    trained = (trial(0, BEST), trial(1, FAR))
    again = tuple(
        replace(trained[number % 2], number=number, values=(), updates=0, same_as=number % 2) for number in range(2, 8)
    )
    ranked = (trained[0], *again[::2], trained[1], *again[1::2])
    some = SearchResults("loss", (*trained, *again, trial(8, (), "impossible")), ranked, (trained[0],), {})
    text = methods_paragraph(CONFIG, make_parameters(CONFIG.space), some)
    assert (
        "Of 9 trials, 6 had the configuration of an earlier one, 1 could not be trained; 2 were trained: "
        "2 finished (3 seeds each, of which the mean counts); they took"
    ) in text
    assert "t-test over seeds, the other one is worse than it at p < 0.05." in text
    assert some.num_trained == 2


def test_the_paragraph_gives_work_of_seconds_in_seconds() -> None:
    for seconds, words in ((2.5, "2.5 seconds in all"), (430.0, "430 seconds in all"), (720.0, "0.20 hours in all")):
        one = replace(trial(0, BEST), seconds=seconds)
        text = methods_paragraph(
            CONFIG, make_parameters(CONFIG.space), SearchResults("loss", (one,), (one,), (one,), {})
        )
        assert f"they took 100 updates and {words}" in text


def test_the_paragraph_gives_seeds_to_trials_that_had_them_all() -> None:
    """A trial that was pruned or failed was trained with one seed, maybe."""
    ends = ("failed", "pruned", "pruned")
    trials = (trial(0, BEST), *(trial(1 + number, (), ended) for number, ended in enumerate(ends)))
    text = methods_paragraph(
        CONFIG, make_parameters(CONFIG.space), SearchResults("loss", trials, trials[:1], trials[:1], {})
    )
    assert "4 trials were trained: 1 finished (3 seeds each, of which the mean counts), 1 failed, 2 pruned;" in text
    none = methods_paragraph(
        CONFIG, make_parameters(CONFIG.space), SearchResults("loss", (trial(0, (), "impossible"),), (), (), {})
    )
    assert "Of 1 trial, 1 could not be trained; none was trained;" in none


@pytest.mark.parametrize("others", [(), (trial(1, FAR, "failed"),), (trial(1, (2.0,)),)])
def test_the_paragraph_claims_no_test_where_nothing_was_compared(others: tuple[TrialResult, ...]) -> None:
    best = trial(0, BEST)
    ranked = (best, *(each for each in others if each.ended == "finished"))
    text = methods_paragraph(
        CONFIG, make_parameters(CONFIG.space), SearchResults("loss", (best, *others), ranked, (best,), {})
    )
    assert "t-test" not in text
    assert "p < 0.05" not in text
    assert text.endswith("No other trial has the figures for a test of whether it is worse.")


@pytest.mark.slow
def test_the_page_shows_all_trials_and_no_markup_of_theirs() -> None:
    found = search_page(CONFIG, make_parameters(CONFIG.space), some_results())
    assert "<b>not finite" not in found
    assert "loss &amp; gradient &lt;b&gt;not finite" in found
    assert found.count("<svg") == 4
    assert found == search_page(CONFIG, make_parameters(CONFIG.space), some_results())
    empty = search_page(CONFIG, make_parameters(CONFIG.space), SearchResults("loss", (), (), (), {}))
    assert "No trial has finished" in empty


def importances(folder: Path, figure: Callable[[Mapping[str, Any]], float], **settings: Any) -> dict[str, float]:
    """The share that each key explains by itself in a search whose trials have these figures."""
    config = SearchConfig.model_validate({"name": "s", "base": "b", **settings})
    trials = open_trials(config, {}, make_parameters(config.space), folder, None)
    while trials.stop_reason() is None:
        with trials.claim_trial() as mine:
            assert mine is not None
            trials.study.tell(mine.trial, figure(suggest_configuration(trials.parameters, mine.trial)))
    return summarize_trials(trials).importances


@pytest.mark.parametrize(
    "figure",
    [
        lambda of: 3.0 * of["a"] + of["b"],
        lambda of: (of["a"] - 0.5) * of["b"],
        lambda of: float((of["a"] < 2) != (of["b"] < 2)),
    ],
    ids=["sum", "product", "both alone say nothing"],
)
@pytest.mark.few(1)
def test_importance_is_the_share_of_variance_that_a_key_explains_by_itself(
    figure: Callable[[Mapping[str, Any]], float], tmp_path: Path
) -> None:
    """Against the analysis of variance of the whole grid."""
    grid = np.array([[figure({"a": a, "b": b}) for b in range(4)] for a in range(4)])
    exact = {"a": grid.mean(1).var() / grid.var(), "b": grid.mean(0).var() / grid.var()}
    space = {key: {"values": [0, 1, 2, 3]} for key in exact}
    assert importances(tmp_path, figure, method="grid", space=space) == pytest.approx(exact, abs=0.15)


def test_importance_is_over_the_scale_on_which_a_key_is_drawn(tmp_path: Path) -> None:
    space = {"a": {"low": 1e-4, "high": 1.0, "log": True}, "b": {"low": 0.0, "high": 1.0}}
    found = importances(
        tmp_path, lambda of: math.log(of["a"]) / math.log(1e-4) + of["b"], method="random", trials=60, space=space
    )
    assert found == pytest.approx({"a": 0.5, "b": 0.5}, abs=0.15)
