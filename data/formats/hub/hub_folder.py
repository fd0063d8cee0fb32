"""Folders as the Hugging Face Hub has them: which data files are of which split.

The card (README.md) may name them, else their own names and folders say it, by the rules of `datasets`. A file that
a card or a listing names is read only if it lies inside the folder; no network is used, and no script is run.
"""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from tfm.data.compression.files import strip_compression_ending
from tfm.data.errors import DataError, format_names
from tfm.data.formats.class_labels import ClassNames, card_class_names
from tfm.data.formats.hub.split_names import (
    find_differing_names,
    folders_with_same_files,
    group_by_split,
    missing_shard,
)
from tfm.data.formats.hub.yaml_documents import YamlNode, parse_yaml
from tfm.data.safe_files import read_bounded_file, resolve_path_inside

CARD_FILE, SETTINGS_FILE = "README.md", ".huggingface.yaml"
# Endings of data files, first those that win a draw.
FORMAT_BY_EXTENSION = {
    "parquet": "parquet", "arrow": "arrow", "jsonl": "jsonl", "json": "jsonl", "ndjson": "jsonl", "csv": "csv",
    "tsv": "tsv", "txt": "lines",
}  # fmt: skip
NON_DATA_FILES = {
    CARD_FILE,
    "config.json",
    "dataset_info.json",
    "dataset_infos.json",
    "dataset_dict.json",
    "state.json",
}
MAX_FILES = 100_000
MAX_PATTERN_COMPARISONS = 10_000_000
AUDIO_ENDINGS = (".wav", ".mp3", ".flac", ".ogg", ".opus", ".m4a")
SPLIT_NAME_PATTERN = re.compile(r"\w+(\.\w+)*")
# Keys of a configuration that do not change how files are read.
KNOWN_CONFIGURATION_KEYS = {
    "config_name",
    "data_files",
    "data_dir",
    "default",
    "version",
    "description",
    "sep",
    "delimiter",
}


class ConfigurationError(DataError):
    """Error of a folder with several configurations, of which one has to be named."""


@dataclass(frozen=True)
class DataFiles:
    """The files of one split.

    kind: how they are read, one of KINDS. separator: of the columns of csv and tsv, if the card says one; the files are
    then csv with it. class_names: those that the card has of classes that are stored as integers. merged_folders: those
    with a file of one name each, which no card says to be one set. other_configurations: those that the card has beside
    the default one, which is read. differing_names: one of each kind of names that files of a folder have, likewise.
    """

    kind: str
    files: tuple[Path, ...]
    separator: str = ""
    class_names: ClassNames = field(default_factory=dict)
    merged_folders: tuple[str, ...] = ()
    other_configurations: tuple[str, ...] = ()
    differing_names: tuple[str, ...] = ()


def find_folder_splits(folder: Path, configuration: str | None = None) -> dict[str, DataFiles]:
    """The data files of each split of a folder; those of a configuration of its card, if it has several.

    Raises:
        DataError: a name leads out of the folder, or there is nothing that can be read.
    """
    files = _list_visible_files(folder)
    configs = {str(each.get("config_name", "")): each for each in _read_configurations(folder)}
    config = _choose_configuration(folder, configuration, configs)
    unknown = sorted(set(config) - KNOWN_CONFIGURATION_KEYS)
    if unknown:
        problem = (
            f"sets {format_names(unknown)} for its data files, which tfm does not apply: name the files in data.train"
        )
        raise DataError(problem, file=folder / CARD_FILE)
    data_dir = str(config.get("data_dir") or "")
    if data_dir:
        resolve_inside_folder(folder, data_dir, folder / CARD_FILE)
        prefix = f"{os.path.normpath(data_dir)}/"
        files = [name for name in files if name.startswith(prefix)]
    else:
        prefix = ""
    merged_folders: Mapping[str, tuple[str, ...]] = {}
    differing_names: dict[str, tuple[str, ...]] = {}
    if (patterns := _patterns_by_split(config.get("data_files"), folder / CARD_FILE)) is not None:
        names_by_split = {
            split: _match_files(split_patterns, files, prefix, folder) for split, split_patterns in patterns.items()
        }
    else:
        names_by_split = group_by_split([name.removeprefix(prefix) for name in files if _file_format(name) is not None])
        names_by_split = {split: [prefix + name for name in names] for split, names in names_by_split.items()}
        differing_names = {split: find_differing_names(names) for split, names in names_by_split.items()}
        merged_folders = {
            split: folders_with_same_files(names) for split, names in names_by_split.items() if not data_dir
        }
    data_files = _data_files_by_split(folder, names_by_split, str(config.get("sep") or config.get("delimiter") or ""))
    name = config.get("config_name", configuration)
    class_names = card_class_names(_read_front_matter(folder, CARD_FILE), None if name is None else str(name))
    others = tuple(other for other, entry in configs.items() if entry is not config) if configuration is None else ()
    return {
        split: replace(
            split_files,
            class_names=class_names,
            merged_folders=merged_folders.get(split, ()),
            other_configurations=others,
            differing_names=differing_names.get(split, ()),
        )
        for split, split_files in data_files.items()
    }


def resolve_inside_folder(folder: Path, name: object, file: Path) -> Path:
    """A name inside a folder; in a snapshot of Hugging Face's cache also a link to a blob of the same repository.

    Raises:
        DataError: it leads elsewhere; `file`, which gives the name, is what the message names.
    """
    snapshot = folder.resolve()
    if (
        isinstance(name, str)
        and snapshot.parent.name == "snapshots"
        and ".." not in name.split("/")
        and "\0" not in name
    ):
        target, blobs = os.path.realpath(snapshot / name), os.path.join(snapshot.parent.parent, "blobs")
        if not os.path.isabs(name) and target.startswith(blobs + os.sep):
            return folder / name
    return resolve_path_inside(folder, name, file=file)


def _list_visible_files(folder: Path) -> list[str]:
    """The files below a folder, by path; hidden ones and those in folders such as __pycache__ are none."""
    paths: list[str] = []
    for parent, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(each for each in folders if not each.startswith((".", "__")))
        prefix = "" if Path(parent) == folder else f"{Path(parent).relative_to(folder).as_posix()}/"
        for subfolder in folders:
            if os.path.islink(os.path.join(parent, subfolder)):
                resolve_inside_folder(folder, prefix + subfolder, folder)
        paths += [prefix + each for each in files if not each.startswith(".") and each not in NON_DATA_FILES]
        if len(paths) > MAX_FILES:
            raise DataError(f"holds more than {MAX_FILES:,} files", file=folder)
    return sorted(paths)


def _choose_configuration(
    folder: Path, config_name: str | None, configs: Mapping[str, Mapping[str, YamlNode]]
) -> Mapping[str, YamlNode]:
    """The card's entry of a configuration, or of the only or default one."""
    if config_name is not None:
        if config_name not in configs:
            has = f"; it has {format_names(configs)}" if configs else ""
            raise DataError(f"there is no configuration {config_name!r}{has}", file=folder)
        return configs[config_name]
    if len(configs) <= 1:
        return next(iter(configs.values()), {})
    for name, config in configs.items():
        if str(config.get("default")).lower() == "true" or name == "default":
            return config
    problem = f"has several configurations: write {folder}:NAME, one of {format_names(configs)}"
    raise ConfigurationError(problem, file=folder)


def _read_configurations(folder: Path) -> list[Mapping[str, YamlNode]]:
    for name in (SETTINGS_FILE, CARD_FILE):
        document = _read_front_matter(folder, name)
        configs = document.get("configs") if isinstance(document, dict) else None
        if isinstance(configs, list) and configs:
            return [each for each in configs if isinstance(each, dict)]
    return []


def _read_front_matter(folder: Path, name: str) -> YamlNode:
    """The YAML of the settings, or at the top of the card; empty if there is none."""
    if not os.path.lexists(folder / name):
        return ""
    file = resolve_inside_folder(folder, name, folder / name)
    try:
        text = read_bounded_file(file, follow_symlinks=True).decode("utf-8")
        if name == CARD_FILE:
            front = re.match(r"\s*---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", text, re.DOTALL)
            text = front[1] if front else ""
        return parse_yaml(text)
    except ValueError as error:
        raise DataError(str(error), file=file) from None


def _patterns_by_split(data_files: YamlNode | None, file: Path) -> dict[str, list[str]] | None:
    """The patterns of each split, as `data_files` of a card may say them; None if it says nothing."""
    if data_files is None:
        return None
    items = data_files if isinstance(data_files, list) else [data_files]
    patterns: dict[str, list[str]] = {}
    for item in items:
        split, paths = (item.get("split"), item.get("path")) if isinstance(item, dict) else ("train", item)
        path_list = paths if isinstance(paths, list) else [paths]
        if (
            not isinstance(split, str)
            or not SPLIT_NAME_PATTERN.fullmatch(split)
            or not all(isinstance(p, str) for p in path_list)
        ):
            raise DataError(f"its data_files are no splits with paths: {format_names([item])}", file=file)
        patterns.setdefault(split, []).extend(str(each) for each in path_list)
    return patterns


def _match_files(patterns: Sequence[str], files: Sequence[str], prefix: str, folder: Path) -> list[str]:
    """The files that patterns name, each once; a pattern is relative to the folder, or to `data_dir` in it."""
    matches: dict[str, None] = {}
    if len(patterns) * len(files) > MAX_PATTERN_COMPARISONS and any("*" in each for each in patterns):
        raise DataError("names more patterns of data files than are looked up", file=folder / CARD_FILE)
    for pattern in patterns:
        if pattern.startswith("/") or "://" in pattern or "::" in pattern or ".." in pattern.split("/"):
            resolve_path_inside(folder, pattern, file=folder / CARD_FILE)
        full_pattern = prefix + os.path.normpath(pattern)
        if not re.search(r"[*?\[]", full_pattern) and os.path.lexists(
            resolve_inside_folder(folder, full_pattern, folder / CARD_FILE)
        ):
            matches[full_pattern] = None
            continue
        names = [name for name in files if match_path(name.split("/"), full_pattern.split("/"))]
        if not names:
            raise DataError(
                f"names {format_names([pattern])!r}, and there is no such data file", file=folder / CARD_FILE
            )
        matches |= dict.fromkeys(names)
    return list(matches)


def match_path(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether a path matches a pattern, part by part; `**` stands for any number of parts."""
    ends = {0}
    for index, pattern in enumerate(patterns):
        if pattern == "**":
            is_last = index == len(patterns) - 1
            ends = {end for begin in ends for end in range(begin + is_last, len(parts) + 1)}
        else:
            ends = {each + 1 for each in ends if each < len(parts) and fnmatchcase(parts[each], pattern)}
    return len(parts) in ends


def _file_format(name: str) -> str | None:
    """How a file is read, by its ending; None if it is not."""
    plain = strip_compression_ending(name.lower())
    return FORMAT_BY_EXTENSION.get(plain.rpartition(".")[2]) if "." in plain.rpartition("/")[2] else None


def _data_files_by_split(
    folder: Path, names_by_split: Mapping[str, Sequence[str]], separator: str
) -> dict[str, DataFiles]:
    """The files of each split that are of the kind of most of them, with every name checked."""
    counts = Counter(kind for names in names_by_split.values() for name in names if (kind := _file_format(name)))
    if not counts:
        if (problem := _other_files_problem(folder)) is not None:
            raise DataError(problem, file=folder)
        endings = ", ".join(f".{ending}" for ending in FORMAT_BY_EXTENSION)
        raise DataError(
            f"holds no data files ({endings}; also compressed); of other formats, name the files in data.train, "
            'and of images set format = "imagefolder"',
            file=folder,
        )
    order = list(FORMAT_BY_EXTENSION.values())
    kind = max(counts, key=lambda each: (counts[each], -order.index(each)))
    if len(separator) > 1 or (separator and kind not in ("csv", "tsv")):
        raise DataError(
            f"its separator {separator!r:.40} is not one character between columns", file=folder / CARD_FILE
        )
    data_files = {}
    for split, names in names_by_split.items():
        if (missing := missing_shard(names)) is not None:
            problem = f"{missing} is missing: download it again, or name the files that are there in data.train"
            raise DataError(problem, file=folder)
        files = tuple(_check_path(folder, name) for name in names if _file_format(name) == kind)
        if not files:
            raise DataError(f"its split {split!r:.80} has no .{kind} file, and others have", file=folder)
        data_files[split] = DataFiles(kind, files, separator)
    return data_files


def _other_files_problem(folder: Path) -> str | None:
    """Why a folder without data files has none, by the files that it has instead; None if it has no such."""
    endings = {Path(name).suffix.lower() for name in _list_visible_files(folder)}
    if audio := sorted(endings.intersection(AUDIO_ENDINGS)):
        return f"holds recordings ({', '.join(audio)}), which tfm does not read: its models are of texts and images"
    if ".tar" in endings:
        return "holds archives (.tar), as webdataset writes them: unpack them, and name the files in data.train"
    return None


def _check_path(folder: Path, name: str) -> Path:
    file = resolve_inside_folder(folder, name, folder)
    if not file.is_file():
        raise DataError("is not a regular file", file=file)
    return file
