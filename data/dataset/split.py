"""Encoded examples in memory: columns of token ids, the splits made of them, and all splits of a dataset."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tfm.data.arrays import Ints, arrow_values
from tfm.data.corpora.references import read_further_references
from tfm.data.dataset.curriculum import CorpusEpochs, active_rows, epoch_weights
from tfm.data.dataset.directions import Directions
from tfm.data.errors import DataError
from tfm.data.formats.lazy_arrays import LazyArray
from tfm.data.images.augmentation import Augmentation
from tfm.data.images.preparation import ImageTransform
from tfm.data.images.row_images import RowImages

Ids = NDArray[np.int32]
PART_ROWS = 2**20
"""Rows of large training data of which figures are computed at once."""


@dataclass(frozen=True)
class TokenIdColumn:
    """Lists of token ids as slices of one flat array: list i is values[starts[i] : starts[i] + lengths[i]].

    Args:
        values: the ids of all lists.
        starts: (rows,) the index of each first id.
        lengths: (rows,) ids of each list.
        vocab_size: the number of pieces of the vocabulary, where `take` has to check that ids are below it.
    """

    values: Ids
    starts: Ints | LazyArray
    lengths: Ints | LazyArray
    vocab_size: int | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> Ids:
        return self.values[self.starts[row] : self.starts[row] + self.lengths[row]]

    def take(self, rows: Ints) -> tuple[Ids, Ints]:
        """Return the ids of `rows`, one list after the other, and the length of each list.

        Raises DataError if an id is that of no piece.
        """
        lengths: Ints = self.lengths[rows]
        ends = np.cumsum(lengths)
        shift = self.starts[rows] - (ends - lengths)
        ids = self.values[np.arange(lengths.sum()) + np.repeat(shift, lengths)]
        self.check_ids(ids)
        return ids, lengths

    def check_ids(self, ids: Ids) -> None:
        """Raise DataError if one of these ids is that of no piece."""
        if self.vocab_size is not None and len(ids) and not (ids.min() >= 0 and ids.max() < self.vocab_size):
            raise DataError("the training data contains token ids that its tokenizer does not have: make it again")

    def select_rows(self, rows: Ints | slice) -> "TokenIdColumn":
        """The lists of `rows` alone, of the same flat array; starts of consecutive ones stay in the file."""
        if isinstance(rows, slice) and isinstance(self.starts, LazyArray):
            return TokenIdColumn(
                self.values, self.starts.select_range(*rows.indices(len(self))[:2]), self.lengths[rows], self.vocab_size
            )
        return TokenIdColumn(self.values, self.starts[rows], self.lengths[rows], self.vocab_size)

    def to_lists(self, rows: Iterable[int] | None = None) -> list[list[int]]:
        """The ids of `rows` (default: all) as Python lists, for decoding."""
        return [self[row].tolist() for row in (range(len(self)) if rows is None else rows)]

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[int]]) -> "TokenIdColumn":
        """A column in memory."""
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        values = np.fromiter(chain.from_iterable(lists), np.int32, int(lengths.sum()))
        return cls.from_flat(values, lengths)

    @classmethod
    def from_flat(cls, values: Ids, lengths: Ints) -> "TokenIdColumn":
        """A column of ids that lie end to end, and the length of each list."""
        return cls(values, np.cumsum(lengths) - lengths, lengths)


@dataclass(frozen=True)
class Split:
    """The examples of one split.

    Args:
        source: ids of the sources; empty lists where sources are images.
        target: ids of the targets.
        weights: (rows,) the number of times that each row occurs in an epoch.
        corpus_epochs: the epochs in which each corpus is used; empty: all.
        words: the number of pieces of each word of a source, where that was asked for.
        folder: of the split; None for a split in memory.
        images: of the rows, where sources are images.
        extra_references: references after the first, if they are not in the folder.
        shard_rows: rows above which an epoch is made shard by shard, and at most about so many a shard.
    """

    source: TokenIdColumn
    target: TokenIdColumn
    weights: NDArray[np.float64] | LazyArray
    _table: pa.Table | None = field(default=None, repr=False)
    corpus_epochs: tuple[CorpusEpochs, ...] = ()
    words: TokenIdColumn | None = None
    folder: Path | None = None
    images: RowImages | None = None
    extra_references: list[list[str]] | None = None
    shard_rows: int = sys.maxsize

    @classmethod
    def from_texts(
        cls, source: TokenIdColumn, target: TokenIdColumn, sources: Sequence[str], targets: Sequence[str]
    ) -> "Split":
        """Return a split in memory that keeps its texts, as validation and test data do.

        Args:
            source: ids of the sources.
            target: ids of the targets.
            sources: texts of the sources.
            targets: texts of the targets.
        """
        table = pa.table({"source_text": pa.array(sources, pa.string()), "target_text": pa.array(targets, pa.string())})
        return cls(source, target, np.ones(len(source)), table)

    def __len__(self) -> int:
        return len(self.source)

    def select_rows(self, rows: Ints) -> "Split":
        """Return some rows of validation data, with their texts."""
        assert self._table is not None
        table = self._table.select(["source_text", "target_text"]).take(pa.array(rows))
        images = None if self.images is None else self.images.select_rows(rows)
        return Split(
            self.source.select_rows(rows), self.target.select_rows(rows), self.weights[rows], table, images=images
        )

    def select_training_rows(self, rows: Ints | slice) -> "Split":
        """Return some rows of training data, as they are in an epoch in which their corpora are used."""
        return Split(
            self.source.select_rows(rows),
            self.target.select_rows(rows),
            self.weights[rows],
            words=None if self.words is None else self.words.select_rows(rows),
            images=None if self.images is None else self.images.select_rows(np.arange(len(self))[rows]),
        )

    def iterate_parts(self) -> Iterator["Split"]:
        """Yield the rows in parts, in order, so that what is computed of all is not in memory at once."""
        if not self.is_sharded:
            yield self
            return
        for begin in range(0, len(self), PART_ROWS):
            yield self.select_training_rows(slice(begin, min(begin + PART_ROWS, len(self))))

    @property
    def is_sharded(self) -> bool:
        """Whether an epoch is made shard by shard."""
        return len(self) > self.shard_rows

    @property
    def source_lengths(self) -> Ints:
        """(rows,) tokens of each source, start and end tokens not counted."""
        return np.asarray(self.source.lengths)

    @property
    def target_lengths(self) -> Ints:
        """(rows,) tokens of each target, start and end tokens not counted."""
        return np.asarray(self.target.lengths)

    def weights_in_epoch(self, epoch: int) -> NDArray[np.float64] | None:
        """The number of times that each row occurs in this epoch, counted from 0; None if every row occurs once."""
        return epoch_weights(np.asarray(self.weights), self.corpus_epochs, epoch)

    def is_active(self, rows: Ints, epoch: int) -> NDArray[np.bool_]:
        """Return for each row (n,) whether its corpus is used in an epoch, counted from 0."""
        return active_rows(self.corpus_epochs, epoch, rows)

    def group_by_image(self) -> "Split":
        """Return validation data of images, which has a row for each caption, in the form of a test set.

        Each image then comes once, with its captions as references.
        """
        if self.images is None:
            return self
        rows_by_image: dict[int, list[int]] = {}
        for row, image in enumerate(self.images.image_numbers.tolist()):
            rows_by_image.setdefault(image, []).append(row)
        captions = self.texts()[1]
        _, *extra_columns = zip_longest(
            *([captions[row] for row in rows] for rows in rows_by_image.values()), fillvalue=""
        )
        firsts = np.array([rows[0] for rows in rows_by_image.values()], np.int64)
        split = self.select_rows(firsts)
        return replace(split, extra_references=[list(column) for column in extra_columns])

    def texts(self) -> tuple[list[str], list[str]]:
        """Source and target texts as they were read; only validation and test data keep them."""
        if self._table is None or "source_text" not in self._table.column_names:
            raise ValueError("training data keeps no texts")
        return self._table.column("source_text").to_pylist(), self._table.column("target_text").to_pylist()

    def further_references(self) -> list[list[str]]:
        """A test set's second and further references, each a text a row, empty if a row has fewer."""
        if self.extra_references is not None:
            return self.extra_references
        return [] if self.folder is None else read_further_references(self.folder, len(self))

    def has_valid_ids(self, source_vocab_size: int, target_vocab_size: int) -> bool:
        """Whether every token id is that of a piece of vocabularies so large."""
        columns = {"source": source_vocab_size, "target": target_vocab_size}
        chunks = [] if self._table is None else [(self._table.column(name).chunks, columns[name]) for name in columns]
        ids = ((arrow_values(chunk.values), size) for each, size in chunks for chunk in each if len(chunk.values))
        return all(values.min() >= 0 and values.max() < size for values, size in ids)


@dataclass(frozen=True)
class Dataset:
    """All splits of one `dataset/` folder.

    Args:
        train: the training data.
        valid: the validation data.
        tests: the test sets, in the recipe's order, the main one first.
        batch_tokens: the budget of a batch.
        tokenizer_folder: with the tokenizers.
        directions: of each split, where the dataset has languages.
        preparation: turns images into the network's input, where sources are images.
        augmentation: variation of images in training.
    """

    train: Split
    valid: Split
    tests: dict[str, Split]
    batch_tokens: int
    tokenizer_folder: Path
    directions: Directions = field(default_factory=dict)
    preparation: ImageTransform | None = None
    augmentation: Augmentation | None = None

    def with_image_transform(self, preparation: ImageTransform) -> "Dataset":
        """The same dataset of images, normalized by the means and deviations of other images."""

        def normalize_split(split: Split) -> Split:
            return (
                split if split.images is None else replace(split, images=split.images.with_image_transform(preparation))
            )

        tests = {name: normalize_split(split) for name, split in self.tests.items()}
        train, valid = normalize_split(self.train), normalize_split(self.valid)
        return replace(self, train=train, valid=valid, tests=tests, preparation=preparation)
