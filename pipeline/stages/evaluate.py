"""The evaluate stage: scores of the test sets of a dataset, with signatures and a report."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.directions import Direction
from tfm.data.dataset.store import load_dataset
from tfm.pipeline.artifacts.artifact import Input, Plan, open_artifact, read_artifact
from tfm.pipeline.artifacts.compatibility import check_same_inputs, check_same_tokenizer, trained_task
from tfm.pipeline.config import Device, EvalSplit, EvaluationConfig
from tfm.pipeline.reports.published_scores import publish_scores, warn_of_failed_metrics
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.aligned_files import read_translations, select_splits_to_score
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.evaluation.full_evaluation import (
    check_metrics,
    evaluate_with_model,
    metric_inputs,
    score_relevant_config,
)
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.ledger import read_evaluated_model
from tfm.pipeline.scoring.metrics.wrong_language import train_identifier
from tfm.pipeline.tasks.abilities import task_evaluation_config

if TYPE_CHECKING:
    from tfm.pipeline.model_io.loaded_model import LoadedModel


def plan_scores(
    model: Path,
    dataset: Path,
    translations: Path | None,
    config: EvaluationConfig,
    out: Path,
    *,
    seed: int = 1,
    eval_split: EvalSplit = "tests",
) -> Plan:
    """Return the plan of `evaluate_tests`.

    Args:
        model: the folder of the model.
        dataset: the folder of the dataset.
        translations: the folder of the translations; None for a model without hypotheses.
        config: the [evaluation] part of a recipe.
        out: the folder of the scores.
        seed: the seed of the run.
        eval_split: the split to score.

    Raises:
        DataError: the translations are of another model or dataset.
    """
    manifests = {"model": open_artifact(model, "train"), "dataset": open_artifact(dataset, "preprocess")}
    if translations is None:
        check_same_tokenizer(manifests["model"], manifests["dataset"])
    else:
        translations_manifest = manifests[translations_input_name(eval_split)] = open_artifact(
            translations, "translate"
        )
        check_same_inputs(translations_manifest, model=manifests["model"], dataset=manifests["dataset"])
    return Plan(
        stage="evaluate",
        folder=out,
        config=score_relevant_config(config) | ({} if eval_split == "tests" else {"split": eval_split}),
        inputs={name: manifest.as_input() for name, manifest in manifests.items()} | metric_inputs(config),
        seed=seed,
    )


def translations_input_name(eval_split: EvalSplit) -> str:
    """Return the name of the translations among the inputs of their scores."""
    return "translations" if eval_split == "tests" else f"translations-{eval_split}"


def evaluate_tests(
    model: Path,
    dataset: Path,
    translations: Path | None,
    training: Path | None,
    config: EvaluationConfig,
    out: Path,
    *,
    seed: int = 1,
    command: Sequence[str],
    reporter: Reporter,
    device: Device = "auto",
    eval_split: EvalSplit = "tests",
    chosen: str | None = "recipe",
) -> dict[str, Any]:
    """Score the translations of every test set of a dataset, or of its validation split.

    The first test set is the main one.

    Args:
        model: the folder of the model.
        dataset: the folder of the dataset.
        translations: the folder of the translations; None for a model that makes none, which is scored by the
            probability that it gives to the test sets.
        training: the folder whose metrics.jsonl the report draws; None for none.
        config: the [evaluation] part of a recipe.
        out: the folder of the scores.
        seed: the seed of the run.
        command: the command line, for the manifest.
        reporter: receives messages.
        device: name of the device.
        eval_split: the split to score.
        chosen: how the model was chosen, for the ledger; None: the caller has entered the look.

    Returns:
        The content of scores.json.
    """
    config = task_evaluation_config(trained_task(open_artifact(model, "train")), config)
    check_metrics(config)
    stage_plan = plan_scores(model, dataset, translations, config, out, seed=seed, eval_split=eval_split)

    def score_splits(folder: Path | None) -> list[Evaluation]:
        if translations is None:
            return _score_likelihoods(model, dataset, stage_plan, device, reporter, eval_split, config.stride)
        loaded = _load_model(model, device, stage_plan.inputs["model"]) if "perplexity" in config.metrics else None
        judge = partial(
            evaluate_with_model, config=config, loaded=loaded, wants_perplexity=True, seed=seed, reporter=reporter
        )
        return _score_translations(dataset, translations, stage_plan, judge, eval_split)

    evaluated_model = (
        read_evaluated_model(model, stage_plan.inputs["model"].fingerprint, chosen)
        if eval_split == "tests" and chosen
        else None
    )
    content = publish_scores(stage_plan, score_splits, training, command, reporter, evaluated_model)
    if eval_split == "valid":
        reporter.line("these are scores of the validation split; the test sets are for `tfm evaluate --final`")
    warn_of_failed_metrics(content, [metric.name for metric in config.external], out, reporter)
    return content


def _score_likelihoods(
    model: Path,
    dataset: Path,
    stage_plan: Plan,
    device: Device,
    reporter: Reporter,
    eval_split: EvalSplit,
    stride: int | None,
) -> list[Evaluation]:
    """Score a model that makes no translations by the probability that it gives to each split."""
    from tfm.pipeline.scoring.likelihood_scores import score_likelihood  # here, as it needs torch

    data = read_artifact(dataset, lambda _: load_dataset(dataset), must_match=stage_plan.inputs["dataset"])
    loaded = _load_model(model, device, stage_plan.inputs["model"])
    return [
        score_likelihood(loaded, name, split, data.batch_tokens, reporter, stride=stride)
        for name, split in select_splits_to_score(data, eval_split).items()
    ]


def _score_translations(
    dataset: Path, translations: Path, stage_plan: Plan, judge: Callable[..., Evaluation], eval_split: EvalSplit
) -> list[Evaluation]:
    """Score the translations of each split, and of each direction of a model of several languages.

    Args:
        dataset: the folder of the dataset.
        translations: the folder of the translations.
        stage_plan: names the inputs that must not have changed.
        judge: scores the segments of a split.
        eval_split: the split to score.
    """
    tests = read_artifact(
        translations,
        lambda _: read_translations(dataset, translations, eval_split),
        must_match=stage_plan.inputs[translations_input_name(eval_split)],
    )
    if not any(segments.directions for segments in tests):
        evaluations = [judge(segments) for segments in tests]
    else:
        data = read_artifact(dataset, lambda _: load_dataset(dataset), must_match=stage_plan.inputs["dataset"])
        train_directions = data.directions["train"]
        identifier = train_identifier(data.train, train_directions, *load_tokenizer_pair(data.tokenizer_folder))
        if eval_split == "valid":
            tests += [part for segments in tests for part in segments.split_by_direction()]
        evaluations = [
            _add_common_direction(judge(segments, identifier=identifier), segments, train_directions)
            for segments in tests
        ]
    if not _has_replaced_words(translations):
        return evaluations
    return [each.add_replaced_words_to_signatures() for each in evaluations]


def _has_replaced_words(translations: Path) -> bool:
    """Return whether unknown words of translations were replaced by words of their sources."""
    decoding = open_artifact(translations, "translate").config.get("decoding")
    return isinstance(decoding, dict) and bool(decoding.get("replace_unknown"))


def _add_common_direction(
    evaluation: Evaluation, segments: Segments, train_directions: Sequence[Direction]
) -> Evaluation:
    """The evaluation of a test set with its languages, if they are the same in all rows."""
    pairs = {each.language_pair for each in segments.directions}
    if len(pairs) != 1:
        return evaluation
    (pair,) = pairs
    return replace(evaluation, direction=pair, zero_shot=pair not in {each.language_pair for each in train_directions})


def _load_model(model: Path, device: Device, model_input: Input) -> "LoadedModel":
    from tfm.pipeline.model_io.loaded_model import load_model  # here, as it needs torch

    return load_model(model, device, must_match=model_input)
