"""Text pairs to encoded examples, in chunks, and which of them are dropped."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from tfm.data.arrays import Ints
from tfm.data.config import LimitsConfig
from tfm.data.corpora.references import Row
from tfm.data.dataset.row_keys import combine_duplicate_keys, image_duplicate_keys, text_duplicate_keys
from tfm.data.dataset.split import Ids
from tfm.data.images.decoding import Pixels
from tfm.data.lines import chunk_rows
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.words import flatten

CHUNK_ROWS = 2_000
DROP_REASONS = ("empty", "too long", "length ratio", "duplicate")


@dataclass(frozen=True)
class EncodedSide:
    """One side of a chunk.

    Args:
        texts: the texts; of images their names.
        ids: of all texts, concatenated, without start or end token.
        lengths: (rows,) ids of each text.
        words: the number of pieces of each word, concatenated, and the number of words of each text; None: not needed.
        pixels: of images, which have no ids; rows of one image hold the same array.
    """

    texts: list[str]
    ids: Ids
    lengths: Ints
    words: tuple[Ids, Ints] | None = None
    pixels: list[Pixels] | None = None

    @classmethod
    def from_images(cls, names: list[str], pixels: list[Pixels]) -> "EncodedSide":
        """Return a side of images, with their names."""
        return cls(names, np.empty(0, np.int32), np.zeros(len(names), np.int64), pixels=pixels)

    @classmethod
    def encode(cls, texts: list[str], tokenizer: Tokenizer) -> "EncodedSide":
        """Encode the texts."""
        return cls(texts, *tokenizer.encode_flat(texts))

    @classmethod
    def encode_words(cls, texts: list[str], tokenizer: Tokenizer) -> "EncodedSide":
        """Encode the texts word by word."""
        sentences = tokenizer.encode_words(texts)
        sizes, counts = flatten([[len(word) for word in words] for words in sentences])
        ids, _ = flatten([word for words in sentences for word in words])
        lengths = np.array([sum(map(len, words)) for words in sentences], np.int64)
        return cls(texts, ids, lengths, (sizes, counts))

    def keep_rows(self, is_kept: NDArray[np.bool_]) -> "EncodedSide":
        """Return the rows where `is_kept` is True."""
        words = self.words and (self.words[0][np.repeat(is_kept, self.words[1])], self.words[1][is_kept])
        ids = self.ids[np.repeat(is_kept, self.lengths)]
        pixels = self.pixels and list(compress(self.pixels, is_kept))
        return EncodedSide(list(compress(self.texts, is_kept)), ids, self.lengths[is_kept], words, pixels)

    def truncate(self, max_tokens: int) -> "EncodedSide":
        """Return the texts truncated to at most a number of ids each, without counts of words."""
        assert self.words is None
        positions = np.arange(len(self.ids)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        return EncodedSide(self.texts, self.ids[positions < max_tokens], np.minimum(self.lengths, max_tokens))

    @property
    def is_nonempty(self) -> NDArray[np.bool_]:
        """(rows,) whether there is anything: pieces, or an image."""
        return self.lengths > 0 if self.pixels is None else np.ones(len(self.texts), np.bool_)

    def duplicate_keys(self) -> Ints:
        """(rows,) a key of each text or image, to detect repeated ones; see `text_duplicate_keys`."""
        if self.pixels is not None:
            return image_duplicate_keys(self.pixels)
        return text_duplicate_keys(self.texts, self.ids, self.lengths)


@dataclass(frozen=True)
class ExampleChunk:
    """Some encoded pairs.

    Args:
        rows: the number of each pair in its corpus, from 0.
        source: the sources.
        target: the targets.
        extra_references: the references of each pair after the first; None if there cannot be any.
    """

    rows: Ints
    source: EncodedSide
    target: EncodedSide
    extra_references: list[Row] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def keep_rows(self, is_kept: NDArray[np.bool_]) -> "ExampleChunk":
        """Return the pairs where `is_kept` is True."""
        if is_kept.all():
            return self
        extra_references = self.extra_references and list(compress(self.extra_references, is_kept))
        return ExampleChunk(
            self.rows[is_kept], self.source.keep_rows(is_kept), self.target.keep_rows(is_kept), extra_references
        )


def encode_rows(
    rows: Iterable[Row], source: Tokenizer, target: Tokenizer, *, multi_reference: bool = False
) -> Iterator[ExampleChunk]:
    """Encode pairs; a stream of any length needs the memory of one chunk.

    If targets are tags, which belong to words, sources are encoded word by word.

    Args:
        rows: the texts of each pair.
        source: the tokenizer of the source.
        target: the tokenizer of the target.
        multi_reference: whether rows may have more than two texts.

    Yields:
        Chunks of CHUNK_ROWS rows, as `chunk_rows` cuts them.
    """
    first = 0
    for portion in chunk_rows(rows, CHUNK_ROWS):
        yield encode_chunk(portion, first, source, target, multi_reference=multi_reference)
        first += len(portion)


def encode_chunk(
    rows: Sequence[Row], first_row: int, source: Tokenizer, target: Tokenizer, *, multi_reference: bool
) -> ExampleChunk:
    """Encode some pairs.

    Args:
        rows: the texts of each pair, of one pair at least.
        first_row: the number of the first in its corpus.
        source: the tokenizer of the source.
        target: the tokenizer of the target.
        multi_reference: whether rows may have more than two texts.
    """
    encode_source = EncodedSide.encode_words if target.label_kind == "tags" else EncodedSide.encode
    sources, targets, extra_references = split_row_columns(rows, multi_reference=multi_reference)
    numbers = np.arange(first_row, first_row + len(rows))
    return ExampleChunk(numbers, encode_source(sources, source), EncodedSide.encode(targets, target), extra_references)


def split_row_columns(rows: Sequence[Row], *, multi_reference: bool) -> tuple[list[str], list[str], list[Row] | None]:
    """Return the sources and targets of some pairs, and further references if rows may have more than two texts."""
    extra_references = [row[2:] for row in rows] if multi_reference else None
    sources, targets = map(list, zip(*(row[:2] for row in rows) if multi_reference else rows, strict=True))
    return sources, targets, extra_references


@dataclass
class PairFilter:
    """Drops training pairs by the recipe's limits and counts them, each under the first reason that applies."""

    limits: LimitsConfig
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DROP_REASONS, 0))
    _seen: set[int] = field(default_factory=set, repr=False)

    def __call__(self, chunk: ExampleChunk, *, has_source: bool = True) -> ExampleChunk:
        """Return the pairs of the chunk that are kept.

        If pairs have no source, or have an image, only the target is checked.
        """
        sides = [chunk.source, chunk.target] if has_source else [chunk.target]
        lengths = np.stack([side.lengths for side in sides])
        longer, shorter = lengths.max(0), lengths.min(0)
        is_kept = np.ones(len(chunk), np.bool_)
        if self.limits.empty == "drop":
            rows = zip(*(side.texts for side in sides), strict=True)
            blank = [not all(row) or any(map(str.isspace, row)) for row in rows]
            self._drop_and_count(is_kept, "empty", (shorter == 0) | np.array(blank))
        self._drop_and_count(is_kept, "too long", longer > self.limits.max_length)
        if self.limits.max_ratio is not None:
            self._drop_and_count(is_kept, "length ratio", longer > self.limits.max_ratio * shorter)
        if self.limits.duplicates == "drop":
            self._drop_and_count(is_kept, "duplicate", self._find_duplicates(chunk, is_kept))
        return chunk.keep_rows(is_kept)

    def _drop_and_count(self, is_kept: NDArray[np.bool_], reason: str, is_rejected: NDArray[np.bool_]) -> None:
        self.dropped[reason] += int((is_kept & is_rejected).sum())
        is_kept &= ~is_rejected

    def _find_duplicates(self, chunk: ExampleChunk, is_kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the pairs that came before among those that stay."""
        is_duplicate = np.zeros(len(chunk), np.bool_)
        keys = combine_duplicate_keys(chunk.source.duplicate_keys(), chunk.target.duplicate_keys()).tolist()
        for row in np.flatnonzero(is_kept).tolist():
            is_duplicate[row] = keys[row] in self._seen
            self._seen.add(keys[row])
        return is_duplicate
