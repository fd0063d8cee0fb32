"""Training, validation and test corpora: as given, or else seeded random portions of the training data.

Portions are of single texts or, where texts without a source are running text, of consecutive lines.
"""

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfm.data.config import DataConfig, FoldConfig
from tfm.data.corpora.paths.folder_hints import class_folders_hint, tagged_test_sets, transcripts_hint
from tfm.data.corpora.paths.single_files import suggest_corpus_table, target_table
from tfm.data.corpora.paths.split_names import (
    TRAIN_NAME,
    TRAINING_WORD_PATTERN,
    VALID_NAMES,
    classify_splits,
    is_family_member,
    is_split_name,
    split_name_family,
    training_name_rank,
)
from tfm.data.corpora.paths.text_folders import (
    FilePairs,
    drop_languages_from_names,
    file_pairs_hint,
    find_text_files,
    text_splits_hint,
)
from tfm.data.corpora.portions import Corpus, Fold, HashRange, Portion, PositionRange, hash_to_unit_interval
from tfm.data.corpus_config import CorpusConfig
from tfm.data.corpus_keys.table_keys import split_columns
from tfm.data.errors import DataError, format_names
from tfm.data.formats import huggingface
from tfm.data.formats.hub.hub_folder import NON_DATA_FILES, ConfigurationError, DataFiles


@dataclass(frozen=True)
class Splits:
    """All corpora by their use; `tests` by name, the main one first. `unused`: what looks like a split but is not
    used."""

    train: tuple[Corpus, ...]
    valid: tuple[Corpus, ...]
    tests: dict[str, Corpus]
    unused: tuple[str, ...] = ()

    def corpora_by_split(self) -> dict[str, tuple[Corpus, ...]]:
        """Every split's corpora by the split's name."""
        return {"train": self.train, "valid": self.valid, **{name: (test,) for name, test in self.tests.items()}}


def resolve_splits(config: DataConfig) -> Splits:
    """The splits of a recipe: those that it names, those at `path`, and random portions for the missing ones.

    With `config.fold` the training data of these are cut into folds, and the fold is what is validated on.
    Raises DataError if there is no training data or a test set's name cannot be a folder's.
    """
    train, valid, tests, unused = (
        _find_corpora_at_path(config) if config.path is not None else (config.train, config.valid, config.tests, ())
    )
    if not train:
        raise DataError("there is no training data: give data.path or data.train")
    for name in tests:
        if not re.fullmatch(r"\w[\w.-]*", name) or name in ("train", "valid", "tokenizer"):
            raise DataError(
                f"a test set cannot be called {name!r}: use letters, digits, '_', '.', '-', no split's name"
            )
    running = config.has_running_text and not all(corpus.has_source or corpus.has_images for corpus in train)
    splits = _cut_missing_splits(train, valid, tests, config, is_running_text=running)
    if config.fold is not None:
        splits = _cut_fold(splits, config.fold, config.split_seed, is_running_text=running)
    return replace(splits, unused=unused)


def unused_settings_message(config: DataConfig, splits: Splits) -> str | None:
    """A line on what looks like a split at `data.path` and is not used, and on what is cut from training instead."""
    if not splits.unused:
        return None
    roles = " and ".join(_cut_parts(splits))
    note = f" ({roles} data are cut from the training data)" if roles else ""
    return (
        f"{config.path}: not used: {format_names(splits.unused)}{note}; to use them, "
        "name all corpora in data.train, data.valid and data.tests"
    )


def truncation_message(splits: Splits) -> str | None:
    """A line on validation and test data that are cut from the training data; None if both are given."""
    parts = {
        name: part
        for name, part in _cut_parts(splits).items()
        if not isinstance(part.by_text if isinstance(part, PositionRange) else part, Fold)
    }
    if not parts:
        return None
    are_texts = all(isinstance(part, HashRange) for part in parts.values())
    method = "by a hash of each text" if are_texts else "as consecutive lines"
    data = f"no {' and no '.join(parts)} data are given"
    return f"{data}: they are cut from the training data {method} (data.ratios, data.split_seed)"


def _cut_parts(splits: Splits) -> dict[str, HashRange | Fold | PositionRange]:
    """The parts of the training data that are validation and test data."""
    corpora = {"validation": splits.valid[0], "test": next(iter(splits.tests.values()))}
    return {name: corpus.part for name, corpus in corpora.items() if isinstance(corpus, Portion)}


def has_contiguous_parts(splits: Splits) -> bool:
    """Whether a split is of consecutive lines of the training data."""
    all_corpora = (corpus for corpora in splits.corpora_by_split().values() for corpus in corpora)
    return any(isinstance(corpus, Portion) and isinstance(corpus.part, PositionRange) for corpus in all_corpora)


def split_size_shares(sizes: dict[str, int]) -> dict[str, float]:
    """Each split's size over the size of all."""
    total = sum(sizes.values())
    return {name: size / total if total else 0.0 for name, size in sizes.items()}


def _cut_missing_splits(
    train: tuple[CorpusConfig, ...],
    valid: tuple[CorpusConfig, ...],
    tests: dict[str, CorpusConfig],
    config: DataConfig,
    *,
    is_running_text: bool,
) -> Splits:
    """Cut the splits that are missing off the end of [0, 1); what is left is training data.

    In running text they are cut out of a place that follows from the seed, the test set behind the validation set.
    """
    valid_low = 1.0 - (0.0 if valid else config.ratios[1]) - (0.0 if tests else config.ratios[2])
    test_low = 1.0 - (0.0 if tests else config.ratios[2])
    if valid and tests:
        return Splits(train, valid, dict(tests))
    seed = config.split_seed
    back = 0.0 if not is_running_text else valid_low * (1 - hash_to_unit_interval("running text", seed))

    def make_part(low: float, high: float) -> HashRange | PositionRange:
        share = HashRange(low, high, seed)
        if not is_running_text:
            return share
        is_complement = low == 0.0
        return PositionRange(
            *((high - back, 1.0 - back) if is_complement else (low - back, high - back)), is_complement, share
        )

    return Splits(
        train=tuple(Portion((corpus,), make_part(0.0, valid_low)) for corpus in train),
        valid=valid or (Portion(train, make_part(valid_low, test_low)),),
        tests=dict(tests) or {"test": Portion(train, make_part(test_low, 1.0))},
    )


def _cut_fold(splits: Splits, fold: FoldConfig, seed: int, *, is_running_text: bool) -> Splits:
    """Train on all training data but a fold, and validate on the fold; the recipe's own validation set is left out."""

    def make_part(held_out: bool) -> Fold | PositionRange:
        by_text = Fold(fold.number, fold.of, seed, held_out)
        if not is_running_text:
            return by_text
        return PositionRange((fold.number - 1) / fold.of, fold.number / fold.of, not held_out, by_text)

    train = tuple(Portion((corpus,), make_part(held_out=False)) for corpus in splits.train)
    return replace(splits, train=train, valid=(Portion(splits.train, make_part(held_out=True)),))


def _find_corpora_at_path(
    config: DataConfig,
) -> tuple[tuple[CorpusConfig, ...], tuple[CorpusConfig, ...], dict[str, CorpusConfig], tuple[str, ...]]:
    """The corpora at `path`: text files in a folder, else a Hugging Face dataset; and what there is not used."""
    assert config.path is not None
    folder = Path(config.path)
    if os.path.isfile(folder):
        raise _file_for_folder_error(config)
    files: FilePairs = {}
    unpaired_files: list[str] = []
    if not isinstance(config.source, tuple) and os.path.isdir(folder):
        files, unpaired_files = find_text_files(folder, config.source, config.target)
        if config.source is not None:
            files = drop_languages_from_names(files, config.source, config.target)
    hub_splits = () if any(map(is_split_name, files)) else _list_hub_splits(config, files)
    if hub_splits:
        unpaired_files = []
        corpora = {
            name: CorpusConfig(
                format="huggingface", path=config.path, source=config.source, target=config.target, split=name
            )
            for name in hub_splits
        }
    else:
        family = split_name_family(files)
        other_names = [name for name in files if family and not is_family_member(name, family)]
        unpaired_files = [*unpaired_files, *filter(is_split_name, other_names)]
        corpora = {
            name.removeprefix(family): CorpusConfig(
                format="text", source=None if source is None else str(source), target=str(target)
            )
            for name, (source, target) in files.items()
            if name not in other_names
        }
        if TRAIN_NAME not in corpora and (only_name := _only_training_pair_name(config, files)) is not None:
            corpora[TRAIN_NAME] = corpora.pop(only_name)
    if TRAIN_NAME not in corpora:
        expectation = (
            f"a split {TRAIN_NAME!r}" + _hub_splits_hint(config.path, hub_splits)
            if hub_splits or not os.path.isdir(folder)  # a set of the hub may have no split
            else _train_file_names(config) + file_pairs_hint(folder, files, config.source, config.target)
        )
        raise DataError(f"there is no training data: expected {expectation}", file=config.path)
    uses = classify_splits(corpora)
    valid = () if uses.valid is None else (corpora[uses.valid],)
    tests = {name: corpora[name] for name in uses.tests}
    unused = [f"{name} ({uses.valid} is)" if name in VALID_NAMES else name for name in uses.unused]
    tagged_names = tagged_test_sets(folder) if os.path.isdir(folder) and not hub_splits else []
    return (corpora[TRAIN_NAME],), valid, tests, (*unused, *unpaired_files, *tagged_names)


def _file_for_folder_error(config: DataConfig) -> DataError:
    """The error of a file in place of a folder, with what to say instead."""
    path = Path(str(config.path))
    table = suggest_corpus_table(path, split_columns(config.source), config.target)
    return DataError(
        f"is a file, and data.path is a folder or a Hugging Face dataset; for a single file set data.train = {table}",
        file=path,
    )


def _only_training_pair_name(config: DataConfig, files: Collection[str]) -> str | None:
    """The name of the only pair of files that is the training data: that of the word itself (`training`, `Train`) or,
    if no name has that word within, of the only one that does not sound like a split (`corpus.tc`).
    """
    candidates = [name for name in files if training_name_rank(name) == 0]
    names = [name for name in candidates if TRAINING_WORD_PATTERN.fullmatch(name)]
    names = names or ([] if candidates else [name for name in files if not is_split_name(name)])
    return names[0] if len(names) == 1 and config.source is not None else None


def _list_hub_splits(config: DataConfig, files: FilePairs) -> Sequence[str]:
    """The splits of a Hugging Face dataset; none if the folder is no dataset and has one pair of training files."""
    assert config.path is not None
    try:
        splits = huggingface.open_splits(config.path, online=config.online)
        if config.target != "text" and any(
            isinstance(split, DataFiles) and split.kind == "lines" for split in splits.values()
        ):
            raise DataError('its text files are one column, `text`: set data.source = "none", data.target = "text"')
        return list(splits)
    except DataError as error:
        if not os.path.isdir(config.path):
            raise
        if isinstance(config.source, tuple):
            raise DataError(f"{error}{_training_file_hint(config)}") from error
        if _only_training_pair_name(config, files) is not None:
            return ()
        if isinstance(error, ConfigurationError):
            raise
        hint = file_pairs_hint(Path(config.path), files, config.source, config.target)
        hint = hint or class_folders_hint(Path(config.path)) or transcripts_hint(Path(config.path))
        hint = hint or _training_file_hint(config)
        raise DataError(
            f"this folder has neither {_train_file_names(config)} nor a Hugging Face dataset ({error}){hint}"
        ) from error


def _hub_splits_hint(path: str, splits: Sequence[str]) -> str:
    """Name the splits of a dataset and the key that selects the training split; empty if there are none."""
    if not splits:
        return ""
    table = f'{{ format = "huggingface", path = "{path}", split = "{min(splits, key=training_name_rank)}" }}'
    return f"; it has {format_names(splits)}: name those for training, as data.train = {table}"


def _training_file_hint(config: DataConfig) -> str:
    """Name the only or first training file of a folder, and the table that reads it; empty if there is none."""
    files = [path for path in sorted(Path(str(config.path)).iterdir()) if path.is_file()]
    paths = [path for path in files if path.suffix not in (".md", ".py") and path.name not in NON_DATA_FILES]
    candidates = [path for path in paths if training_name_rank(path.name) == 0] or paths[: int(len(paths) == 1)]
    if not candidates:
        return ""
    try:
        corpus = suggest_corpus_table(candidates[0], split_columns(config.source), config.target)
    except DataError as error:
        return f"; {error}"
    if corpus == target_table(candidates[0]) and (hint := text_splits_hint(candidates[0])):
        return hint
    return f"; for {candidates[0].name} set data.train = {corpus}"


def _train_file_names(config: DataConfig) -> str:
    sides = [f"train.{side}" for side in (config.source, config.target) if side is not None]
    return f"{' and '.join(sides)} (or .gz)"
