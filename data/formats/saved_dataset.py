"""Folders that `save_to_disk` of Hugging Face `datasets` wrote, checked before that library opens them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError
from tfm.data.formats.arrow_files import read_arrow
from tfm.data.formats.hub.hub_folder import resolve_inside_folder
from tfm.data.json_documents import parse_json
from tfm.data.safe_files import read_bounded_file

SPLITS_FILE, STATE_FILE, INFO_FILE = "dataset_dict.json", "state.json", "dataset_info.json"


def find_saved_splits(folder: Path) -> dict[str, Path] | None:
    """The folder of each split; None if no `save_to_disk` wrote this folder. A dataset without splits is `train`.

    Raises:
        DataError: a split's name leads out of the folder.
    """
    if (folder / SPLITS_FILE).is_file():
        names = _read_document(folder, SPLITS_FILE).get("splits")
        if not isinstance(names, list) or not names:
            raise DataError("names no splits", file=folder / SPLITS_FILE)
        split_folders = {str(name): resolve_inside_folder(folder, name, folder / SPLITS_FILE) for name in names}
        for name, split_folder in split_folders.items():
            if not os.path.isdir(split_folder):
                raise DataError(f"names {name!r:.80}, and there is no such folder in it", file=folder / SPLITS_FILE)
        return split_folders
    return {"train": folder} if (folder / STATE_FILE).is_file() else None


def check_saved_dataset(folder: Path) -> None:
    """Check one split before it is loaded: its names, and that no file unpacks to more than it holds.

    Raises:
        DataError: a name leads out of the folder, or a file is not what `save_to_disk` writes.
        ValueError: an Arrow file is not plain; see `read_arrow`.
    """
    if "::" in str(folder) or "://" in str(folder):
        raise DataError("its path has two colons, which `datasets` takes for an archive: rename it", file=folder)
    described = _feature_types(_read_document(folder, INFO_FILE).get("features"), folder)
    entries = _read_document(folder, STATE_FILE).get("_data_files")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError("names no data files", file=folder / STATE_FILE)
    for entry in entries:
        file = resolve_inside_folder(folder, entry.get("filename"), folder / STATE_FILE)
        if not os.path.isfile(file):
            raise DataError(f"names {entry['filename']!r:.80}, and there is no such file", file=folder / STATE_FILE)
        schema = next(read_arrow(file)).schema
        if described is not None and {field.name: field.type for field in schema} != described:
            # To convert them, `datasets` might need more memory than there is.
            raise DataError(f"describes other columns than those of {file.name}", file=folder / INFO_FILE)


def _feature_types(features: object, folder: Path) -> dict[str, Any] | None:
    """The Arrow type of each column that a description has; None if there is none."""
    if features is None:
        return None
    if not isinstance(features, Mapping):
        raise DataError("its features are no object", file=folder / INFO_FILE)
    import datasets

    return {field.name: field.type for field in datasets.Features.from_dict(dict(features)).arrow_schema}


def _read_document(folder: Path, name: str) -> dict[str, Any]:
    file = resolve_inside_folder(folder, name, folder / name)
    try:
        return parse_json(read_bounded_file(file, follow_symlinks=True))
    except FileNotFoundError:
        raise DataError("no such file: the dataset is not whole", file=file) from None
    except ValueError as error:
        raise DataError(str(error), file=file) from None
