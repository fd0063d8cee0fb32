"""Text files with a row a line: cells between tabs (tsv), or as CSV has them, with quotation marks (csv).

Every row has as many cells as the first: with a stray tab or comma, or without one, all cells after it would be those
of other columns.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from tfm.data.corpora.dialects import (
    drop_blank_rows,
    find_csv_quoting,
    find_delimiter,
    find_tsv_quoting,
    split_rows,
)
from tfm.data.corpora.markup.problems import check_lines, line_end_problem
from tfm.data.corpora.paths.content_formats import check_layout
from tfm.data.corpora.references import Row
from tfm.data.corpora.remarks import add_remark
from tfm.data.corpora.table_cells import column_names, join_cells, remark_line_breaks
from tfm.data.corpora.tables.layouts import are_languages, cells_remark, has_usual_names
from tfm.data.corpora.tables.lines import MAX_ROWS_SAMPLED, has_empty_ends, has_row_names
from tfm.data.corpora.tables.structures import UNDECIDED_REMARK, is_undecided
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, format_count, format_names
from tfm.data.formats.conll.spans import spans_problem
from tfm.data.formats.conll.word_table import find_word_table
from tfm.data.lines import join_lines, open_lines

PYTHON_LIST = re.compile(r"""\[\s*(['"].*['"]|[0-9]+([,\s]+[0-9]+)*)\s*\]""", re.DOTALL)
NULL_MARKS = {r"\N": "databases write null", "__NULL__": "TED talks mark a missing translation"}
MAX_ROWS_ABOVE_HEADER = 6
BYTE_ORDER_MARK = "\ufeff"
"""Before a header in the middle of a file if that was joined of several, as Excel writes them."""
BLANK_ROWS: tuple[list[str], ...] = ([], [""])
"""How a blank line is read."""


def read_tsv(path: Path, corpus: CorpusConfig) -> Iterator[Row]:
    """The rows of a file of cells between tabs; with a header unless columns are named by numbers.

    Quotation marks are text unless all of them are CSV's. A blank line in a table of several columns is no row.
    """
    check_lines(open_lines(path), path, (line_end_problem,))
    quoting = corpus.quoting or find_tsv_quoting(path)
    remedy = 'a cell of tsv cannot contain a tab; if cells are to be in quotation marks, set quoting = "double"'
    if quoting != "raw":
        remedy = _quoting_advice("\t")
    yield from _read_columns(path, corpus, split_rows(path, "\t", quoting), remedy)


def read_csv(path: Path, corpus: CorpusConfig, separator: str = "") -> Iterator[Row]:
    """The rows of a CSV file; with a header unless columns are named by numbers.

    separator: between its cells; without it that of the recipe, a tab if the file is a .tsv, else what is found.
    """
    check_lines(open_lines(path), path, (line_end_problem,))
    separator = separator or corpus.delimiter or ("\t" if ".tsv" in path.suffixes[-2:] else "")
    separator = separator or find_delimiter(path, column_names(corpus), is_headed=not _has_numbered_columns(corpus))
    if (table := find_word_table(path)) is not None and len(corpus.source_columns) == 1:
        sentence = f"its rows are words, and column {table.sentence} says of which sentence"
        add_remark(path, f'{sentence}: format = "conll" reads sentences')
    quoting = corpus.quoting or ("raw" if len(separator) > 1 else find_csv_quoting(path, separator))
    yield from _read_columns(path, corpus, split_rows(path, separator, quoting), _quoting_advice(separator))


def has_header_row(corpus: CorpusConfig) -> bool:
    """Whether the first row of a file names its columns."""
    return not _has_numbered_columns(corpus) if corpus.header is None else corpus.header


def _has_numbered_columns(corpus: CorpusConfig) -> bool:
    return all(each.isdecimal() for each in column_names(corpus))


def _quoting_advice(separator: str) -> str:
    return f"put quotation marks around a whole cell that contains {separator!r}, with no space before them"


def _read_columns(
    path: Path, corpus: CorpusConfig, rows: Iterator[tuple[int, list[str]]], remedy: str
) -> Iterator[Row]:
    names: list[str] = []
    num_blank = 0
    if has_header_row(corpus):
        names = [""]
        for _, row in rows:
            if row not in BLANK_ROWS:
                names = row
                break
            num_blank += 1
    sample = list(islice(rows, MAX_ROWS_SAMPLED))
    rows = chain(sample, rows)
    if (remark := cells_remark([row for _, row in sample])) is not None:
        add_remark(path, remark)
    if names and (cells := [row for _, row in sample if row not in BLANK_ROWS]):
        if has_empty_ends(names, cells):
            add_remark(path, "a delimiter ends each row below its header, and is left out")
            rows = _drop_empty_ends(rows, len(names) + 1)
        elif has_row_names(names, cells):
            text = "its header has no name for the first column, which has the names of rows, as R writes them"
            add_remark(path, text)
            names = ["", *names]
    column_indices = [
        _column_index(path, [] if _has_numbered_columns(corpus) else names, column) for column in column_names(corpus)
    ]
    if corpus.header is None and not names:
        rows = _with_header_remark(path, rows, column_indices)
    has_blank = len(names) > 1 or max(column_indices) > 0
    data_rows = drop_blank_rows(path, rows, BLANK_ROWS if has_blank else BLANK_ROWS[:1], num_blank)
    if len(names) > 1:
        data_rows = _drop_repeated_headers(path, data_rows, names)
    cell_numbers = column_indices if corpus.format == "tsv" else ()
    same_width = _check_row_widths(path, data_rows, len(names), remedy, cell_numbers)
    yield from _select_cells(path, same_width, column_indices, corpus)


def _with_header_remark(
    path: Path, rows: Iterator[tuple[int, list[str]]], column_indices: Sequence[int]
) -> Iterator[tuple[int, list[str]]]:
    """The rows, with a remark if the first seems to name the columns that are read as data, or one a little below."""
    first = list(islice(rows, MAX_ROWS_ABOVE_HEADER))
    filled = [(line, row) for line, row in first if row not in BLANK_ROWS]
    place = _find_names([[row[index] for index in column_indices if index < len(row)] for _, row in filled])
    if place is not None:
        line, row = filled[place]
        remedy = f"remove the lines up to {line}" if place else "header = true"
        location = f"line {line}" if place else "first row"
        add_remark(path, f"its {location} ({format_names(row)}) is read as data: if it names columns, {remedy}")
    return chain(first, rows)


def _find_names(rows: Sequence[Sequence[str]]) -> int | None:
    """The place of a row of different usual names, or that of a first row of languages if no other is one: short words
    look like these. None if there is no such row.
    """
    if rows and are_languages(rows[0]) and not any(map(are_languages, rows[1:])):
        return 0
    return next((n for n, row in enumerate(rows) if has_usual_names(row) and len({*row}) == len(row)), None)


def _drop_empty_ends(rows: Iterator[tuple[int, list[str]]], width: int) -> Iterator[tuple[int, list[str]]]:
    """The rows; those with one cell more than `width` lose it if it is empty."""
    return ((line, row[:-1] if len(row) == width and not row[-1] else row) for line, row in rows)


def _drop_repeated_headers(
    path: Path, rows: Iterable[tuple[int, list[str]]], names: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    """The rows without repetitions of the header, as in files that were concatenated."""
    lines: list[int] = []
    for line, row in rows:
        if row == names or (row and row[0][:1] == BYTE_ORDER_MARK and _without_mark(row) == names):
            lines.append(line)
        else:
            yield line, row
    if lines:
        rows_are = "1 row is" if len(lines) == 1 else f"{len(lines):,} rows are"
        add_remark(path, f"{rows_are} the header again, and left out: the first in line {lines[0]:,}")


def _without_mark(row: Sequence[str]) -> list[str]:
    """The row without a byte order mark before it, behind which quotation marks were read as text."""
    return [row[0].removeprefix(BYTE_ORDER_MARK).strip('"'), *row[1:]]


def _check_row_widths(
    path: Path, rows: Iterable[tuple[int, list[str]]], num_cells: int, remedy: str, tsv_columns: Sequence[int]
) -> Iterator[tuple[int, list[str]]]:
    """The rows, each of which must have so many cells; 0: as many as the first of them.

    tsv_columns: the columns that are read, if programs that cut columns between tabs can write them.
    """
    for line, row in rows:
        num_cells = num_cells or len(row)
        if len(row) != num_cells:
            if tsv_columns and len(row) < num_cells:
                remedy = _short_row_advice(len(row), num_cells, tsv_columns)
            problem = f"has {format_count(len(row), 'column')}, but the first row has {num_cells}: {remedy}"
            raise DataError(problem, file=path, line=line)
        yield line, row


def _short_row_advice(num_cells: int, num_columns: int, columns: Sequence[int]) -> str:
    """The remedy for a row of a TSV file that ends before the last column.

    Args:
        num_cells: of the row.
        num_columns: of the first row.
        columns: those that are read, from 0.
    """
    if max(columns) < num_cells:
        fields = ",".join(str(column + 1) for column in sorted({*columns}))
        return f"if only cells at its end are missing, keep the columns that are read, as by cut -f {fields} FILE"
    return f"if such rows are none of the table, leave them out, as by awk -F'\\t' 'NF == {num_columns}' FILE"


def _select_cells(
    path: Path, rows: Iterable[tuple[int, list[str]]], column_indices: Sequence[int], corpus: CorpusConfig
) -> Iterator[Row]:
    """The cells of each row at some places, those of the source first and as one text."""
    num_sources = len(corpus.source_columns)
    for number, (line, row) in enumerate(rows):
        try:
            remark_line_breaks(row[column_indices[-1]], corpus, path)
            cells = [join_lines(row[index]) for index in column_indices]
            if (problem := next(filter(None, map(_json_cell_problem, cells)), None)) is not None:
                raise DataError(problem, file=path, line=line)
            if is_undecided(corpus.target, cells[num_sources]):
                add_remark(path, UNDECIDED_REMARK)
            for mark in NULL_MARKS.keys() & {*cells}:
                add_remark(path, f"cells that are {mark}, as {NULL_MARKS[mark]}, are read as text")
            if number == 0 and (list_cells := [cell for cell in cells if PYTHON_LIST.fullmatch(cell)]):
                add_remark(path, f"{list_cells[0]:.30} is a list as Python writes it, read as text: use JSON Lines")
        except IndexError:
            problem = f"has {format_count(len(row), 'column')}, but column {max(column_indices) + 1} is needed"
            raise DataError(problem, file=path, line=line) from None
        yield tuple(cells) if num_sources == 1 else (join_cells(cells[:num_sources]), *cells[num_sources:])


def _json_cell_problem(cell: str) -> str | None:
    """Why a cell is JSON of Label Studio instead of a text or label; None if it is not."""
    if not cell.startswith(('[{"', '{"choices"')):
        return None
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        return f"a cell holds several labels ({cell:.60}), and a text has one: write one name for them"
    problem = spans_problem(value)
    return None if problem is None else f"a cell {problem}"


def _column_index(path: Path, names: Sequence[str], column: str) -> int:
    """The index of a column, by its name or, without a header, its number."""
    if not names:
        return int(column)
    if column not in names:
        check_layout(path)
        has_header = "file_name" in (column, *names)  # which tables of images must have
        remedy = "" if has_header else "; if it has no header, give columns by number (0, 1)"
        similar = [name for name in names if name.strip().casefold() == column.strip().casefold()]
        if len(similar) == 1:
            remedy = f": write it as there, {similar[0]!r:.80}"
        problem = f"there is no column {column!r}; its header names: {format_names(names)}{remedy}"
        raise DataError(problem, file=path, line=1)
    if names.count(column) > 1:
        raise DataError(f"its header names column {column!r} twice: rename one of them", file=path, line=1)
    return names.index(column)
