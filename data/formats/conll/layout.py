"""How a file of columns is laid out: what separates them, and which lines are none of words.

A header that names words, labels and a sentence comes first, since its rows need no blank lines; then what separates
columns; then published layouts by their first word, quotation marks, and a header of names. Which columns hold words
and labels is decided in `column_roles`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfm.data.formats.conll.separators import Separator, find_separator, split_columns
from tfm.data.formats.conll.word_table import (
    LABEL_COLUMN_NAMES,
    WORD_COLUMN_NAMES,
    WordTable,
    find_word_table,
    read_quoted_rows,
)
from tfm.data.lines import open_lines

DOCUMENT_START = "-DOCSTART-"
COMMENT_MARK = "#"
DOCUMENT_BEGIN = "#begin document"
Standard = Literal["", "CoNLL-2009", "CoNLL-2012"]
STANDARD_COLUMNS: Mapping[Standard, tuple[int, int]] = {"CoNLL-2009": (1, 4), "CoNLL-2012": (3, 4)}
"""The columns of words and of parts of speech in layouts with a column for each predicate of a sentence."""
MIN_WIDTH_2009, PREDICATE_MARK_2009, MIN_WIDTH_2012 = 14, 12, 12
"""Columns of CoNLL-2009 and CoNLL-2012 before those of arguments, and the place of the one that marks predicates."""
QUOTED_CELL = re.compile(r'"(?:[^"]|"")*"')
NAME_PARTS = frozenset("ne ner pos tag chunk label iob bio".split())
"""Parts of names of columns with labels, as NE-COARSE-LIT of HIPE."""


@dataclass(frozen=True)
class ColumnLayout:
    """The layout of a file.

    Args:
        separator: what stands between two columns.
        width: the number of columns; 0 of a file without a word.
        is_headed: whether the first line that is no comment names them.
        standard: CoNLL-2012 (OntoNotes) or CoNLL-2009 if it is one of these, in which a sentence has a column for each
            of its predicates behind others.
        is_quoted: whether quotation marks are around cells, as pandas and spreadsheets write them.
        table: the columns of a table whose rows are words; else None.
        comment_values: what stands in the last column of lines that begin as the word `#` would, but are comments.
    """

    separator: Separator
    width: int
    is_headed: bool = False
    standard: Standard = ""
    is_quoted: bool = False
    table: WordTable | None = None
    comment_values: frozenset[str] = frozenset()

    @property
    def word_column(self) -> int:
        """The column of the words where a recipe does not name it."""
        return 0 if self.table is None else self.table.word

    @property
    def label_column(self) -> int:
        """The column of the labels where a recipe does not name it."""
        return self.width - 1 if self.table is None else self.table.label

    def split(self, line: str) -> list[str]:
        """The cells of a line; a tab behind the last of them is none."""
        cells = split_columns(line, self.separator)
        if self.separator != "tabs":
            return cells
        return cells[: self.width] if self.width and not "".join(cells[self.width :]) else cells

    def rows(self, path: Path) -> Iterator[tuple[int, list[str]]]:
        """The cells of each line of a file, with its number; none between sentences."""
        if self.table is not None:
            return self.table.rows(path)
        if self.is_quoted:
            return read_quoted_rows(path, "\t")
        return ((number, self.split(line) if line.strip() else []) for number, line in enumerate(open_lines(path), 1))

    def is_comment(self, cells: Sequence[str], *, is_first: bool) -> bool:
        """Whether a line is a comment. is_first: whether no word of its sentence stands before it."""
        if not cells[0].startswith(COMMENT_MARK):
            return False
        return (
            self.standard != ""
            or len(cells) != self.width
            or (is_first and cells[0].strip() == COMMENT_MARK and cells[-1] in self.comment_values)
        )


def detect_layout(path: Path) -> ColumnLayout:
    """The layout of a file, by its first word; lines that begin with # are compared with all of its words."""
    if (table := find_word_table(path)) is not None:
        return ColumnLayout("tabs" if table.delimiter == "\t" else "spaces", table.width, is_headed=True, table=table)
    lines = _WordLines(path)
    first = next(iter(lines), None)
    if first is None:
        return ColumnLayout("spaces", 0)
    separator = find_separator(lines)
    is_tabbed = separator == "tabs"
    cells = split_columns(first.rstrip("\t"), separator)
    width = len(cells)
    if (standard := _standard_of(next(open_lines(path), ""), cells, is_tabbed=is_tabbed)) != "":
        return ColumnLayout(separator, width, standard=standard)
    if is_tabbed and _has_quoted_cells(path):
        return ColumnLayout(separator, width, _is_header([cell.strip('"') for cell in cells]), is_quoted=True)
    comment_values = _comment_values(path, ColumnLayout(separator, width))
    return ColumnLayout(separator, width, _is_header(cells), comment_values=comment_values)


@dataclass(frozen=True)
class _WordLines:
    """The lines of a file that are neither blank nor marked as comments or as the start of a document."""

    path: Path

    def __iter__(self) -> Iterator[str]:
        return (line for line in open_lines(self.path) if line.strip() and not is_marked(line))


def _standard_of(first_line: str, cells: Sequence[str], *, is_tabbed: bool) -> Standard:
    """CoNLL-2012 or CoNLL-2009 if a file is one of these: in CoNLL-2012 the first word has a document, its part and its
    own number, and a tree with brackets; in CoNLL-2009 its number, and a mark of predicates.
    """
    has_tree = len(cells) >= MIN_WIDTH_2012 and cells[1].isdecimal() and cells[2] == "0" and "(" in cells[5]
    if first_line.startswith(DOCUMENT_BEGIN) or has_tree:
        return "CoNLL-2012"
    has_mark = is_tabbed and len(cells) >= MIN_WIDTH_2009 and cells[PREDICATE_MARK_2009] in ("Y", "_")
    return "CoNLL-2009" if has_mark and cells[0] == "1" else ""


def _is_header(cells: Sequence[str]) -> bool:
    names = [cell.lower() for cell in cells]
    if len(names) > 2 and names[0] in WORD_COLUMN_NAMES:
        return any(not NAME_PARTS.isdisjoint(re.split(r"[-_ ]", name)) for name in names[1:])
    return names[-1] in LABEL_COLUMN_NAMES and not {*names}.isdisjoint(WORD_COLUMN_NAMES)


def _has_quoted_cells(path: Path) -> bool:
    """Whether quotation marks are CSV's: all cells that begin with one are well formed, and one has them doubled
    within, as the word " has, or all cells are in them.
    """
    is_doubled, are_all = False, True
    for line in open_lines(path):
        for cell in line.split("\t") if line.strip() else ():
            if not cell.startswith('"'):
                are_all = False
            elif QUOTED_CELL.fullmatch(cell) is None:
                return False
            else:
                is_doubled |= '""' in cell[1:-1]
    return is_doubled or are_all


def is_marked(line: str) -> bool:
    """Whether a line is marked as a comment, or as the start of a document."""
    return line.startswith((COMMENT_MARK, DOCUMENT_START))


def _comment_values(path: Path, layout: ColumnLayout) -> frozenset[str]:
    """The values of the last column in lines that begin with `#` and in no others; the label of the word # may be #."""
    found = {cells[-1] for cells in _cells(path, layout, are_commented=True)} - {COMMENT_MARK}
    if found:
        for cells in _cells(path, layout, are_commented=False):
            found.discard(cells[-1])
    return frozenset(found)


def _cells(path: Path, layout: ColumnLayout, *, are_commented: bool) -> Iterator[list[str]]:
    """The cells of the lines of all columns that begin with #, alone in their cell, or of all others."""
    marks = (f"{COMMENT_MARK} ", f"{COMMENT_MARK}\t")
    lines = (line for line in open_lines(path) if line.strip() and line.startswith(marks) == are_commented)
    return (cells for line in lines if len(cells := layout.split(line)) == layout.width)
