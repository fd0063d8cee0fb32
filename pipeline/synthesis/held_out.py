"""Texts of test sets, which are not made into training text: those that the models' datasets have, and files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tfm.data.corpora.markup.problems import check_lines, holds_json_objects
from tfm.data.dataset.store import load_dataset
from tfm.data.lines import open_lines
from tfm.pipeline.artifacts.manifest import Input, read_artifact
from tfm.pipeline.cleaning.corpora import CLEAN_STAGE
from tfm.pipeline.cleaning.rules.corpora.text_keys import Keys, fold_spelling, hash_texts
from tfm.pipeline.cleaning.text_batch import Bools
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.text_files import check_text_file

TRAIN_LABEL = "train"
DATASET_FOLDER = "dataset"
"""The folder of a run's dataset, beside its model."""


@dataclass(frozen=True)
class HeldOutTexts:
    """Texts that must not become training text; they are compared without white space, normal form and case.

    Args:
        keys: of the texts, sorted.
        files: by the fingerprint of a file that is a test or validation set, its name.
        missing: datasets of the models that are not there, so that the texts of their test sets are not known.
    """

    keys: Keys
    files: Mapping[str, str]
    missing: tuple[str, ...] = ()

    def contains(self, texts: Sequence[str]) -> Bools:
        """(n,) whether each text is one of them."""
        keys = hash_texts(map(fold_spelling, texts))
        if not len(self.keys):
            return np.zeros(len(keys), np.bool_)
        indices = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.asarray(self.keys[indices] == keys)


def read_held_out_texts(models: Sequence[Input], files: Sequence[Path], reporter: Reporter) -> HeldOutTexts:
    """Return the texts of the test and validation sets that some models' lineages name, and of files.

    A dataset is looked for where it was when the model was made, and beside each model: a run may have been moved, or
    made in another working directory.

    Args:
        models: the artifacts of the models.
        files: one text a line.
        reporter: receives a warning of a file that seems to be none.

    Raises:
        DataError: a file is of another form, so that no line would be found.
    """
    for file in files:
        check_lines(open_lines(file), file, (_row_problem,))
        check_text_file(file, reporter)
    names_by_fingerprint: dict[str, str] = {}
    missing: list[str] = []
    keys = [hash_texts(map(fold_spelling, _skip_empty(open_lines(file)))) for file in files]
    neighbor_folders = [Path(model.path).parent / DATASET_FOLDER for model in models if model.path is not None]
    for fingerprint, dataset in _datasets_of(models).items():
        names_by_fingerprint |= _held_out_files(dataset)
        recorded_folders = [Path(dataset["path"])] if dataset.get("path") else []
        text_lists = (_read_texts(fingerprint, folder) for folder in [*recorded_folders, *neighbor_folders])
        texts = next((each for each in text_lists if each is not None), None)
        if texts is None:
            missing.append(str(dataset.get("path")))
        else:
            keys.append(hash_texts(map(fold_spelling, _skip_empty(texts))))
    return HeldOutTexts(
        np.unique(np.concatenate([np.empty(0, np.uint64), *keys])), names_by_fingerprint, tuple(sorted(missing))
    )


def _datasets_of(models: Sequence[Input]) -> dict[str, Mapping[str, Any]]:
    """The datasets in the lineages of models, those of models they started from too, by fingerprint."""
    datasets: dict[str, Mapping[str, Any]] = {}
    queue: list[Mapping[str, Any]] = [each.as_json() for each in models]
    while queue:
        artifact = queue.pop()
        lineage = artifact.get("lineage") or {}
        if lineage.get("stage") == "preprocess":
            datasets[str(artifact["fingerprint"])] = artifact
        elif lineage:
            queue += lineage["inputs"].values()
    return datasets


def _held_out_files(dataset: Mapping[str, Any]) -> dict[str, str]:
    """The files of a dataset's validation and test sets by fingerprint; without those that are training data too."""
    inputs = dataset["lineage"]["inputs"]
    uses = _uses_by_label(inputs)
    # of cleaned training data the files are inputs of the cleaning
    cleaned_uses = _uses_by_label((inputs.get(CLEAN_STAGE) or {}).get("lineage", {}).get("inputs", {}))
    train_fingerprints = {
        entry["fingerprint"] for use, entry in (*uses.values(), *cleaned_uses.values()) if use == TRAIN_LABEL
    }
    return {
        entry["fingerprint"]: label
        for label, (use, entry) in uses.items()
        if use != TRAIN_LABEL and entry.get("path") is not None and entry["fingerprint"] not in train_fingerprints
    }


def _uses_by_label(inputs: Mapping[str, Any]) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """The corpora among inputs, by label: the split that each is for, and its entry."""
    return {label: (label.partition(": ")[0], entry) for label, entry in inputs.items() if ": " in label}


def _read_texts(fingerprint: str, folder: Path) -> list[str] | None:
    """The texts of a dataset's held-out splits, of both sides; None if it is not there, or another is."""
    dataset_input = Input(fingerprint, str(folder))
    try:
        data = read_artifact(folder, lambda _: load_dataset(folder), "preprocess", must_match=dataset_input)
    except (DataError, OSError):
        return None
    splits = [data.valid, *data.tests.values()]
    sides = [side for split in splits for side in (*split.texts(), *split.further_references())]
    return [text for side in sides for text in side]


def _row_problem(lines: Sequence[str]) -> str | None:
    """Why lines, the first of a file, are no texts but rows; None if they are texts."""
    texts = [*_skip_empty(lines)]
    if holds_json_objects(texts):
        return "has JSON in each line, and texts are compared: write these, one a line, into a file"
    if texts and all("\t" in line for line in texts):
        return "has a tab in each line, and texts are compared: write those of each column, as by cut -f1, into a file"
    return None


def _skip_empty(texts: Iterator[str] | Sequence[str]) -> Iterator[str]:
    return (text for text in texts if text and not text.isspace())
