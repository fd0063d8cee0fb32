"""The contents of a run's folder: artifacts, work in progress, trainings set aside, and the size of each."""

import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tfm.pipeline.artifacts.folder_lock import current_writer
from tfm.pipeline.artifacts.manifest import MANIFEST_FILE, Manifest, open_artifact
from tfm.pipeline.artifacts.swap import list_leftovers_beside
from tfm.pipeline.errors import DataError
from tfm.pipeline.scoring.evaluation.allowlist import external_metric_commands

PART_ORDER = ("clean", "tokenizer", "dataset", "training", "model", "translations", "scores", "synthetic")
TRAINING_FOLDER = re.compile(r"training(\.old-\d+)?")
DAMAGED_STATUS = "damaged"


@dataclass(frozen=True)
class RunPart:
    """A folder of a run.

    Args:
        name: of the folder.
        kind: the stage that made it, training, or damaged.
        state: in words.
        bytes: the sizes of its files.
        created_at: the time at which it was made.
        fingerprint: of the artifact.
        steps: of a training, those of its checkpoints.
        writer: the process that writes it now.
        commands: of external metrics in its settings.
    """

    name: str
    kind: str
    state: str
    bytes: int
    created_at: str | None = None
    fingerprint: str | None = None
    steps: list[int] = field(default_factory=list)
    writer: str | None = None
    commands: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The entry in the report of `tfm inspect`, whose keys stay as they are."""
        return {"made" if name == "created_at" else name: value for name, value in asdict(self).items()}


def is_run_folder(folder: Path) -> bool:
    """Whether a folder is that of a run: no artifact itself, it holds some, or a training."""
    holds = (
        (part / MANIFEST_FILE).exists() or TRAINING_FOLDER.fullmatch(part.name) for part in _artifact_folders(folder)
    )
    return not (folder / MANIFEST_FILE).exists() and any(holds)


def describe_run(folder: Path) -> list[RunPart]:
    """Every artifact and training in the folder of a run, verified, in the order of the stages."""
    parts: dict[str, Manifest | str] = {}
    for path in _artifact_folders(folder):
        if not TRAINING_FOLDER.fullmatch(path.name):
            try:
                parts[path.name] = open_artifact(path)
            except DataError as error:
                parts[path.name] = str(error)
    manifests = {name: each for name, each in parts.items() if isinstance(each, Manifest)}
    return [
        _describe_training(path) if path.name not in parts else _describe_artifact(path, parts[path.name], manifests)
        for path in _artifact_folders(folder)
    ]


def run_parts_as_json(folder: Path, parts: list[RunPart]) -> dict[str, Any]:
    """Return the overview as JSON, with drafts and replaced versions, which processes left that were killed."""
    names = {*PART_ORDER, *(each.name for each in parts)}
    rest = [path for name in sorted(names) for path in list_leftovers_beside(folder / name)]
    return {
        "path": str(folder),
        "bytes": count_bytes(folder),
        "parts": [each.as_json() for each in parts],
        "left_over": {path.name: count_bytes(path) for path in rest},
    }


def count_bytes(folder: Path) -> int:
    """The sizes of all files under a folder, in bytes; a link counts as itself."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue  # removed meanwhile: a training goes on
    return total


def _artifact_folders(folder: Path) -> Iterator[Path]:
    """Folders of artifacts and trainings, in the order of the stages, others after them by name."""
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.is_dir() or entry.is_symlink()]
    except OSError:
        return
    order = {name: number for number, name in enumerate(PART_ORDER)}
    visible_names = [name for name in names if not name.startswith(".")]
    for name in sorted(visible_names, key=lambda name: (order.get(name.partition(".")[0], len(PART_ORDER)), name)):
        if name in PART_ORDER or TRAINING_FOLDER.fullmatch(name) or (folder / name / MANIFEST_FILE).exists():
            yield folder / name


def _describe_artifact(path: Path, manifest: Manifest | str, manifests: dict[str, Manifest]) -> RunPart:
    num_bytes, at_work = count_bytes(Path(os.path.realpath(path))), current_writer(path)
    if isinstance(manifest, str):
        return RunPart(path.name, DAMAGED_STATUS, f"damaged: {manifest}", num_bytes, writer=at_work)
    other_inputs = [
        label
        for label, input_ in manifest.inputs.items()
        if label in manifests and manifests[label].fingerprint != input_.fingerprint and label != path.name
    ]
    state = f"whole, but made from another {' and '.join(other_inputs)} than is here" if other_inputs else "whole"
    return RunPart(
        path.name,
        manifest.stage,
        state,
        num_bytes,
        manifest.provenance["created"],
        manifest.fingerprint,
        writer=at_work,
        commands=list(external_metric_commands(manifest.config)),
    )


def _describe_training(folder: Path) -> RunPart:
    names = (path.name.removeprefix("step-") for path in (folder / "checkpoints").glob("step-*"))
    steps = sorted(int(name) for name in names if name.isdecimal())
    status = "set aside; remove it where it is not needed" if folder.name != "training" else "work in progress"
    return RunPart(folder.name, "training", status, count_bytes(folder), steps=steps, writer=current_writer(folder))
