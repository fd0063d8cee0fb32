"""Scores of validation beside loss and BLEU: what chooses a checkpoint, what is refused, what the plan has of them."""

from types import SimpleNamespace
from typing import Any, cast, get_args

import numpy as np
import pytest
import torch

from tfm.pipeline.config import DecodingConfig, EvaluationConfig, EvaluationMetric
from tfm.pipeline.recipes.label_defaults import LABEL_VALIDATION_METRICS, no_score_reason
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS, score_texts
from tfm.pipeline.scoring.summaries import SUMMARY_METRICS
from tfm.pipeline.scoring.validation import DirectionsValidator, LabelScorer, ValidationTranslator
from tfm.pipeline.stages.train import EVALUATION_KEYS_BY_METRIC
from tfm.pipeline.tasks.abilities import LOWER_IS_BETTER, TASK_SPECS
from tfm.pipeline.training.early_stopping import Validation, is_patience_exhausted, sort_best_first
from tfm.pipeline.training_config import ALWAYS_MEASURED_FIGURES, TrainingConfig, ValidationMetric, ValidationScoreName


def training(**settings: Any) -> TrainingConfig:
    return TrainingConfig.model_validate({"max_steps": 1, **settings})


def validation(step: int, **scores: float) -> Validation:
    entries = {name: {"score": value, "signature": "s"} for name, value in scores.items()}
    return Validation.model_validate({"step": step, "epoch": 1, "loss": 1.0, "accuracy": 0.5, "scores": entries})


def test_every_metric_of_texts_is_one_of_validation_and_can_choose() -> None:
    assert {*get_args(ValidationScoreName)} == {*METRIC_FUNCTIONS} - {"accuracy"}
    assert {*get_args(ValidationScoreName)} == {*get_args(EvaluationMetric)} - {
        "accuracy",
        "perplexity",
        *SUMMARY_METRICS,
    }
    assert {*get_args(ValidationMetric)} == {*get_args(ValidationScoreName), *ALWAYS_MEASURED_FIGURES}
    assert {*LABEL_VALIDATION_METRICS} <= {*get_args(ValidationScoreName)}


@pytest.mark.parametrize("metric", [name for name in get_args(ValidationScoreName) if name != "bleu"])
def test_the_better_score_chooses_and_stops(metric: Any) -> None:
    lower = metric in LOWER_IS_BETTER
    better, worse = (10.0, 20.0) if lower else (20.0, 10.0)
    history = [validation(1, **{metric: better}), validation(2, **{metric: worse}), validation(3)]
    assert [each.step for each in sort_best_first(history, metric)] == [1, 2, 3], "one without it is last"
    assert is_patience_exhausted(history, metric, 2)
    assert not is_patience_exhausted(history[::-1], metric, 3)


def test_scores_are_written_down_and_said() -> None:
    found = validation(3, wer=12.5, exact_match=80.0)
    assert found.as_log_entry() == {
        "step": 3,
        "epoch": 1,
        "loss": 1.0,
        "perplexity": None,
        "accuracy": 0.5,
        "bleu": None,
        "wer": 12.5,
        "exact_match": 80.0,
    }
    assert found.describe().endswith("accuracy 50.0 %, wer 12.50, exact_match 80.00")
    assert Validation.model_validate_json(found.model_dump_json()) == found
    assert (found.value("wer"), found.value("loss"), found.value("cer")) == (12.5, 1.0, None)


def test_what_is_asked_for_is_computed_once() -> None:
    assert training().select_validation_scores(labels=False) == ("bleu",)
    assert training().select_validation_scores(labels=True) == ()
    asked = {"metrics": ["wer", "bleu", "wer"]}
    assert training(validation=asked).select_validation_scores(labels=False) == ("bleu", "wer")
    alone = training(validation={"bleu": False}, early_stopping={"metric": "exact_match"})
    assert alone.select_validation_scores(labels=False) == ("exact_match",)


@pytest.mark.parametrize(
    ("task", "settings", "words"),
    [
        ("translation", {"early_stopping": {"metric": "wer"}}, None),
        ("classification", {"early_stopping": {"metric": "macro_f1"}}, None),
        ("tagging", {"validation": {"metrics": ["exact_match"]}}, None),
        ("tagging", {"early_stopping": {"metric": "bleu"}}, "there are no translations"),
        ("tagging", {"early_stopping": {"metric": "wer"}}, "is of texts, and model.task"),
        ("language_model", {"early_stopping": {"metric": "exact_match"}}, "there are no translations"),
        ("language_model", {"validation": {"metrics": ["chrf"]}}, "validation.metrics: chrf"),
    ],
)
def test_scores_that_a_task_has_not_are_refused(task: str, settings: Any, words: str | None) -> None:
    reason = no_score_reason(task, training(**settings))
    assert reason is None if words is None else words in str(reason)
    assert TASK_SPECS[task].gives_hypotheses or reason


def test_every_key_of_evaluation_that_a_score_reads_is_in_the_plan() -> None:
    """By its effect: a key that changes a score's signature is one that it reads."""
    texts = ["A b c d", "b a d c e"], [["a b c d", "b a c d e"]]
    others: dict[str, Any] = {"lowercase": True, "words": "line", "bleu_tokenize": "char", "labels": "line"}
    others |= {"rouge_tokenize": "rouge-score", "rouge_stemmer": True}
    base = EvaluationConfig(metrics=tuple(name for name in get_args(ValidationScoreName) if name != "meteor"))
    before = score_texts(*texts, base.model_copy(update={"bleu_tokenize": "13a"}))
    for key, value in others.items():
        after = score_texts(*texts, base.model_copy(update={"bleu_tokenize": "13a", key: value}))
        changed = {name for name in before if before[name].signature != after[name].signature}
        assert changed == {name for name in before if key in EVALUATION_KEYS_BY_METRIC.get(name, ())}, key


def split_of(targets: list[str]) -> Any:
    source = SimpleNamespace(to_lists=list)
    return SimpleNamespace(source=source, images=None, texts=lambda: ([], targets), __len__=lambda: len(targets))


def test_a_metric_that_the_references_have_not_is_missing_with_its_reason() -> None:
    found = ValidationTranslator(
        split_of(["a b", "c"]), cast(Any, None), DecodingConfig(), EvaluationConfig(), ("bleu", "wer")
    )
    assert found.metrics == ("wer",)
    assert "no reference has 4 tokens" in found.missing["bleu"]
    assert found.score(["a b", "d"])["wer"].score == pytest.approx(100 / 3)


class Split(list[str]):
    def texts(self) -> tuple[list[str], list[str]]:
        return [], list(self)


def test_labels_are_scored_by_their_rows_whatever_the_batches() -> None:
    """Each batch's rows in another order than the corpus, and one row in none."""
    said = {0: [1], 1: [2], 2: [1]}
    task: Any = SimpleNamespace(
        batch=lambda split, rows: SimpleNamespace(to=lambda device: rows),
        predict=lambda model, rows, n_best: [[SimpleNamespace(ids=said[int(row)])] for row in rows],
    )
    names = {1: "x", 2: "y"}
    tokenizer: Any = SimpleNamespace(decode_batch=lambda lists: [" ".join(names[one] for one in ids) for ids in lists])
    batches = [np.array([2, 0]), np.array([1])]
    config = EvaluationConfig(labels="line")
    split = Split(["x", "y", "y", ""])
    found = LabelScorer(split, tokenizer, task, batches, config, ("macro_f1", "exact_match"))
    scores = found.scores(torch.nn.Linear(1, 1), World(), lambda: None)
    expected = score_texts(["x", "y", "x", ""], [list(split)], config.model_copy(update={"metrics": found.metrics}))
    assert scores == expected
    assert scores["exact_match"].score == 75


def test_of_several_directions_the_mean_of_each_score_counts() -> None:
    def figures(*_: Any, value: float) -> dict[str, Any]:
        scores = {"wer": {"score": value, "signature": "w"}}
        return {"loss": 1.0, "perplexity": 2.0, "accuracy": 0.5, "bleu": None, "bleu_signature": None, "scores": scores}

    validators: Any = {
        name: SimpleNamespace(compute_metrics=lambda *each, value=value: figures(*each, value=value))
        for name, value in (("a", 10.0), ("b", 30.0))
    }
    found = Validation(
        step=1, epoch=1, **DirectionsValidator(validators).compute_metrics(torch.nn.Linear(1, 1), World())
    )
    assert found.value("wer") == 20.0
    assert found.scores["wer"].signature == "mean-of:2-directions|w"
    assert found.as_log_entry()["b/wer"] == 30.0
