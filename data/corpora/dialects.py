"""The dialect of a file of cells: what is between the cells, and what quotation marks in it are.

A recipe says it by `delimiter` and `quoting`; else the file does, and what was recognised is remarked.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from tfm.data.corpora.remarks import add_remark
from tfm.data.corpora.tables.lines import (
    FIRST_ROW_NAME,
    MAX_ROWS_SAMPLED,
    QUOTED_CELL,
    row_width,
    spaced_quotes_follow,
    table_lines,
)
from tfm.data.corpus_config import Quoting
from tfm.data.errors import DataError
from tfm.data.lines import MAX_LINE_BYTES, line_blocks, open_lines

QUOTINGS_OF_CSV: tuple[Quoting, ...] = ("double", "backslash")
ESCAPED_CELL = re.compile(r'"(?:[^"\\]|\\["\\])*"')
CR_PLACEHOLDER = "\udc0d"
"""Replaces carriage returns for `csv`, which rejects them outside of quotation marks. It is half a surrogate pair,
which no UTF-8 file has.
"""
ESCAPES_REMARK = 'backslashes are read as escapes (quoting = "backslash")'
SEPARATOR_LINE = re.compile(r"sep=(.)", re.IGNORECASE)
"""A first line that says the delimiter, as spreadsheets read it."""
DELIMITERS = {
    ",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars", "^": "carets", "~": "tildes", ":": "colons",
}  # fmt: skip
USUAL_DELIMITERS = ("\t", "|", ";", ",")
DELIMITERS_BY_PRIORITY = (*USUAL_DELIMITERS, "^", "~", ":")
"""Without a header, the delimiter that texts have least often is tried first."""
NumberedRows = Iterator[tuple[int, list[str]]]


def split_rows(path: Path, delimiter: str, quoting: Quoting) -> NumberedRows:
    """The cells of each row that is not empty, with the number of its last line.

    Raises:
        DataError: naming the line; a quotation mark is missing or out of place.
    """
    if quoting == "raw":
        return ((number, line.split(delimiter)) for number, line in table_lines(path, [delimiter]))
    return _quoted_rows(path, delimiter, quoting)


def find_delimiter(path: Path, columns: Sequence[str], *, is_headed: bool) -> str:
    """The delimiter with which a CSV file has the columns that are asked for, and as many cells in each row.

    Args:
        path: the file.
        columns: names in its header or, without one, numbers from 0.
        is_headed: whether its first row names the columns.

    Returns:
        That of a first line `sep=;`, else one of `DELIMITERS`; a comma if none fits.
    """
    if (match := SEPARATOR_LINE.fullmatch(next(open_lines(path), "").strip('"'))) is not None:
        add_remark(path, f"cells are read as separated by {match[1]!r}, as its first line says")
        return match[1]
    candidates = [(mark, columns) for mark in (DELIMITERS if is_headed else DELIMITERS_BY_PRIORITY)]
    if not is_headed and {*columns} == {"0"}:  # lines without any delimiter have a first cell, too
        candidates = [*((mark, ["1"]) for mark in USUAL_DELIMITERS), *candidates]
    for delimiter, wanted in candidates:
        if _splits_into_columns(path, delimiter, wanted, is_headed=is_headed):
            if delimiter != ",":
                add_remark(path, f"cells are read as separated by {DELIMITERS[delimiter]} (delimiter = {delimiter!r})")
            return delimiter
    return ","


def find_csv_quoting(path: Path, delimiter: str) -> Quoting:
    """Whether a CSV file doubles quotation marks within cells, as most do, or has a backslash before each."""
    if not any(b"\\" in block for block in line_blocks(path)):
        return "double"
    if not _has_uniform_width(path, delimiter, "backslash") or (
        _has_uniform_width(path, delimiter, "double") and not _are_all_quotes_escaped(path, delimiter)
    ):
        return "double"
    add_remark(path, ESCAPES_REMARK)
    return "backslash"


def find_tsv_quoting(path: Path) -> Quoting:
    """Whether quotation marks around the cells of a file with tabs are CSV's, or text.

    They are CSV's if every cell that begins with one ends with one, has those between them doubled, or with a backslash
    before each, and all rows have as many cells as the first; as pandas and spreadsheets write them, and R.
    """
    is_quoted, is_even, width = False, True, 0
    is_doubled = is_escaped = True
    for index, (number, line) in enumerate(table_lines(path, ["\t"])):
        cells = line.split("\t")
        if index == 1 and len(cells) == width + 1 and (cells[0] == f'"{FIRST_ROW_NAME}"' or not cells[-1]):
            width += 1  # R has no name for the column of names of rows, and others end rows with a tab
        width = width or len(cells)
        is_even &= len(cells) == width or not line
        for cell in cells:
            if not cell.startswith('"'):
                continue
            is_whole = QUOTED_CELL.fullmatch(cell) is not None
            is_escaped = is_escaped and ESCAPED_CELL.fullmatch(cell) is not None
            may_go_on = QUOTED_CELL.match(cell) is None and len(cells) != width  # after a tab or on the next line
            is_doubled = is_doubled and (is_whole or may_go_on)
            if not is_doubled and not is_escaped:
                if is_quoted:
                    add_remark(
                        path, f'quotation marks are kept as text, since those of line {number} are (quoting = "raw")'
                    )
                return "raw"
            is_quoted = True
    if is_quoted and not is_doubled and is_even:
        add_remark(path, ESCAPES_REMARK)
        return "backslash"
    if not is_quoted or not (is_even or _has_uniform_width(path, "\t", "double")):
        return "raw"
    add_remark(path, 'quotation marks around cells are removed, as in CSV (quoting = "double"; "raw" keeps them)')
    return "double"


def _splits_into_columns(path: Path, delimiter: str, columns: Sequence[str], *, is_headed: bool) -> bool:
    """Whether the first rows are of the same length with this delimiter and some quoting, and have these columns."""
    for quoting in QUOTINGS_OF_CSV:
        with suppress(DataError):
            rows = [row for _, row in islice(_quoted_rows(path, delimiter, quoting), MAX_ROWS_SAMPLED) if row]
            if rows and not {*map(len, rows[1:])} - {row_width(rows[0], rows[1:])}:
                has_columns = (
                    {*columns} <= {*rows[0]} if is_headed else len(rows[0]) > max(map(int, columns), default=0)
                )
                if has_columns:
                    return True
    return False


def _has_uniform_width(path: Path, delimiter: str, quoting: Quoting) -> bool:
    """Whether a whole file is read so without an error, each row with as many cells as the first."""
    try:
        rows = (row for _, row in _quoted_rows(path, delimiter, quoting) if row)
        first = next(rows, [])
        sample = list(islice(rows, MAX_ROWS_SAMPLED))
        width = row_width(first, sample)
        return all(len(row) == width for row in chain(sample, rows))
    except DataError:
        return False


def _are_all_quotes_escaped(path: Path, delimiter: str) -> bool:
    """Whether cells have quotation marks, and each of them a backslash before it."""
    cells = (cell for _, row in _quoted_rows(path, delimiter, "double") for cell in row if '"' in cell)
    is_one = False
    for cell in cells:
        is_one = cell.count('"') == cell.count('\\"')
        if not is_one:
            return False
    return is_one


def _quoted_rows(path: Path, delimiter: str, quoting: Quoting) -> NumberedRows:
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    size = lines_skipped = 0

    def quoted_lines() -> Iterator[str]:
        nonlocal size, lines_skipped
        for count, (number, line) in enumerate(table_lines(path, [delimiter]), 1):
            size, lines_skipped = size + len(line) + 1, number - count
            if size > MAX_LINE_BYTES:  # quotation marks may join lines without end
                problem = f"its row is longer than {MAX_LINE_BYTES:,} characters; is a quotation mark missing?"
                raise DataError(problem, file=path, line=number)
            yield line.replace("\r", CR_PLACEHOLDER) + "\n"

    escape = "\\" if quoting == "backslash" else None
    is_spaced = spaced_quotes_follow(path, delimiter)
    if is_spaced:
        add_remark(path, "spaces before cells are left out, as they are before quotation marks")
    table = csv.reader(quoted_lines(), strict=True, delimiter=delimiter, escapechar=escape, skipinitialspace=is_spaced)
    try:
        for row in table:
            size = 0
            if table.line_num == 1 and SEPARATOR_LINE.fullmatch(delimiter.join(row)):
                continue
            yield table.line_num + lines_skipped, [cell.replace(CR_PLACEHOLDER, "\r") for cell in row]
    except csv.Error as error:
        raise DataError(f"not a CSV row: {error}", file=path, line=table.line_num + lines_skipped) from None


def drop_blank_rows(
    path: Path, rows: Iterable[tuple[int, list[str]]], blank_rows: Sequence[list[str]], num_skipped: int
) -> NumberedRows:
    """The rows without those of blank lines, which are counted.

    Args:
        path: the file, for the remark.
        rows: its rows.
        blank_rows: how a blank line is read.
        num_skipped: how many were skipped before.
    """
    for number, row in rows:
        if row in blank_rows:
            num_skipped += 1
        else:
            yield number, row
    if num_skipped:
        add_remark(path, f"{num_skipped:,} blank lines were skipped" if num_skipped > 1 else "1 blank line was skipped")
