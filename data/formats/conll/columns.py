"""Files with a word a line and its labels in columns, as CoNLL-2003 and many sets of named entities have them.

Columns are separated by tabs or spaces, sentences by blank lines. CoNLL-U, whose ten columns have names, is in
`conllu`.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tfm.data.errors import DataError, format_count
from tfm.data.formats.conll.column_roles import (
    find_column_before_numbers,
    find_word_column,
    number_column_problem,
    other_tag_columns,
)
from tfm.data.formats.conll.layout import DOCUMENT_START, STANDARD_COLUMNS, ColumnLayout, detect_layout
from tfm.data.formats.conll.schemes import TagSchemeChecker
from tfm.data.formats.conll.sentences import SentenceCounts
from tfm.data.formats.conll.separators import other_space_problem
from tfm.data.formats.conll.tagged_lines import tagged_words_problem
from tfm.data.formats.conll.unlabelled import unlabelled_problem
from tfm.data.lines import MAX_LINE_BYTES

FIRST_COLUMN, LAST_COLUMN = "source", "target"
"""Names of columns whose number is not given: the word is in the first one, its label in the last."""
UNSPECIFIED_LABEL = "_"
"""The mark of the family of CoNLL formats for a word without a label."""


def read_conll(
    path: Path,
    columns: Sequence[str],
    space_replacement: str = " ",
    on_warning: Callable[[Path, str], None] | None = None,
) -> Iterator[tuple[str, ...]]:
    """For each sentence its words' values in each of `columns`, joined by spaces.

    Args:
        path: the file.
        columns: numbers from 0, or FIRST_COLUMN and LAST_COLUMN.
        space_replacement: what stands for a space within a value, which files with tabs may have.
        on_warning: is told which lines are left out (a header, comments), the scheme of the tags in the last of the
            columns, and how often they break it.

    Raises:
        DataError: naming the line; it has another number of columns than the first one, an empty cell, or a word
            without label. Or the first column has no words, but their numbers.
    """
    layout = detect_layout(path)
    if not layout.width:
        raise DataError("has no word: it is empty, or its lines are blank or comments", file=path)
    places = [_column_index(path, column, layout) for column in columns]
    _check_word_column(path, columns, layout)
    check, counts, comments = TagSchemeChecker(), SentenceCounts(), list[int]()
    for words, lines in _read_sentences(path, layout, places, space_replacement, comments):
        values = list(zip(*words, strict=True))
        check.add(values[-1], lines)
        counts.add(values[0])
        yield tuple(" ".join(column) for column in values)
    if on_warning is not None:
        label_remarks = _label_remarks(path, layout) if columns[-1] == LAST_COLUMN else ()
        for text in (*label_remarks, *_layout_remarks(layout, comments), check.warning(), *counts.remarks()):
            if text is not None:
                on_warning(path, text)


def _read_sentences(
    path: Path, layout: ColumnLayout, places: Sequence[int], space_replacement: str, comments: list[int]
) -> Iterator[tuple[list[list[str]], list[int]]]:
    """For each sentence the values of its words in the columns at some places, and their lines.

    comments: to which the numbers of lines are added that are left out as such.
    """
    words: list[list[str]] = []
    lines: list[int] = []
    size, width = 0, layout.width
    is_header_next = layout.is_headed and layout.table is None
    for number, cells in layout.rows(path):
        if not cells or cells[0].startswith(DOCUMENT_START):
            if words:
                yield words, lines
            words, lines, size = [], [], 0
            continue
        if layout.is_comment(cells, is_first=not words):
            comments.append(number)
            continue
        if is_header_next:
            is_header_next = False
            continue
        size += sum(map(len, cells)) + len(cells)
        if size > MAX_LINE_BYTES:
            problem = f"its sentence is longer than {MAX_LINE_BYTES:,} characters; is a blank line missing?"
            raise DataError(problem, file=path, line=number)
        if layout.standard and not words:
            width = len(cells)
        words.append(_column_values(cells, places, width, space_replacement, path, number))
        lines.append(number)
    if words:
        yield words, lines


def _label_remarks(path: Path, layout: ColumnLayout) -> Iterator[str]:
    """Remarks on columns of labels beside that which is read, as the last."""
    if (labels := find_column_before_numbers(path, layout)) is not None:
        heads = f"its labels are the numbers of column {layout.label_column}, such as heads"
        other = "the column before" if labels == layout.label_column - 1 else "the last one without numbers"
        yield f"{heads}: target = {labels} reads {other}"
    if others := other_tag_columns(path, layout):
        has_tags = f"its labels are those of column {layout.label_column}; column {others[0]} has tags of entities too"
        yield f"{has_tags}: target = {others[0]} reads those"


def _layout_remarks(layout: ColumnLayout, comments: Sequence[int]) -> Iterator[str]:
    if layout.table is not None:
        yield f"its rows are words, and column {layout.table.sentence} says of which sentence"
    elif layout.is_headed:
        yield "its first line names the columns, and is left out"
    if layout.separator == "white space":
        yield "its columns are separated by white space of any kind, such as no-break spaces"
    elif layout.separator == "tabs and spaces":
        yield "its columns are separated by tabs and by spaces"
    if layout.is_quoted:
        yield "quotation marks around cells are removed, as in CSV"
    if len(comments) == 1:
        yield f"line {comments[0]:,} is left out as a comment"
    elif comments:
        yield f"{len(comments):,} lines are left out as comments, the first of them is line {comments[0]:,}"


def _check_word_column(path: Path, columns: Sequence[str], layout: ColumnLayout) -> None:
    """Raise DataError if columns are taken by their place, and the words or the labels are elsewhere."""
    if layout.width == 1 and {FIRST_COLUMN, LAST_COLUMN} <= {*columns}:
        problem = "its lines have one column; those of a word and its label stand between tabs or spaces"
        raise DataError(unlabelled_problem(path, layout) or problem, file=path)
    if LAST_COLUMN in columns and (problem_of_lines := tagged_words_problem(path)) is not None:
        raise DataError(problem_of_lines, file=path)
    if layout.standard and {FIRST_COLUMN, LAST_COLUMN} & {*columns}:
        words, tags = STANDARD_COLUMNS[layout.standard]
        name, entities = layout.standard, " (10 has entities in brackets)" if layout.standard == "CoNLL-2012" else ""
        raise DataError(
            f"is {name}'s: set source to {words} for its words, and target to {tags} for parts of speech{entities}",
            file=path,
        )
    if LAST_COLUMN in columns and (problem_of_labels := unlabelled_problem(path, layout)) is not None:
        raise DataError(problem_of_labels, file=path)
    if FIRST_COLUMN in columns and (problem_of_first := number_column_problem(path, layout)) is not None:
        place = find_word_column(path, layout)
        such_as = f", such as {place}" if place != layout.word_column else ""
        remedy = f"set source to the number of the column with the words{such_as}"
        raise DataError(f"{problem_of_first}: {remedy}", file=path)


def _column_index(path: Path, column: str, layout: ColumnLayout) -> int:
    place = {FIRST_COLUMN: layout.word_column, LAST_COLUMN: layout.label_column}.get(column)
    place = int(column) if place is None else place
    if place >= layout.width:
        raise DataError(f"there is no column {place}; its first word has {layout.width}, counted from 0", file=path)
    return place


def _column_values(
    cells: Sequence[str], columns: Sequence[int], width: int, space_replacement: str, path: Path, line_number: int
) -> list[str]:
    if len(cells) != width:
        has = f"has {format_count(len(cells), 'column')}, but the first word has {width}"
        cause = other_space_problem(" ".join(cells), width) or ": a blank line separates sentences"
        raise DataError(f"{has}{cause}", file=path, line=line_number)
    if max(columns) >= width:
        problem = f"has {format_count(width, 'column')}, and column {max(columns)} is asked for, counted from 0"
        raise DataError(problem, file=path, line=line_number)
    values = [space_replacement.join(cells[place].split()) for place in columns]
    if empty := [place for place, value in zip(columns, values, strict=True) if not value]:
        raise DataError(
            f"its column {empty[0]} is empty: each word needs a value, such as _ or -", file=path, line=line_number
        )
    if columns[-1] != columns[0] and values[-1] == UNSPECIFIED_LABEL:
        problem = f"its label (column {columns[-1]}) is _, which says that the word has none"
        raise DataError(f"{problem}: name a target column that every word has", file=path, line=line_number)
    return values
