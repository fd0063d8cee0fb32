"""The splits of data files, as `datasets` tells them from the names of files and folders; shards that are missing."""

import re
from collections.abc import Sequence

MAX_SHARDS = 100_000
SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
SHARD_PATTERN = re.compile(r"data/([^/]+)-[0-9]{5}-of-[0-9]{5}[^/]*\.[^/]*")
NUMBERED_SHARD_PATTERN = re.compile(r"(.*)-([0-9]{5})-of-([0-9]{5})(.*)", re.DOTALL)
NUMBER_PATTERN = re.compile(r"[0-9a-f]{8,}|[0-9]+")
"""The number of a shard, or a hash of its contents."""
SEPARATOR_PATTERN = "[-._ 0-9]"


def group_by_split(names: Sequence[str]) -> dict[str, list[str]]:
    """Data files by split, as `datasets` tells from their names: shards, then folders, then words in file names."""
    shards = [(match[1], name) for name in names if (match := SHARD_PATTERN.fullmatch(name))]
    if shards:
        known_splits = [split for split in SPLIT_WORDS if any(split == each for each, _ in shards)]
        other_splits = sorted({split for split, _ in shards} - set(known_splits))
        return {split: [name for each, name in shards if each == split] for split in (*known_splits, *other_splits)}
    in_folders = {split: _filter_by_word(names, words, of_folders=True) for split, words in SPLIT_WORDS.items()}
    in_files = {split: _filter_by_word(names, words, of_folders=False) for split, words in SPLIT_WORDS.items()}
    for files_by_split in (in_folders, in_files):
        if any(files_by_split.values()):
            return {split: files for split, files in files_by_split.items() if files}
    return {"train": list(names)} if names else {}


def folders_with_same_files(names: Sequence[str]) -> tuple[str, ...]:
    """The folders that have a file each, all of one name; none if there is one, or they differ."""
    folders = [name.rpartition("/")[0] for name in names]
    are_alike = len({*folders}) == len(names) > 1 and len({name.rpartition("/")[2] for name in names}) == 1
    return tuple(sorted(folders)) if are_alike else ()


def _filter_by_word(names: Sequence[str], words: Sequence[str], *, of_folders: bool) -> list[str]:
    """The names that have one of these words, set off by a separator, in a folder's name or in the file's."""
    word = rf"(?:|.*{SEPARATOR_PATTERN})(?:{'|'.join(words)})"
    pattern = re.compile(
        rf"{word}(?:|{SEPARATOR_PATTERN}.*)" if of_folders else rf"{word}{SEPARATOR_PATTERN}.*",
        re.DOTALL | re.IGNORECASE,  # `datasets` would read Test.csv as training data
    )
    parts = ((name, name.split("/")) for name in names)
    return [
        name
        for name, path in parts
        if any(pattern.fullmatch(part) for part in (path[:-1] if of_folders else path[-1:]))
    ]


def missing_shard(names: Sequence[str]) -> str | None:
    """The first file that is not among those of its kind, `train-00001-of-00003.parquet`; None if all are there."""
    numbers: dict[tuple[str, str, str], set[int]] = {}
    for name in names:
        if (match := NUMBERED_SHARD_PATTERN.fullmatch(name)) is not None:
            numbers.setdefault((match[1], match[3], match[4]), set()).add(int(match[2]))
    for (begin, total, end), present in numbers.items():
        absent = next((number for number in range(min(int(total), MAX_SHARDS)) if number not in present), None)
        if absent is not None:
            return f"{begin}-{absent:05}-of-{total}{end}"
    return None


def find_differing_names(names: Sequence[str]) -> tuple[str, ...]:
    """One of each kind of names that a split's files have beside its word, as of two languages (dut_train.tsv and
    kor_train.tsv); none if they differ in numbers alone, as shards do, or if their folder says the split.
    """
    words = [word for split_words in SPLIT_WORDS.values() for word in split_words]
    own_names = [name.rpartition("/")[2] for name in names]
    kinds = {NUMBER_PATTERN.sub("", name): name for name in reversed(own_names)}
    have_words = len(_filter_by_word(own_names, words, of_folders=False)) == len(names)
    return tuple(sorted(kinds.values())) if have_words and len(kinds) > 1 else ()
