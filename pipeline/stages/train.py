"""The train stage: a dataset to a model. `training/` has the work in progress, `model/` the result."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfm.model.config import NEWER_MODEL_KEYS, ModelConfig
from tfm.pipeline.alignment.pharaoh import links_input
from tfm.pipeline.artifacts.artifact import Plan, is_fresh, open_artifact
from tfm.pipeline.artifacts.manifest import Manifest
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.model_io.pretrained_vectors import VECTOR_KEYS, vector_inputs
from tfm.pipeline.runtime.progress import NullReporter, Reporter
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.training.early_stopping import ValidationCallback
from tfm.pipeline.training.init_from import (
    check_adapter_fits,
    check_pretrained_fits,
    config_from_pretrained,
    keeps_image_statistics,
)
from tfm.pipeline.training_config import NEWER_TRAINING_KEYS, TrainingConfig, ValidationScoreName

# Where training is done and what is shown of it does not change what is trained.
NON_TRAINING_KEYS = {"device", "threads", "parallel", "log_every", "tensorboard", "trackers", "init_from"}
NON_TRAINING_KEYS |= {"shard", "recompute", "elastic", "restarts"}
# What says nothing unless a model of images is given to start from, of which the plan has a part of its own.
NON_TRAINING_KEYS |= {"image_statistics"}
# Of [decoding]: validation has a beam of its own, one hypothesis, and no words that are forced or forbidden.
KEYS_UNUSED_IN_VALIDATION = (
    *("beam", "n_best", "batch_sentences", "strategy", "temperature", "top_k", "top_p", "seed"),
    *(
        "forbidden",
        "forced",
        "replace_unknown",
        "shortlist",
        "mbr_candidates",
        "mbr_size",
        "mbr_utility",
        "mbr_pruning",
    ),
)

EVALUATION_KEYS_BY_METRIC: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("bleu", "bleu_paper"), ("bleu_tokenize", "lowercase")),
    **dict.fromkeys(("chrf", "chrf++", "exact_match", "cer", "per"), ("lowercase",)),
    **dict.fromkeys(("rouge1", "rouge2", "rougeL", "rougeLsum"), ("rouge_tokenize", "rouge_stemmer")),
    "meteor": ("wordnet",),
    "wer": ("words", "lowercase"),
    "macro_f1": ("labels",),
    "entity_f1": ("entities",),
}
"""The keys of [evaluation] that a score of validation reads."""

# torch is imported where it is needed: a stage that is up to date reports so without it


def plan_model(
    config: TrainingConfig,
    model: ModelConfig,
    decoding: DecodingConfig,
    dataset: Path,
    out: Path,
    *,
    seed: int,
    evaluation: EvaluationConfig,
    pretrained: Manifest | None = None,
) -> Plan:
    """Return the plan of `train`.

    Args:
        config: the [training] part of a recipe.
        model: the [model] part of a recipe.
        decoding: the [decoding] part of a recipe.
        dataset: the folder of the dataset.
        out: the folder of the run; the model lies in `out`/model.
        seed: the seed of the run.
        evaluation: the [evaluation] part of a recipe.
        pretrained: the manifest of the model that it starts from, verified; None for none.

    Raises:
        DataError: the model to start from has another tokenizer.
    """
    data = open_artifact(dataset, "preprocess")
    inputs = {"dataset": data.as_input()}
    if pretrained is not None:
        check_pretrained_fits(pretrained, model, data, config.lora)
        inputs["init_from"] = pretrained.as_input()
    inputs |= vector_inputs(model)
    guide = config.guided_alignment
    inputs |= links_input(None if guide is None else guide.links)
    parts: dict[str, Any] = {
        "training": _training_settings(config),
        "model": model.model_dump(mode="json", exclude=_keys_without_effect(model)),
    }
    if pretrained is not None and keeps_image_statistics(pretrained, data, config.image_statistics):
        parts["image_statistics"] = config.image_statistics
    abilities = TASK_SPECS[model.task]
    metrics = config.select_validation_scores(labels=abilities.labels is not None)
    if metrics and abilities.translates:
        parts["decoding"] = _validation_decoding(config, decoding)
    if metrics and abilities.gives_hypotheses and (scores := _validation_score_settings(evaluation, dataset, metrics)):
        parts["evaluation"] = scores
    return Plan(stage="train", folder=out / "model", config=parts, inputs=inputs, seed=seed)


def _training_settings(config: TrainingConfig) -> dict[str, Any]:
    """Return the part of [training] that changes what is trained.

    Later keys at their default are left out, so that models of the time before them stay fresh, and so is the place of
    links, which are an input.
    """
    fields = TrainingConfig.model_fields
    unset_keys = {name for name in NEWER_TRAINING_KEYS if getattr(config, name) == fields[name].default}
    settings = config.model_dump(mode="json", exclude=NON_TRAINING_KEYS | unset_keys)
    if config.guided_alignment is not None:
        settings["guided_alignment"].pop("links")
    return settings


def _keys_without_effect(model: ModelConfig) -> set[str]:
    """Return the keys of [model] that have no effect on the training: the place of vectors, keys of other tasks, and
    later keys at their default, so that models of the time before them stay fresh.
    """
    unset_keys = {name for name in NEWER_MODEL_KEYS if getattr(model, name) == ModelConfig.model_fields[name].default}
    return (
        unset_keys | set(VECTOR_KEYS.values()) | (set() if TASK_SPECS[model.task].hides_spans else {"span_corruption"})
    )


def _validation_decoding(config: TrainingConfig, decoding: DecodingConfig) -> dict[str, Any]:
    """The part of [decoding] that validation uses: another beam for the tests is no reason to train again.

    Validation searches, without forced or forbidden words.
    """
    unused = set(KEYS_UNUSED_IN_VALIDATION)
    if config.validation.beam == 1:
        unused |= {"length_norm", "alpha"}
    return decoding.model_dump(mode="json", exclude=unused)


def _validation_score_settings(
    evaluation: EvaluationConfig, dataset: Path, metrics: Sequence[ValidationScoreName]
) -> dict[str, Any]:
    """Return the part of [evaluation] that validation uses, where it differs from the rule before validation used any:
    cased, and by 13a.

    Models of that time thus stay fresh, and a tokenizer that "auto" finds is as good as its name.
    """
    effective_keys = {key for name in metrics for key in EVALUATION_KEYS_BY_METRIC.get(name, ())}
    parts = evaluation.model_dump(mode="json", include=effective_keys)
    if parts.get("bleu_tokenize") == "auto":
        from tfm.data.dataset.directions import read_directions, rows_by_direction
        from tfm.data.dataset.metadata import DATASET_FILE, read_metadata
        from tfm.data.dataset.store import load_split
        from tfm.pipeline.scoring.metrics.bleu_tokenizer import choose_tokenizer

        directions = read_directions(read_metadata(dataset), dataset / DATASET_FILE)
        valid = load_split(dataset / "valid", texts=True)
        direction_splits = [valid.select_rows(rows) for rows in rows_by_direction(directions.get("valid", ())).values()]
        if all(choose_tokenizer([part.texts()[1]]).name == "13a" for part in direction_splits or [valid]):
            parts["bleu_tokenize"] = "13a"
    default = {**EvaluationConfig().model_dump(mode="json"), "bleu_tokenize": "13a"}
    return {key: value for key, value in parts.items() if value != default[key]}


def train(
    config: TrainingConfig,
    model: ModelConfig,
    decoding: DecodingConfig,
    dataset: Path,
    out: Path,
    *,
    seed: int,
    evaluation: EvaluationConfig,
    command: Sequence[str],
    reporter: Reporter,
    on_validation: ValidationCallback = lambda validation, is_last: None,
) -> None:
    """Train a model on a dataset; the work in progress lies in `out`/training, the model in `out`/model.

    A training goes on from the newest checkpoint in `out`/training where that is of the same plan. Under torchrun,
    every process calls this function.

    Args:
        config: the [training] part of a recipe.
        model: the [model] part.
        decoding: the [decoding] part.
        dataset: the folder of the dataset.
        out: the folder of the run.
        seed: the seed of the run.
        evaluation: the [evaluation] part.
        command: the command line, for the manifest.
        reporter: receives messages.
        on_validation: called with the figures of each validation.

    Raises:
        RecipeError: validation cannot decode in the precision that `decoding` names.
        StoppedError: SIGTERM or Ctrl-C, after all is saved.
    """
    rank_reporter = reporter if os.environ.get("RANK", "0") == "0" else NullReporter()
    first = None
    if config.init_from is not None:
        config = config.model_copy(update={"init_from": str(resolve_model_folder(Path(config.init_from)))})
        first = open_artifact(Path(str(config.init_from)), "train")
        model = config_from_pretrained(first, model)
        check_adapter_fits(first, model, config.lora)
    stage_plan = plan_model(config, model, decoding, dataset, out, seed=seed, evaluation=evaluation, pretrained=first)
    if is_fresh(stage_plan, rank_reporter):
        return
    from tfm.pipeline.runtime.devices import decoding_precision, resolve_device
    from tfm.pipeline.training.session import train_and_publish

    if "decoding" in stage_plan.config:  # validation decodes, after the first updates
        decoding_precision(decoding.precision, resolve_device(config.device))

    train_and_publish(
        stage_plan,
        config,
        model,
        decoding,
        evaluation,
        dataset,
        command=command,
        reporter=rank_reporter,
        on_validation=on_validation,
    )
