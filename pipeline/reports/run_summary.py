"""A trained model with what its run records: config, figures with their signatures, and the curve.

A figure's signature says with which others it is comparable: for a loss the dataset, for BLEU the texts, for seconds
the machine.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from tfm.data.errors import format_names
from tfm.data.json_documents import read_json
from tfm.pipeline.artifacts.artifact import Manifest, open_artifact
from tfm.pipeline.artifacts.canonical_json import flatten_keys
from tfm.pipeline.artifacts.manifest import runs_advice
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.translation_records import IMAGE_CONTENTS_KEY
from tfm.pipeline.reports.model_figures import (
    SHORT_FINGERPRINT_LENGTH,
    describe_machine,
    get_number,
    get_table,
    join_signature_parts,
    machine_decided_settings,
    model_and_training_settings,
    model_figures,
)
from tfm.pipeline.reports.training_curves import curve_points, read_metrics
from tfm.pipeline.scoring.evaluation.allowlist import external_metric_commands
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_from_json, raise_scores_file_errors
from tfm.pipeline.scoring.metrics.registry import Score
from tfm.pipeline.tasks.abilities import DEFAULT_TASK

VALIDATION_TEST_NAME = "valid"  # no test set may have this name


@dataclass(frozen=True)
class Curve:
    """The curve of validation loss.

    Args:
        steps: the number of updates at each validation.
        seconds: of updates up to it.
        losses: the loss.
    """

    steps: list[int]
    seconds: list[float]
    losses: list[float]


@dataclass(frozen=True)
class RunSummary:
    """A model with all that is known of it.

    Args:
        name: of the run.
        model: its manifest.
        config: every setting by dotted key.
        figures: by name, those of validation as valid.loss, ..., those of the main test set, or of the one that was
            asked for, as test.bleu, ...
        curve: of validation loss.
        notes: parts of the run that are left out, and why.
        folder: of the run; None for a model that lies alone.
    """

    name: str
    model: Manifest
    config: Mapping[str, object]
    figures: Mapping[str, Score]
    curve: Curve | None = None
    notes: Sequence[str] = ()
    folder: Path | None = None

    @property
    def architecture(self) -> str:
        return str(self.config.get("model.architecture", "transformer"))

    @property
    def task(self) -> str:
        return str(self.config.get("model.task", DEFAULT_TASK))


def read_run(folder: Path, name: str, test: str | None = None) -> RunSummary:
    """Read the model in the folder of a run, or in its own folder, with the scores and curve that belong to it.

    Args:
        folder: of the run or the model.
        name: of the run.
        test: the test set whose scores are read; None: the main one; VALIDATION_TEST_NAME: the validation split.

    Raises:
        DataError: there is no model.
    """
    if not folder.exists():
        raise DataError("there is no such folder", file=folder)
    of_model = (folder / "manifest.json").exists() or not folder.is_dir()
    if not of_model and not (folder / "model").exists():
        problem = runs_advice(folder, folder).removeprefix("; ") or "has no model yet: `tfm train` makes it"
        raise DataError(problem, file=folder)
    model = open_artifact(folder if of_model else folder / "model", "train")
    run = folder if not of_model else folder.parent if folder.name == "model" else None
    notes = _changed_settings(model)
    config = {
        **model_and_training_settings(model),
        "seed": model.seed,
        "settings": machine_decided_settings(model),
        "init_from": None,
    }
    config |= {label: each.fingerprint[:SHORT_FINGERPRINT_LENGTH] for label, each in model.inputs.items()}
    figures, curve = model_figures(model), None
    if run is not None:
        scores, translations = _find_scores(run, model, scores_folder_suffix(test), notes)
        notes += [
            f"has scores by the command: {command}"
            for command in external_metric_commands(scores.config if scores else {})
        ]
        config |= {} if scores is None else scores.config
        config |= {} if translations is None else translations.config
        figures |= {} if scores is None else _test_scores(scores, translations, test, notes)
        if metrics := read_training_metrics(run, model, notes):
            figures |= _training_speed(metrics, model)
            curve = _loss_curve(metrics, model)
    return RunSummary(name, model, dict(flatten_keys(config)), figures, curve, notes, run)


def _changed_settings(model: Manifest) -> list[str]:
    """Settings that were changed once the training had begun, which the config alone does not tell."""
    changes = model.figures.get("changed_during_training")
    words = [each for each in changes if isinstance(each, str)] if isinstance(changes, list) else []
    return [f"settings changed during its training: {'; '.join(words)}"] if words else []


def run_name(folder: Path) -> str:
    """The name of a run, by its folder or that of its model."""
    path = Path(os.path.abspath(folder))  # a link's target would be a version of it
    return path.parent.name if path.name == "model" and path.parent.name else path.name


def scores_folder_suffix(test: str | None) -> str:
    """The ending of the names of scores/ and translations/ that are of the validation split."""
    return "-valid" if test == VALIDATION_TEST_NAME else ""


def _find_scores(run: Path, model: Manifest, suffix: str, notes: list[str]) -> tuple[Manifest | None, Manifest | None]:
    """Scores of the model, and the translations they are of, if there are any."""
    folder, translations_name = run / f"scores{suffix}", f"translations{suffix}"
    if not folder.exists():
        return None, None
    scores = open_artifact(folder, "evaluate")
    scored_model = scores.inputs.get("model")
    if scored_model is None or scored_model.fingerprint != model.fingerprint:
        notes.append(
            f"{folder.name}/ belong to another model than model/, and are omitted; `tfm evaluate` makes them again"
        )
        return None, None
    if translations_name not in scores.inputs or not (run / translations_name).exists():
        return scores, None
    translations = open_artifact(run / translations_name, "translate")
    is_scored = translations.fingerprint == scores.inputs[translations_name].fingerprint
    return scores, translations if is_scored else None


def _test_scores(
    scores: Manifest, translations: Manifest | None, test: str | None, notes: list[str]
) -> dict[str, Score]:
    """The scores of one test set; the fingerprints of its texts are part of their signatures."""
    path = scores.path / "scores.json"
    with raise_scores_file_errors(path, remedy="score again"):
        by_name = {
            entry.name: entry
            for entry in evaluations_from_json(read_json(scores.folder / "scores.json", displayed_path=path))
        }
        if test is not None and test not in by_name:
            notes.append(f"was not scored on {test}, but on {format_names(by_name)}")
            return {}
        evaluation = by_name[next(iter(by_name)) if test is None else test]
        texts = join_signature_parts(_text_fingerprints(evaluation.name, scores, translations))
        return {
            f"test.{n}": Score(float(each.score), f"{each.signature}|{texts}") for n, each in evaluation.scores.items()
        }


def _text_fingerprints(test: str, scores: Manifest, translations: Manifest | None) -> dict[str, str]:
    """The fingerprints of a test set's texts, which distinguish it from others."""
    if translations is not None:
        kinds = {kind: translations.files.get(f"{test}.{kind}.txt") for kind in ("source", "reference")}
        number = 2
        while entry := translations.files.get(f"{test}.reference.{number}.txt"):
            kinds[f"reference_{number}"], number = entry, number + 1
        fingerprints = {
            kind: entry.sha256[:SHORT_FINGERPRINT_LENGTH] for kind, entry in kinds.items() if entry is not None
        }
        contents = get_table(translations.figures, test).get(IMAGE_CONTENTS_KEY)
        if isinstance(contents, str):  # images: their sources are names
            fingerprints = {
                "images": contents[:SHORT_FINGERPRINT_LENGTH],
                **{kind: each for kind, each in fingerprints.items() if kind != "source"},
            }
        return fingerprints
    if "dataset" in scores.inputs:
        lineage_inputs = get_table(scores.inputs["dataset"].lineage, "inputs")
        parts = [
            str(each.get("fingerprint")) for label, each in lineage_inputs.items() if label.startswith(f"{test}: ")
        ]
        return {"texts": " + ".join(parts)}
    text_inputs = {label: each for label, each in scores.inputs.items() if label not in ("model", "hypotheses")}
    return {
        label.removesuffix("_1"): each.fingerprint[:SHORT_FINGERPRINT_LENGTH] for label, each in text_inputs.items()
    }


def read_training_metrics(run: Path, model: Manifest, notes: list[str]) -> list[dict[str, object]]:
    """Read a run's metrics.jsonl if it is of the training that the model came from; else add a note.

    Args:
        run: the folder of the run.
        model: the manifest of the model.
        notes: the list to which a note is added.

    Returns:
        The lines; none if they are of another training.
    """
    file = run / "training" / "metrics.jsonl"
    lines = read_metrics(file) if file.exists() else []
    if lines and not _is_log_of_model(lines, file, model):
        notes.append("training/ belongs to another training than model/: its curve and tokens/s are omitted")
        return []
    return lines


def _is_log_of_model(lines: Sequence[Mapping[str, object]], file: Path, model: Manifest) -> bool:
    """Whether a metrics.jsonl belongs to the training of a model: the one in its manifest or, if an old manifest has
    none, one with figures that agree with the model's.
    """
    if (digest := model.figures.get("metrics_sha256")) is not None:
        return sha256(file.read_bytes()).hexdigest() == str(digest)
    steps, losses = curve_points(lines, "valid", "loss")
    if not steps or steps[-1] != model.figures.get("updates"):
        return False
    losses_by_step = dict(zip(steps, losses, strict=True))
    num_steps, loss = model.figures.get("steps"), get_number(get_table(model.figures, "validation"), "loss")
    if isinstance(num_steps, list) and len(num_steps) == 1 and loss is not None:
        return bool(losses_by_step.get(num_steps[0]) == loss)
    return _training_seconds_match(lines, model)


def _training_seconds_match(lines: Sequence[Mapping[str, object]], model: Manifest) -> bool:
    """Whether a training could have taken as long as the model's: its clock goes on to the end of the last validation,
    and nothing but updates comes in between."""
    steps, clock = curve_points(lines, "train", "seconds")
    validation_steps, durations = curve_points(lines, "valid", "seconds")
    total = get_number(model.figures, "training_seconds")
    if not steps or total is None:
        return True
    minimum = clock[-1] + sum(
        duration for step, duration in zip(validation_steps, durations, strict=True) if step >= steps[-1]
    )
    return abs(total - minimum) < 0.01 if steps[-1] == validation_steps[-1] else minimum < total + 0.01


def _steps_and_seconds(metrics: Sequence[Mapping[str, object]], model: Manifest) -> tuple[list[int], list[float]]:
    """Steps, and the seconds that updates had taken up to them: those of validations are counted out."""
    steps, seconds = curve_points(metrics, "train", "seconds")
    validation_steps, durations = curve_points(metrics, "valid", "seconds")
    updates, total = (get_number(model.figures, name) or 0.0 for name in ("updates", "training_seconds"))
    end = int(updates)
    if end > max(steps, default=0):  # the last updates are too few for a line; all is over after a last validation
        steps, seconds, validation_steps = (
            [*steps, end],
            [*seconds, total],
            [min(step, end - 1) for step in validation_steps],
        )
    of_updates = [
        until - sum(duration for at_step, duration in zip(validation_steps, durations, strict=True) if at_step < step)
        for step, until in zip(steps, seconds, strict=True)
    ]
    return [0, *steps], [0.0, *of_updates]


def _training_speed(metrics: Sequence[Mapping[str, object]], model: Manifest) -> dict[str, Score]:
    """Predicted tokens a second over all updates."""
    steps, seconds = _steps_and_seconds(metrics, model)
    rates = dict(zip(*curve_points(metrics, "train", "tokens_per_second"), strict=True))
    spans = [(step, end - begin) for step, (begin, end) in zip(steps[1:], pairwise(seconds), strict=True)]
    pairs = [(rates[step] * span, span) for step, span in spans if step in rates and span > 0]
    if not pairs:
        return {}
    rate = sum(tokens for tokens, _ in pairs) / sum(span for _, span in pairs)
    return {
        "tokens_per_second": Score(
            rate, f"task:{get_table(model.config, 'model').get('task')}|{describe_machine(model)}"
        )
    }


def _loss_curve(metrics: Sequence[Mapping[str, object]], model: Manifest) -> Curve:
    """Validation loss over updates and seconds."""
    import numpy as np

    steps, losses = curve_points(metrics, "valid", "loss")
    return Curve(steps, [float(each) for each in np.interp(steps, *_steps_and_seconds(metrics, model))], losses)
