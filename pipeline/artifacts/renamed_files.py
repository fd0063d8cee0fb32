"""Inputs of an artifact that were renamed or moved since it was made, and have the same content."""

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from tfm.data.corpus_keys.table_keys import SYNTHETIC_FILES
from tfm.pipeline.artifacts.canonical_json import JSON
from tfm.pipeline.artifacts.manifest import Input

COLUMN_KEYS = frozenset({"source", "target", "references"})  # of a corpus with a path these name columns, else files
PATH_KEYS = frozenset({"path", "synthetic", *COLUMN_KEYS, "forward", "backward", "shortlist"})


def find_renamed_paths(old: Mapping[str, Input], new: Mapping[str, Input]) -> dict[str, str]:
    """Return the new paths of inputs by their old ones, and those of the folders in which they lie.

    A path that two new ones could stand for is left out: what it names may have changed.

    Args:
        old: inputs by label, as a manifest has them.
        new: inputs by label, as they are now.
    """
    by_fingerprint: dict[str, list[tuple[str, str]]] = {}
    for label, entry in new.items():
        if entry.path is not None:
            by_fingerprint.setdefault(entry.fingerprint, []).append((label, entry.path))
    names: dict[str, set[str]] = {}
    for label, entry in old.items():
        for new_label, new_path in by_fingerprint.get(entry.fingerprint, ()):
            if entry.path is not None and label.replace(entry.path, new_path) == new_label:
                for old_name, new_name in _paths_and_folders(entry.path, new_path):
                    names.setdefault(old_name, set()).add(new_name)
    return {path: next(iter(new_paths)) for path, new_paths in names.items() if len(new_paths) == 1}


def rename_inputs(inputs: Mapping[str, Input], names: Mapping[str, str]) -> dict[str, Input]:
    """The inputs with the new paths in their labels."""
    return {_rename_label(label, each.path, names): each for label, each in inputs.items()}


def rename_paths(config: JSON, names: Mapping[str, str]) -> JSON:
    """The config of a stage with the new paths in place of the old ones, in the keys that hold paths."""
    if isinstance(config, Mapping):
        names = {**names, **_renamed_synthetic_files(config.get("synthetic"), names)}
        path_keys = PATH_KEYS if config.get("path") is None else PATH_KEYS - COLUMN_KEYS
        return {
            key: _rename_values(value, names) if key in path_keys else rename_paths(value, names)
            for key, value in config.items()
        }
    return [rename_paths(each, names) for each in config] if isinstance(config, list) else config


def _renamed_synthetic_files(folder: JSON, names: Mapping[str, str]) -> dict[str, str]:
    """The new paths of the files of text that a model made, which are no inputs by themselves, by their old ones."""
    if not isinstance(folder, str) or folder not in names:
        return {}
    return {str(PurePath(folder) / file): str(PurePath(names[folder]) / file) for file in SYNTHETIC_FILES}


def _rename_values(value: JSON, names: Mapping[str, str]) -> JSON:
    """The value of a key that holds a path, or several."""
    if isinstance(value, list):
        return [_rename_values(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else rename_paths(value, names)


def _paths_and_folders(old_path: str, new_path: str) -> Iterator[tuple[str, str]]:
    """A path before and after, and its folders before and after as long as the names below them are the same."""
    yield old_path, new_path
    old, new = PurePath(old_path), PurePath(new_path)
    while old.name == new.name and old.name:
        old, new = old.parent, new.parent
        yield str(old), str(new)


def _rename_label(label: str, path: str | None, names: Mapping[str, str]) -> str:
    """The label with the new path of its file, or of the folder that it ends with ("classes of FOLDER")."""
    if path is not None:
        return label.replace(path, names.get(path, path))
    subject, separator, folder = label.rpartition(" of ")
    return f"{subject}{separator}{names.get(folder, folder)}"
