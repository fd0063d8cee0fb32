"""Figures in the manifest of a model, each with a signature that says with which others it is comparable."""

import math
import sys
from collections.abc import Mapping
from typing import Any

from tfm.model.config import NEWER_MODEL_KEYS, ModelConfig
from tfm.pipeline.artifacts.artifact import Manifest
from tfm.pipeline.scoring.metrics.registry import Score
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.training_config import NEWER_TRAINING_KEYS, TrainingConfig

SHORT_FINGERPRINT_LENGTH = 12  # digits of a fingerprint
SPEED_FIELDS = ("device", "threads", "parallel", "world_size")
"""Settings of a training that name the machine and precision by which it was computed."""


def get_number(content: Mapping[str, Any], name: str) -> float | None:
    """A figure of a manifest, or None; infinity is stored as a text."""
    value = content.get(name)
    if isinstance(value, str):
        return math.inf if value == "inf" else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) <= sys.float_info.max else None


def get_table(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The table of a manifest with this name; an empty one if there is none."""
    table = content.get(name)
    return table if isinstance(table, Mapping) else {}


def machine_decided_settings(model: Manifest) -> dict[str, object]:
    """Settings that the machine decided in training: device, precision, threads, ..."""
    return {name: value for name, value in get_table(model.figures, "settings").items() if name != "torch"}


def model_figures(model: Manifest) -> dict[str, Score]:
    """The figures in the manifest of a model."""
    config, validation = get_table(model.config, "model"), get_table(model.figures, "validation")
    settings = {
        label: input_.fingerprint[:SHORT_FINGERPRINT_LENGTH]
        for label, input_ in model.inputs.items()
        if label == "dataset"
    }
    settings |= {name: str(config[name]) for name in ("task", "block") if config.get(name) is not None}
    settings |= _prediction_settings(config)
    bleu = f"{validation.get('bleu_signature')}|{join_signature_parts(settings)}"
    values = {
        "parameters": (get_number(model.figures, "parameters"), ""),
        "updates": (get_number(model.figures, "updates"), ""),
        "seconds": (get_number(model.figures, "training_seconds"), describe_machine(model)),
        **{
            f"valid.{name}": (get_number(validation, name), join_signature_parts(settings))
            for name in ("loss", "perplexity", "accuracy")
        },
        "valid.bleu": (get_number(validation, "bleu"), bleu),
    }
    figures = {name: Score(value, signature) for name, (value, signature) in values.items() if value is not None}
    extra_scores = extra_validation_scores(validation).items()
    return figures | {
        f"valid.{name}": Score(score.score, f"{score.signature}|{join_signature_parts(settings)}")
        for name, score in extra_scores
    }


def extra_validation_scores(validation: Mapping[str, Any]) -> dict[str, Score]:
    """The scores beside BLEU among the figures of validation in a manifest."""
    scores = {}
    for name, entry in get_table(validation, "scores").items():
        score = get_number(entry, "score") if isinstance(entry, Mapping) else None
        if score is not None:
            scores[name] = Score(score, str(entry.get("signature")))
    return scores


def _prediction_settings(config: Mapping[str, Any]) -> dict[str, str]:
    """The predictions of validation: the hidden share of span corruption; the window of word vectors.

    Texts of word vectors are read whole, as nothing is left out of them.
    """
    abilities = TASK_SPECS.get(str(config.get("task")))
    if abilities is not None and abilities.hides_spans:
        spans = get_table(config, "span_corruption")
        return {"hidden": f"{spans.get('share')}-in-spans-of-{spans.get('mean_length')}"}
    if abilities is None or not abilities.within_window:
        return {}
    words = get_table(config, "word_vectors")
    window = f"1-to-{words.get('window')}" if words.get("shrink") else str(words.get("window"))
    return {
        "architecture": str(config.get("architecture")),
        "window": window,
        "noise-words": str(words.get("negatives") or "none"),
    }


def join_signature_parts(parts: Mapping[str, object]) -> str:
    """A signature of parts, without those that are None."""
    return "|".join(f"{key}:{value}" for key, value in parts.items() if value is not None)


def describe_machine(model: Manifest) -> str:
    """The machine on which a model was trained, as far as speed goes."""
    hardware, versions = (get_table(model.provenance, name) for name in ("hardware", "versions"))
    settings = {name: value for name, value in machine_decided_settings(model).items() if name in SPEED_FIELDS}
    return join_signature_parts({**hardware, **settings, "torch": versions.get("torch")})


def model_and_training_settings(model: Manifest) -> dict[str, Any]:
    """The config of a model, with the defaults of keys that its manifest leaves out: see NEWER_MODEL_KEYS."""
    newer = (("model", ModelConfig, NEWER_MODEL_KEYS), ("training", TrainingConfig, NEWER_TRAINING_KEYS))
    settings = dict(model.config)
    for part, config, keys in newer:
        if part in settings:
            defaults = {key: config.model_fields[key].default for key in keys}
            settings[part] = {**defaults, **get_table(settings, part)}
    return settings
