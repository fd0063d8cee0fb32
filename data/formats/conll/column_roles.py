"""Which columns of a file hold words and which labels, by the cells of its first sentences.

The column of words is asked for first: the first of all, unless its cells count or go on, are one value throughout or
in each sentence, or are tags. Then that of labels: the last, unless it holds numbers of words (heads, places), whose
columns are told by many values or by growing within each sentence; else one with tags; else, if it has no labels, the
last before it that has some.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path

from tfm.data.formats.conll.layout import ColumnLayout, is_marked
from tfm.data.formats.conll.schemes import ENTITY_TAG_PATTERN, are_entity_tags
from tfm.data.formats.conll.separators import MAX_ROWS_SAMPLED
from tfm.data.formats.conll.words_alone import MIN_SENTENCES_JUDGED

MIN_WORDS_JUDGED = 3
"""With fewer words nothing is said of a column that counts them."""
MIN_NUMBERS_JUDGED = 6
"""Fewer numbers grow, and fewer cells are alike within sentences, by chance."""
MIN_HEADS = 8
"""Numbers of words have at least so many values; classes that are numbers mostly have fewer."""
PLACE_PATTERN = re.compile(r"[0-9]+(?:\.[0-9]+)?|[0-9]+-[0-9]+")
"""The number of a word or character, or a time; a number behind that of its sentence, or the first and last character,
as WebAnno has them.
"""
NO_LABELS = frozenset({"_", "-", "?"})
"""Signs in place of the labels of a test set."""


@dataclass(frozen=True)
class Column:
    """A column of a file: its place, and its cells in each of the first sentences."""

    place: int
    sentences: Sequence[Sequence[str]]

    @property
    def cells(self) -> list[str]:
        """The cells of all sentences."""
        return [*chain.from_iterable(self.sentences)]

    @property
    def are_numbers(self) -> bool:
        """Whether it holds numbers or places."""
        return all(map(PLACE_PATTERN.fullmatch, self.cells))

    @property
    def are_signs(self) -> bool:
        """Whether it has signs in place of labels."""
        return {*self.cells} <= NO_LABELS

    @property
    def tag_types(self) -> set[str]:
        """The types of its tags of entities; none if one of its cells is no tag."""
        matches = [ENTITY_TAG_PATTERN.fullmatch(cell) for cell in self.cells]
        return set() if None in matches else {match[1] for match in matches if match is not None and match[1]}

    @property
    def has_growing_numbers(self) -> bool:
        """Whether it has numbers that grow within each sentence, of words, characters or seconds."""
        if len(self.cells) < MIN_NUMBERS_JUDGED or {*map(len, self.sentences)} == {1} or not self.are_numbers:
            return False
        places = [[[*map(float, cell.split("-"))] for cell in sentence] for sentence in self.sentences]
        return all(before < after for sentence in places for before, after in pairwise(sentence))

    @property
    def counts_words(self) -> bool:
        """Whether it numbers the words of each sentence from 0 or 1."""
        return any(
            all(cell == str(number) for cells in self.sentences for number, cell in enumerate(cells, begin))
            for begin in (0, 1)
        )

    @property
    def is_of_sentences(self) -> bool:
        """Whether it has one value at all words of a sentence, and others in other sentences."""
        cells = self.cells
        longer = [{*each} for each in self.sentences if len(each) > 1]
        is_judged = len(longer) >= MIN_SENTENCES_JUDGED and len(cells) >= MIN_NUMBERS_JUDGED and len({*cells}) > 1
        return is_judged and all(len(each) == 1 for each in longer)


def number_column_problem(path: Path, layout: ColumnLayout) -> str | None:
    """Why the first column cannot be that of words; None if it can."""
    columns = sample_columns(path, layout)
    return _problem_of_words(columns[0], columns[-1]) if columns else None


def find_word_column(path: Path, layout: ColumnLayout) -> int:
    """The first column that may be that of words; if it is not the first of all, it has no numbers."""
    columns = sample_columns(path, layout)
    if not columns or _problem_of_words(columns[0], columns[-1]) is None:
        return layout.word_column
    others = (each for each in columns[1:] if not each.are_numbers and _problem_of_words(each, columns[-1]) is None)
    return next((each.place for each in others), layout.word_column)


def find_label_column(path: Path, layout: ColumnLayout, word_column: int) -> int | None:
    """The column of labels if it is not the last one; None if it is.

    Args:
        path: the file.
        layout: of the file.
        word_column: the place of its words.
    """
    if layout.standard or not (columns := sample_columns(path, layout)):
        return None
    if (place := find_column_before_numbers(path, layout)) is not None:
        return place
    last = columns[-1]
    others = [each for each in columns[:-1] if each.place != word_column]
    if are_entity_tags(last.cells):
        return None
    if tagged := [each.place for each in others if each.tag_types]:
        return tagged[0]
    if word_column != last.place and not last.are_signs:
        return None
    return next((each.place for each in reversed(others) if not each.are_numbers and not each.are_signs), None)


def other_tag_columns(path: Path, layout: ColumnLayout) -> list[int]:
    """The columns before the last that hold tags of entities which the last, in the first words, does not hold.

    So of GermEval's two layers the last has the few names within names. Tags of phrases are of other types.
    """
    columns = sample_columns(path, layout)
    types = columns[-1].tag_types if columns else set()
    return [each.place for each in columns[1:-1] if (found := each.tag_types) and (not types or found & types)]


def find_column_before_numbers(path: Path, layout: ColumnLayout) -> int | None:
    """The last column without numbers where the last of all holds numbers, as of heads or places, and the first holds
    none; None if it does not. Numbers of few values, as of classes, are labels.
    """
    columns = sample_columns(path, layout)
    if layout.standard or len(columns) < 3:
        return None
    last = columns[-1]
    are_heads = len({*last.cells}) >= MIN_HEADS and all(map(str.isdecimal, last.cells))
    if not are_heads and not last.has_growing_numbers:
        return None
    others = [each.place for each in columns[1:-1] if not each.are_numbers]
    return others[-1] if others and (others[-1] == last.place - 1 or last.has_growing_numbers) else None


def sample_columns(path: Path, layout: ColumnLayout) -> list[Column]:
    """The columns of a file with the cells of its first sentences; none of a table, whose header names them, and of a
    file without a whole row.
    """
    sentences: list[list[list[str]]] = [[]]
    rows = _unmarked_rows(path, layout) if layout.table is None else iter(())
    for row in islice(rows, int(layout.is_headed), MAX_ROWS_SAMPLED):
        if not row:
            sentences.append([])
        elif len(row) == layout.width:
            sentences[-1].append(row)
    by_column = [[*zip(*sentence, strict=True)] for sentence in sentences if sentence]
    return [Column(place, cells) for place, cells in enumerate(zip(*by_column, strict=True))]


def _unmarked_rows(path: Path, layout: ColumnLayout) -> Iterator[list[str]]:
    return (cells for _, cells in layout.rows(path) if not cells or not is_marked(cells[0]))


def _problem_of_words(column: Column, last: Column) -> str | None:
    """Why a column cannot be that of words; None if it can. last: the last column of the file."""
    cells = column.cells
    name = "its first column" if column.place == 0 else f"its column {column.place}"
    if len(cells) < MIN_WORDS_JUDGED:
        return None
    if column.counts_words:
        return f"{name} counts the words ({', '.join(cells[:3])}, ...)"
    if column.has_growing_numbers:
        return f"{name} has numbers of words or characters ({', '.join(cells[:3])}, ...)"
    if len(cells) > 2 * MIN_WORDS_JUDGED and len({*cells}) == 1:
        return f"{name} is {cells[0]:.40} at every word"
    if column.is_of_sentences:
        return f"{name} is the same at every word of a sentence ({cells[0]:.40})"
    if last.place > 0 and column.tag_types and not last.tag_types:
        return f"{name} has tags ({', '.join(dict.fromkeys(cells))[:40]})"
    return None
