"""Text files with a row a line: cells between tabs (tsv), or with quotation marks (csv)."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tfm.data.corpora.references import Row
from tfm.data.corpora.table_cells import sides_of
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, listed
from tfm.data.lines import MAX_LINE_BYTES, one_line, open_lines


def read_tsv(path: Path, corpus: CorpusConfig) -> Iterator[Row]:
    """The rows of a file of cells between tabs; with a header unless columns are named by numbers."""
    rows = ((number, line.split("\t")) for number, line in enumerate(open_lines(path), 1))
    sides = sides_of(corpus)
    is_headed = not all(each is None or each.isdecimal() for each in sides)
    names = next(rows, (0, [""]))[1] if is_headed else []
    yield from _cells(path, rows, *(_place(path, names, each) for each in sides))


def read_csv(path: Path, corpus: CorpusConfig, separator: str = ",") -> Iterator[Row]:
    """The rows of a CSV file with a header."""
    rows = _csv_rows(path, separator)
    names = next(rows, (0, [""]))[1]
    yield from _cells(path, rows, *(_place(path, names, each) for each in sides_of(corpus)))


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
        raise DataError(f"not a CSV row: {error}", file=path, line=table.line_num) from None


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
        raise DataError(f"there is no column {column!r}; its header names: {listed(names)}", file=path, line=1)
    if names.count(column) > 1:
        raise DataError(f"its header names column {column!r} twice: rename one of them", file=path, line=1)
    return names.index(column)
