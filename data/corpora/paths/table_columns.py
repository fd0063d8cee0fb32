"""The columns of a table in a file: their names or numbers, and those of the source and the target.

Rows of JSON and Parquet have names. In cells between delimiters the first row is asked first whether it names columns,
some of them alike, and then whether it names them at all; a file without a header has numbers. Usual names come before
what is in the cells (`column_choice`).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from tfm.data.corpora.dialects import NumberedRows, find_csv_quoting, find_delimiter, find_tsv_quoting, split_rows
from tfm.data.corpora.json_rows import first_rows
from tfm.data.corpora.paths.column_choice import (
    are_tatoeba_rows,
    choose_column_indices,
    choose_text_index,
    column_indices_by_name,
    differs_from_rows,
    has_repeated_names,
    is_header,
)
from tfm.data.corpora.paths.content_formats import MAX_LINES_SAMPLED, check_layout, check_problems
from tfm.data.corpora.tables.choices import choices_problem, unnamed_choices_problem
from tfm.data.corpora.tables.layouts import has_usual_names
from tfm.data.corpora.tables.lines import find_long_delimiter, has_row_names
from tfm.data.corpora.tables.program_documents import program_document_problem
from tfm.data.corpora.tables.structures import has_columns, row_problem, value_problem, whole_document_problem
from tfm.data.corpora.tables.values import row_fields
from tfm.data.corpus_config import Quoting
from tfm.data.errors import DataError, ExportableFileError
from tfm.data.formats.parquet import read_parquet
from tfm.data.formats.translations.tmx import languages_of_first_unit
from tfm.data.lines import open_maybe_compressed

MAX_ROWS_BEHIND, ROWS_PER_SAMPLE = 10_000, 100
"""Behind the first rows of a table, which may be sorted by its labels, one of so many is looked at."""


@dataclass(frozen=True)
class DetectedColumns:
    """The columns of a file.

    Args:
        names: their names or, without a header, numbers.
        is_sure: whether it is sure which they are.
        is_headed: if it is not, whether the first row seems to name them.
        column_indices: the places of those to read, that of the target last.
        text_index: the place of the one that is read where texts alone are.
        with_lists: names of those with lists of texts.
        has_repeated_names: whether a header names two of them alike, so that they are taken by number.
        has_languages: whether its rows are sentences of several languages, each with a number, as Tatoeba has them.
        delimiter: what stands between its cells, where a recipe has to say it.
    """

    names: Sequence[str | int]
    is_sure: bool = True
    is_headed: bool = True
    column_indices: tuple[int, ...] = (0, 1)
    text_index: int = -1
    with_lists: frozenset[str] = frozenset()
    has_repeated_names: bool = False
    has_languages: bool = False
    delimiter: str | None = None


def detect_columns(path: Path, format_: str) -> DetectedColumns:
    """The columns of a file in a format; none in one whose columns have names of their own."""
    if format_ in ("jsonl", "parquet"):
        records = _json_rows(path) if format_ == "jsonl" else _parquet_rows(path)
        _check_rows(path, records)
        value_rows = [row_fields(record) for record in records]
        check_problems(path, [choices_problem(value_rows)])
        return _detect_value_columns(value_rows)
    if format_ == "tmx":
        return DetectedColumns(languages_of_first_unit(path))
    if format_ not in ("csv", "tsv"):
        return DetectedColumns([])
    check_layout(path)
    if format_ == "tsv":
        return _detect_text_columns(path, "\t", find_tsv_quoting(path))
    if (delimiter := find_long_delimiter(path)) is not None:
        return replace(_detect_text_columns(path, delimiter, "raw"), delimiter=delimiter)
    delimiter = find_delimiter(path, ["1"], is_headed=False)
    columns = _detect_text_columns(path, delimiter, find_csv_quoting(path, delimiter))
    return replace(columns, delimiter=delimiter) if ".tsv" in path.suffixes[-2:] else columns


def _detect_text_columns(path: Path, delimiter: str, quoting: Quoting) -> DetectedColumns:
    """The columns of a file of cells between delimiters."""
    rows = _sample_rows(split_rows(path, delimiter, quoting))
    first, other_rows = (rows[0], rows[1:]) if rows else (["", ""], [])
    if other_rows and has_row_names(first, other_rows):
        first = ["", *first]
    if has_usual_names(first) and len(first) > 1:
        other_rows = [row for row in other_rows if row != first]
    if has_repeated_names(first, other_rows):
        column_indices = column_indices_by_name(first) or choose_column_indices(other_rows, len(first))
        text_index = choose_text_index(other_rows, len(first), first)
        return DetectedColumns(
            range(len(first)), column_indices=column_indices, text_index=text_index, has_repeated_names=True
        )
    if not is_header(first, other_rows):
        check_problems(path, [unnamed_choices_problem(rows)])
        column_indices = choose_column_indices(rows, len(first))
        return DetectedColumns(
            range(len(first)),
            column_indices=column_indices,
            text_index=choose_text_index(rows, len(first)),
            has_languages=are_tatoeba_rows(rows, column_indices),
        )
    check_problems(path, [choices_problem([dict(zip(first, row, strict=False)) for row in other_rows])])
    named_indices = column_indices_by_name(first)
    is_headed = (
        named_indices is not None or has_usual_names(first) or not other_rows or differs_from_rows(first, other_rows)
    )
    return DetectedColumns(
        first,
        not first[0],
        is_headed,
        named_indices or choose_column_indices(other_rows, len(first), first),
        choose_text_index(other_rows, len(first), first),
    )


def _sample_rows(rows: NumberedRows) -> list[list[str]]:
    """The first rows that are not empty, and some behind them, as a table may be sorted by its labels."""
    sample = [row for _, row in islice(rows, MAX_LINES_SAMPLED) if any(row)]
    with suppress(DataError):  # reading the table will say it
        sample += [row for _, row in islice(rows, 0, MAX_ROWS_BEHIND, ROWS_PER_SAMPLE) if any(row)]
    return sample


def _json_rows(path: Path) -> list[Mapping[str, object]]:
    """The first rows of a file. Raises ExportableFileError if it is one object that is no row."""
    check_problems(path, [program_document_problem(path)])
    try:
        rows = first_rows(path, MAX_LINES_SAMPLED)
    except DataError:  # one object in a line that is too long
        check_problems(path, [whole_document_problem(path)])
        raise
    may_be_table = len(rows) == 1 and (has_columns(rows[0]) or column_indices_by_name(list(rows[0])) is None)
    if may_be_table and row_problem(rows[0]) is None:
        check_problems(path, [whole_document_problem(path)])
    return rows


def _parquet_rows(path: Path) -> list[Mapping[str, object]]:
    """The first rows of a file, or one without values if it has none."""
    with open_maybe_compressed(path) as stream:
        empty, *first = islice(read_parquet(cast(BinaryIO, stream), lambda names: names), 2)
        rows = [row for table in first for row in table.slice(0, MAX_LINES_SAMPLED).to_pylist()]
    return rows or [dict.fromkeys(empty.column_names)]


def _detect_value_columns(rows: Sequence[Mapping[str, object]]) -> DetectedColumns:
    """The columns of rows whose values may be others than text."""
    names = [*rows[0]] if rows else []
    names = [name for name in names if 2 * sum(name in row for row in rows) >= len(rows)] or names
    cells = [[_value_text(row.get(name)) for name in names] for row in rows]
    column_indices = column_indices_by_name(names) or choose_column_indices(cells, len(names), names)
    with_lists = frozenset(name for name in names if any(isinstance(row.get(name), list) for row in rows))
    text_index = choose_text_index(cells, len(names), names)
    return DetectedColumns(names, column_indices=column_indices, text_index=text_index, with_lists=with_lists)


def _check_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Raise ExportableFileError if the first row is none, or a column holds no text or label."""
    check_problems(path, map(row_problem, rows[:1]))
    for row in rows:
        for name, value in (*row.items(), ("", [row])):
            if (problem := value_problem(name, value)) is not None:
                raise ExportableFileError(f"{name!r:.60} {problem}" if name in row else problem, file=path)


def _value_text(value: object) -> str:
    """The text that a value is or may stand for; empty for others, such as objects."""
    if isinstance(value, list):
        if any(isinstance(each, list | dict) for each in value):
            return ""
        return " ".join(map(_value_text, value))
    return str(value) if isinstance(value, str | int | float) else ""
