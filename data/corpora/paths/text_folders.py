"""Aligned text files in folders, as OPUS, fairseq, WMT, Moses and others lay them out."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, combinations, islice
from operator import ne
from pathlib import Path

from tfm.data.compression.files import strip_compression_ending
from tfm.data.corpora.paths.content_formats import detect_content_format
from tfm.data.corpora.paths.folder_hints import MAX_FILES_LOOKED_AT
from tfm.data.corpora.paths.split_names import (
    is_parallel_split_name,
    is_split_name,
    training_name_rank,
)
from tfm.data.errors import DataError, ExportableFileError, format_names

SIDE_EXTENSION_PATTERN = re.compile(
    r"(?!txt$|csv$|tsv$|trn$|dev$|tst$|val$|ids$|log$|md$|py$|sh$|xml$|bin$|idx$)(?:[a-z]{2,3}(?:[-_]\w{2,8})?|source|target)",
    re.IGNORECASE,
)
"""An ending that may be that of a language or side."""
LANGUAGE_PART_PATTERN, NAME_PART_PATTERN = re.compile(r"[a-z]{2,3}"), re.compile(r"([._/-])")
"""A part of a path that may be a language, and what is between parts."""
FAIRSEQ_DICTIONARY_PATTERN = re.compile(r"dict\.[\w-]+\.txt")
TARGET_WORD_PATTERN = re.compile(
    r"(?<![^\W_])(labels?|tags?|targets?|tgt|trg|out|outputs?|summary|summaries|answers?|refs?)(?![^\W_])"
)
TABLE_ENDINGS = frozenset((".jsonl", ".json", ".ndjson", ".csv", ".tsv", ".parquet", ".arrow"))
"""Endings of files that hold both sides, of which two are no source and target."""
SIDE_NAMES = ("src", "source", "trg", "tgt", "target", "dst")
"""Endings of sides, those of sources first."""
FilePairs = Mapping[str, tuple[Path | None, Path]]


def find_text_files(
    folder: Path, source: str | None, target: str
) -> tuple[dict[str, tuple[Path | None, Path]], list[str]]:
    """The aligned files NAME.source and NAME.target of a folder, by NAME; without a source only NAME.target.

    One ending for both sides, as a task that hides pieces of a text has it, is one file for both. Files without another
    side count only if they look like a split. The second value names, in words, files that look like a split and lack
    their other side.
    """
    if source == target:
        target_pairs, unpaired = find_text_files(folder, None, target)
        return {name: (path, path) for name, (_, path) in target_pairs.items()}, unpaired
    endings = {target: 1} if source is None else {source: 0, target: 1}
    sides_by_name: dict[str, list[Path | None]] = {}
    for path in sorted(folder.iterdir()):
        name, _, ending = strip_compression_ending(path.name).rpartition(".")
        if name and ending in endings and (source is not None or is_split_name(name)):
            sides = sides_by_name.setdefault(name, [None, None])
            # Sorted, the plain file comes before compressed ones and is the one that counts.
            sides[endings[ending]] = sides[endings[ending]] or path
    pairs: dict[str, tuple[Path | None, Path]] = {}
    unpaired_files: list[str] = []
    for name, (source_path, target_path) in sides_by_name.items():
        if target_path is not None and (source_path is not None or source is None):
            pairs[name] = (source_path, target_path)
            continue
        present, missing = (source_path or target_path), (target if target_path is None else source)
        if is_parallel_split_name(name):
            raise DataError(
                f"its other side is missing: expected {name}.{missing} (or .gz) in the same folder", file=present
            )
        if is_split_name(name) and present is not None:
            unpaired_files.append(f"{present.name} (there is no {name}.{missing})")
    return pairs, unpaired_files


def text_splits_hint(training_file: Path) -> str:
    """Name the splits of texts alone beside a training file, as of WikiText (wiki.train.tokens), and the key that reads
    them; empty if there are none, or the files are `.txt`, which are a dataset of their own.
    """
    ending = strip_compression_ending(training_file.name).rpartition(".")[2]
    splits, _ = find_text_files(training_file.parent, None, ending)
    if len(splits) < 2 or ending == "txt":
        return ""
    return f'; it has {format_names([f"{name}.{ending}" for name in splits])}: set data.target = "{ending}"'


def drop_languages_from_names(pairs: FilePairs, source: str, target: str) -> dict[str, tuple[Path | None, Path]]:
    """Pairs of files by their names without the two languages: train for `train.en-ro`, opus-train for
    `opus.en-ro-train`.

    A name is kept where two files would have the shorter one.
    """
    codes = "|".join(f"{re.escape(a)}[-_]{re.escape(b)}" for a, b in ((source, target), (target, source)))
    pattern = re.compile(rf"(?:^|[._-])(?:{codes})(?=$|[._-])")
    short = {name: pattern.sub("", name, count=1).lstrip("._-") for name in pairs}
    counts = Counter([*short.values(), *pairs])
    return {short[name] if short[name] and counts[short[name]] == 1 else name: pair for name, pair in pairs.items()}


def file_pairs_hint(folder: Path, pairs: FilePairs, source: str | tuple[str, ...] | None, target: str) -> str:
    """Name the pairs of files in a folder and the keys that would read them; empty if there are none.

    Args:
        folder: the folder.
        pairs: its pairs of files with the endings of the recipe.
        source: the source's ending, column or columns in the recipe.
        target: the target's ending or column in the recipe.
    """
    if pairs:
        return _training_hint(format_names(pairs), *pairs[min(pairs, key=training_name_rank)])
    names = [path.name for path in folder.iterdir()]
    if any(name.endswith(".bin") for name in names) and any(map(FAIRSEQ_DICTIONARY_PATTERN.fullmatch, names)):
        return "; it has what fairseq-preprocess writes: give the texts that it was made from"
    endings: dict[str, list[str]] = {}
    for path in sorted(folder.iterdir()):
        name, _, ending = strip_compression_ending(path.name).rpartition(".")
        if name and SIDE_EXTENSION_PATTERN.fullmatch(ending) and ending not in endings.setdefault(name, []):
            endings[name].append(ending)
    ranked_names = sorted((training_name_rank(name), name) for name, sides in endings.items() if len(sides) > 1)
    if not ranked_names:
        hint = _language_files_hint(folder, source, target) if isinstance(source, str) else ""
        return hint or _two_files_hint(folder)
    name = ranked_names[0][1]
    sides = sorted(filter(SIDE_NAMES.__contains__, endings[name]), key=SIDE_NAMES.index)
    source_ending, target_ending = sides if len(sides) == 2 else endings[name][:2]
    if isinstance(source, str) and target_ending.lower() == source.lower():
        source_ending, target_ending = target_ending, source_ending
    files = format_names([f"{name}.{source_ending} and {name}.{target_ending}"])
    return f'; it has {files}: set data.source = "{source_ending}", data.target = "{target_ending}"'


def _language_files_hint(folder: Path, source: str, target: str) -> str:
    """Name two files with paths that differ only in a language or side, as in FLORES, NTREX and OpenNMT: deu_Latn.dev,
    src-train.txt, de/train.txt.
    """
    files: dict[tuple[str, ...], dict[str, Path]] = {}
    for path in _files_below(folder):
        parts = NAME_PART_PATTERN.split(strip_compression_ending(path.relative_to(folder).as_posix()))
        normalized_parts = ["*" if part in ("src", "ref") and part not in (source, target) else part for part in parts]
        for position, part in enumerate(normalized_parts):
            if part in (source, target) or LANGUAGE_PART_PATTERN.fullmatch(part):
                pattern = *normalized_parts[:position], "*", *normalized_parts[position + 1 :]
                files.setdefault(pattern, {}).setdefault(part, path)
    pairs = [
        (source_path, target_path)
        for paths in files.values()
        if (source_path := _path_of_language(paths, source)) and (target_path := _path_of_language(paths, target))
        if source_path != target_path and _hold_texts((source_path, target_path))
    ]
    if not pairs:
        return ""
    pair = min(pairs, key=lambda pair: training_name_rank(str(pair[0].relative_to(folder))))
    return _training_hint(format_names([" and ".join(str(path.relative_to(folder)) for path in pair)]), *pair)


def _two_files_hint(folder: Path) -> str:
    """Name the two training files with paths that differ in one word, such as train/seq.in and train/seq.out, or
    train_text.txt and train_labels.txt; empty if there are not two such files.
    """
    paths = [path for path in _files_below(folder) if not TABLE_ENDINGS & {*path.suffixes[-2:]}]
    names = sorted(path.relative_to(folder).as_posix() for path in paths)
    parts = {name: NAME_PART_PATTERN.split(name) for name in names if training_name_rank(name) == 0}
    pairs = [
        (source_name, target_name)
        for source_name, target_name in combinations(parts, 2)
        if len(parts[source_name]) == len(parts[target_name])
        and sum(map(ne, parts[source_name], parts[target_name])) == 1
        and _hold_texts((folder / source_name, folder / target_name))
    ]
    pairs_without_targets = [pair for pair in pairs if all(TARGET_WORD_PATTERN.search(name) is None for name in pair)]
    if len(pairs) != 1 and len(pairs_without_targets) != 1:
        return ""
    source_name, target_name = pairs[0] if len(pairs) == 1 else pairs_without_targets[0]
    if TARGET_WORD_PATTERN.search(source_name) and not TARGET_WORD_PATTERN.search(target_name):
        source_name, target_name = target_name, source_name
    return _training_hint(f"{source_name} and {target_name}", folder / source_name, folder / target_name)


def _training_hint(names: str, source: Path | None, target: Path) -> str:
    """Name what a folder has, and the key that trains on a pair of files of it."""
    first = '"none"' if source is None else f'"{source}"'
    return f'; it has {names}: name those for training, as data.train = [{{ source = {first}, target = "{target}" }}]'


def _files_below(folder: Path) -> list[Path]:
    """The files in a folder, and then those in folders in it."""
    paths = chain(sorted(folder.glob("*")), sorted(folder.glob("*/*")))
    return [path for path in islice(paths, MAX_FILES_LOOKED_AT) if path.is_file()]


def _hold_texts(paths: Sequence[Path]) -> bool:
    """Whether files may be texts a line: they have no tags or times, and no word with its label a line."""
    try:
        return all(detect_content_format(path) != "conll" for path in paths)
    except ExportableFileError:
        return False
    except (DataError, OSError, ValueError):  # whatever is wrong with them, reading them will say
        return True


def _path_of_language(by_language: Mapping[str, Path], language: str) -> Path | None:
    """The file of a language, `de` or `deu`; None if there is none."""
    alike = (path for code, path in by_language.items() if code[:2] == language[:2])
    return by_language.get(language) or next(alike, None)
