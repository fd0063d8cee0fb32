"""The metadata of a dataset, dataset.json: its splits, their corpora and languages."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tfm.data.dataset.directions import Directions
from tfm.data.errors import DataError
from tfm.data.images.augmentation import Augmentation
from tfm.data.json_documents import read_json

DATASET_FILE = "dataset.json"
TEST_NAME_PATTERN = r"(?!(train|valid|tokenizer)$)\w[\w .-]*"


def read_metadata(folder: Path) -> dict[str, Any]:
    """dataset.json: splits, tests in order, batch_tokens, and of each training corpus rows, weight and, where it does
    not take part in all, epochs."""
    try:
        metadata = read_json(folder / DATASET_FILE)
    except FileNotFoundError:
        raise DataError(f"not a dataset (no {DATASET_FILE}): make one with `tfm preprocess`", file=folder) from None
    tests, batch_tokens = metadata.get("tests"), metadata.get("batch_tokens")
    if not isinstance(tests, list) or not all(
        isinstance(entry, str) and re.fullmatch(TEST_NAME_PATTERN, entry) for entry in tests
    ):
        raise DataError("has no valid `tests`", file=folder / DATASET_FILE)
    if type(batch_tokens) is not int or not 0 < batch_tokens < 2**40:
        raise DataError("has no valid `batch_tokens`", file=folder / DATASET_FILE)
    shard_rows = metadata.get("shard_rows", 1)
    if type(shard_rows) is not int or not 0 < shard_rows < 2**40:
        raise DataError("has no valid `shard_rows`", file=folder / DATASET_FILE)
    corpora = metadata.get("train_corpora")
    if not isinstance(corpora, list) or not all(isinstance(entry, dict) for entry in corpora):
        raise DataError("has no valid `train_corpora`", file=folder / DATASET_FILE)
    return metadata


def write_metadata(
    folder: Path,
    *,
    tests: Sequence[str],
    batch_tokens: int,
    train_corpora: Sequence[dict[str, Any]],
    directions: Directions | None = None,
    augmentation: Augmentation | None = None,
    shard_rows: int | None = None,
) -> None:
    """Write dataset.json, which `load_dataset` reads.

    Args:
        folder: of the dataset.
        tests: the names of the test sets, the main one first.
        batch_tokens: the budget of a batch.
        train_corpora: rows, weight and epochs of each training corpus.
        directions: of each split, where the dataset has languages.
        augmentation: variation of images in training.
        shard_rows: rows above which an epoch is made shard by shard; None: the default.
    """
    metadata = {
        "splits": ["train", "valid", *tests],
        "tests": list(tests),
        "batch_tokens": batch_tokens,
        "train_corpora": list(train_corpora),
    }
    if directions:
        metadata["directions"] = {
            split: [[each.source, each.target, each.rows] for each in split_directions]
            for split, split_directions in directions.items()
        }
    if augmentation is not None:
        metadata["augmentation"] = asdict(augmentation)
    if shard_rows is not None:
        metadata["shard_rows"] = shard_rows
    write_json(folder / DATASET_FILE, metadata)


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
