"""Text files with a row a line: cells between tabs (tsv), or with quotation marks (csv).

Every row has as many cells as the first: with a stray tab or comma, or without one, all cells after it would be those
of other columns.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tfm.data.corpora.references import Row
from tfm.data.corpora.table_cells import column_names
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, format_names
from tfm.data.lines import MAX_LINE_BYTES, one_line, open_lines

QUOTED = re.compile(r'"(?:[^"]|"")*"')


def read_tsv(path: Path, corpus: CorpusConfig) -> Iterator[Row]:
    """The rows of a file of cells between tabs; with a header unless columns are named by numbers.

    Quotation marks are text. A blank line in a table of several columns is no row.
    """
    rows = ((number, line.split("\t")) for number, line in enumerate(open_lines(path), 1))
    sides = column_names(corpus)
    is_headed = not all(each is None or each.isdecimal() for each in sides)
    names = next(rows, (0, [""]))[1] if is_headed else []
    places = [_place(path, names, each) for each in sides]
    if len(names) > 1 or max(places) > 0:
        rows = ((number, row) for number, row in rows if row != [""])
    remedy = 'a cell of tsv cannot contain a tab; if the file has quotation marks around its cells, set format = "csv"'
    yield from _cells(path, _even(path, _without_csv_quotes(path, rows), len(names), remedy), *places)


def read_csv(path: Path, corpus: CorpusConfig, separator: str = "") -> Iterator[Row]:
    """The rows of a CSV file with a header. separator: none given, it is a comma, or a tab if the file is a .tsv."""
    separator = separator or ("\t" if path.name.removesuffix(".gz").endswith(".tsv") else ",")
    rows = _csv_rows(path, separator)
    names = next(rows, (0, [""]))[1]
    sides = [_place(path, names, each) for each in column_names(corpus)]
    remedy = f"put quotation marks around a whole cell that contains {separator!r}, with no space before them"
    yield from _cells(path, _even(path, rows, len(names), remedy), *sides)


def _without_csv_quotes(path: Path, rows: Iterable[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file of cells between tabs.

    Raises:
        DataError: the file has cells as CSV quotes them ("a ""b"" c"), so that a quotation mark is not text in it. If
            an earlier cell begins with one and is not quoted so, it is text.
    """
    is_text = False
    for line, row in rows:
        if not is_text:
            for cell in row:
                if cell.startswith('"') and not QUOTED.fullmatch(cell):
                    is_text = True
                elif '""' in cell[1:-1] and QUOTED.fullmatch(cell) and not is_text:
                    problem = f"its cell {cell[:40]} has quotation marks as CSV has them"
                    remedy = 'set format = "csv", which takes a file .tsv to have tabs between its cells'
                    raise DataError(f"{problem}: {remedy}", file=path, line=line)
        yield line, row


def _csv_rows(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the number of its last line."""
    size = 0

    def lines() -> Iterator[str]:
        nonlocal size
        for number, line in enumerate(open_lines(path), 1):
            size += len(line) + 1
            if size > MAX_LINE_BYTES:  # quotation marks may join lines without end
                problem = f"its row is longer than {MAX_LINE_BYTES:,} characters; is a quotation mark missing?"
                raise DataError(problem, file=path, line=number)
            yield line + "\n"

    table = csv.reader(lines(), strict=True, delimiter=separator)
    try:
        for row in table:
            size = 0
            if row:
                yield table.line_num, row
    except csv.Error as error:
        has_cr = "new-line character" in str(error)
        problem = "has a carriage return (CR) in a cell without quotation marks: remove it" if has_cr else str(error)
        raise DataError(f"not a CSV row: {problem}", file=path, line=table.line_num) from None


def _even(
    path: Path, rows: Iterable[tuple[int, list[str]]], num_cells: int, remedy: str
) -> Iterator[tuple[int, list[str]]]:
    """The rows, each of which must have so many cells; 0: as many as the first of them."""
    for line, row in rows:
        num_cells = num_cells or len(row)
        if len(row) != num_cells:
            problem = f"has {len(row)} columns, but the first row has {num_cells}: {remedy}"
            raise DataError(problem, file=path, line=line)
        yield line, row


def _cells(path: Path, rows: Iterable[tuple[int, list[str]]], *sides: int) -> Iterator[Row]:
    """The cells of each row at two places, or more; at place -1 is none."""
    source, target, *more = sides
    for line, row in rows:
        try:
            first = "" if source < 0 else one_line(row[source])
            yield first, one_line(row[target]), *[one_line(row[each]) for each in more]
        except IndexError:
            problem = f"has {len(row)} columns, but column {max(sides) + 1} is needed"
            raise DataError(problem, file=path, line=line) from None


def _place(path: Path, names: Sequence[str], column: str | None) -> int:
    """The index of a column, by its name or, without a header, its number; -1 where there is no such side."""
    if column is None:
        return -1
    if not names:
        return int(column)
    if column not in names:
        raise DataError(f"there is no column {column!r}; its header names: {format_names(names)}", file=path, line=1)
    if names.count(column) > 1:
        raise DataError(f"its header names column {column!r} twice: rename one of them", file=path, line=1)
    return names.index(column)
