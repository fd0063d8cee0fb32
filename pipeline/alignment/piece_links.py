"""The links of training pairs between pieces, made of links between words.

Each piece of a word of the target is linked to every piece of the words of the source that the word is linked to.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tfm.data.arrays import Ints
from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.data.errors import DataError, format_count
from tfm.pipeline.alignment.gold_links import pair_error, read_gold_links
from tfm.pipeline.alignment.pharaoh import Link, is_counted_from_one, outside_link, outside_link_problem
from tfm.pipeline.alignment.word_pieces import PieceToWordMapper
from tfm.tokenizer.tokenizer import Tokenizer

CHUNK_ROWS = 4096


@dataclass(frozen=True)
class PieceLinks:
    """The links of each row of a dataset's training split: places of pieces, from 0, sorted by target and source.

    Args:
        target: places of pieces of the target.
        source: places of pieces of the source.
        from_one: whether the links between words are such as `is_counted_from_one` finds.
    """

    target: TokenIdColumn
    source: TokenIdColumn
    from_one: bool = False

    def __len__(self) -> int:
        return len(self.target)

    @property
    def num_linked_rows(self) -> int:
        """The number of rows with any link."""
        return int(np.count_nonzero(self.target.lengths[:]))

    def links_of_rows(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the links of some rows: the place of the row among them, the piece of the target, of the source."""
        target, counts = self.target.take(rows)
        source, _ = self.source.take(rows)
        return np.repeat(np.arange(len(rows)), counts), target.astype(np.int64), source.astype(np.int64)


def link_pieces(links: Collection[Link], source_words: Sequence[int], target_words: Sequence[int]) -> list[Link]:
    """Return links between pieces as (target, source), sorted.

    Args:
        links: between words, as (source, target).
        source_words: the word of each piece of the source.
        target_words: the word of each piece of the target.
    """
    pieces_by_word: dict[int, list[int]] = {}
    for position, word in enumerate(source_words):
        pieces_by_word.setdefault(word, []).append(position)
    sources_by_target: dict[int, list[int]] = {}
    for source, target in sorted(links):
        sources_by_target.setdefault(target, []).extend(pieces_by_word.get(source, ()))
    return [
        (position, piece)
        for position, word in enumerate(target_words)
        for piece in sorted(sources_by_target.get(word, ()))
    ]


class RowTexts:
    """The texts of a dataset's training pairs, which keep their pieces alone.

    Args:
        source: the tokenizer of the source.
        target: the tokenizer of the target.
    """

    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        self._words = PieceToWordMapper(source), PieceToWordMapper(target)

    def texts(self, split: Split, rows: Iterable[int]) -> list[tuple[str, str]]:
        """Return the texts of some rows, source and target, in which a mark stands for each unknown piece."""
        sides = list(zip(self._words, (split.source, split.target), strict=True))
        return [
            (source, target)
            for row in rows
            for source, target in [[words.decode_marking_unknown(column[row].tolist()) for words, column in sides]]
        ]

    def word_indices(self, split: Split, row: int, texts: tuple[str, str]) -> tuple[list[int], list[int]]:
        """Return the word of each piece of the source and of the target of a row, whose texts are known."""
        columns = split.source[row], split.target[row]
        source, target = (
            words.word_indices(ids.tolist(), text) for words, ids, text in zip(self._words, columns, texts, strict=True)
        )
        return source, target


def read_piece_links(
    file: Path,
    split: Split,
    tokenizers: tuple[Tokenizer, Tokenizer],
    on_done: Callable[[int], None] = lambda _: None,
) -> PieceLinks:
    """Read the links of a dataset's training pairs, and find the pieces of their words.

    Args:
        file: of links in a form that `read_gold_links` reads; possible links count as sure ones.
        split: the training pairs.
        tokenizers: of source and target.
        on_done: called with the number of further pairs that were read.

    Raises:
        DataError: the file has another number of lines, a line has what is no link, or a link is of a word that its
            pair does not have, or there is no link at all.
    """
    lines = read_gold_links(file, len(split))
    texts = RowTexts(*tokenizers)
    targets: list[list[int]] = []
    sources: list[list[int]] = []
    from_one = True
    for first in range(0, len(split), CHUNK_ROWS):
        rows = range(first, min(first + CHUNK_ROWS, len(split)))
        for row, pair in zip(rows, texts.texts(split, rows), strict=True):
            links = next(lines, None)
            if links is None:
                raise _length_error(file, row, len(split))
            words = texts.word_indices(split, row, pair)
            sizes = len(pair[0].split()), len(pair[1].split())
            from_one = from_one and is_counted_from_one([links])
            if (outside := outside_link(links, *sizes)) is not None:
                problem = outside_link_problem(outside, *sizes, from_one=from_one)
                raise pair_error(file, row + 1, problem)
            pieces = link_pieces(links.possible, *words)
            targets.append([target for target, _ in pieces])
            sources.append([source for _, source in pieces])
        on_done(len(rows))
    if (num_extra := sum(1 for _ in lines)) > 0:
        raise _length_error(file, len(split) + num_extra, len(split))
    piece_links = PieceLinks(TokenIdColumn.from_lists(targets), TokenIdColumn.from_lists(sources), from_one)
    if not piece_links.num_linked_rows:
        raise DataError("has no link: align the training pairs with `tfm align MODEL DATASET`", file=file)
    return piece_links


def _length_error(file: Path, actual: int, expected: int) -> DataError:
    return DataError(
        f"has {format_count(actual, 'line')}, but the dataset has {format_count(expected, 'training pair')}: "
        "give a line for each, as `tfm align MODEL DATASET` writes them",
        file=file,
    )
