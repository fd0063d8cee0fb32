"""The corpus that a single file is, as a recipe says it: by the ending of its name, and by how it begins."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from tfm.data.compression.files import strip_compression_ending
from tfm.data.corpora.dialects import NumberedRows, find_csv_quoting, find_delimiter, find_tsv_quoting, split_rows
from tfm.data.corpora.json_rows import first_rows, table_orientation_problem
from tfm.data.corpora.paths.column_choice import (
    are_tatoeba_rows,
    choose_column_indices,
    column_indices_by_name,
    differs_from_rows,
    has_repeated_names,
    is_header,
)
from tfm.data.corpora.paths.content_formats import (
    FORMAT_BY_EXTENSION,
    MAX_LINES_SAMPLED,
    check_layout,
    detect_content_format,
    format_by_content,
    has_word_per_line,
    has_words_and_phones,
    is_conll_x,
)
from tfm.data.corpora.tables.choices import choices_problem, unnamed_choices_problem
from tfm.data.corpora.tables.fields import row_fields
from tfm.data.corpora.tables.layouts import has_usual_names
from tfm.data.corpora.tables.lines import find_long_delimiter, has_row_names
from tfm.data.corpora.tables.program_documents import program_document_problem
from tfm.data.corpora.tables.structures import has_columns, row_problem, value_problem, whole_document_problem
from tfm.data.corpora.tables.word_lists import are_word_pairs
from tfm.data.corpus_config import Quoting
from tfm.data.errors import DataError, ExportableFileError, escape_unprintable
from tfm.data.formats.conll.column_roles import find_label_column, find_word_column, unlabelled_problem
from tfm.data.formats.conll.layout import are_tagged_sentences, detect_layout, tagged_words_problem
from tfm.data.formats.conll.word_table import find_word_table
from tfm.data.formats.parquet import read_parquet
from tfm.data.formats.translations.tmx import languages_of_first_unit
from tfm.data.lines import open_lines, open_maybe_compressed

MAX_ROWS_BEHIND, ROWS_PER_SAMPLE = 10_000, 100
FORMATS_WITH_DEFAULTS = ("conllu", "conll", "xliff", "po", "labelled")
"""Formats whose columns need no names."""


@dataclass(frozen=True)
class DetectedColumns:
    """The columns of a file.

    Args:
        names: their names or, without a header, numbers.
        is_sure: whether it is sure which they are.
        is_headed: if it is not, whether the first row seems to name them.
        places: the places of those to read, that of the target last.
        with_lists: names of those with lists of texts.
        has_repeated_names: whether a header names two of them alike, so that they are taken by number.
        has_languages: whether its rows are sentences of several languages, each with a number, as Tatoeba has them.
    """

    names: Sequence[str | int]
    is_sure: bool = True
    is_headed: bool = True
    column_indices: tuple[int, ...] = (0, 1)
    with_lists: frozenset[str] = frozenset()
    has_repeated_names: bool = False
    has_languages: bool = False


def suggest_corpus_table(path: Path, sources: Sequence[str], target: str) -> str:
    """A TOML table for `data.train` that reads a file, and in words what else it may be.

    Args:
        path: the file.
        sources, target: columns that the recipe names, which are taken where the file has them; without sources the
            texts are read alone.

    Raises:
        ExportableFileError: the file is one that a text or table is to be exported from, or text with tags or times.
    """
    named_format = FORMAT_BY_EXTENSION.get(strip_compression_ending(path.name.lower()).rpartition(".")[2], "")
    format_ = named_format
    try:
        format_ = (
            format_by_content(path, format_) if format_ in ("csv", "tsv") else format_ or detect_content_format(path)
        )
        if format_ == "conll" and are_tagged_sentences(path):
            format_ = "tsv"
        if format_ == "conll" and is_conll_x(path):
            format_ = "conllu"
        if format_ in ("csv", "tsv") and find_word_table(path) is not None:
            format_ = "conll"
        if format_ == "tsv" and has_word_per_line(path):
            format_ = "conll"
        detected = _detect_columns(path, format_)
        delimiter = find_long_delimiter(path) if format_ == "csv" else None
        if (format_, named_format) == ("csv", "tsv"):
            delimiter = find_delimiter(path, ["1"], is_headed=False)
    except ExportableFileError:
        raise
    except (DataError, ValueError, OSError):  # whatever is wrong with it, reading it will say
        format_ = format_ or "text"
        detected = DetectedColumns([0, 1] if format_ in ("csv", "tsv") else [*sources, target])
        delimiter = None
    target_only = f'{{ source = "none", target = "{path}" }}'
    if format_ == "text" and not sources:
        return target_only
    if format_ == "text":
        if (problem := tagged_words_problem(path)) is not None:
            raise ExportableFileError(problem, file=path)
        pair = f'{{ source = "{path}", target = "OTHER" }}'
        return f"{pair}, where line i of OTHER is the translation of line i, or {target_only} for texts alone"
    table = f'{{ format = "{format_}", path = "{path}"'
    if delimiter is not None:
        table += f', delimiter = "{delimiter}"'
    if format_ == "conll":
        return table + _conll_columns(path)
    if format_ == "labelled" and (lines := _first_lines(path)):
        words = f'{table}, source = "label", target = "text" }}'
        if has_words_and_phones(lines):
            return words
        if are_word_pairs(lines):
            return f"{words}, or {target_only} if its lines are texts" if sources else target_only
    if format_ in FORMATS_WITH_DEFAULTS:
        return table + " }"
    columns = _choose_columns(detected, sources, target)
    lists = ', lists = "join"' if detected.with_lists.intersection(map(str, columns)) else ""
    header = ", header = true" if detected.has_repeated_names else ""
    corpus_table = f"{table}, {_format_toml_columns(columns)}{lists}{header} }}"
    if detected.has_languages:
        remedy = "its languages; pairs of translations are made with links.csv of Tatoeba: docs/data/README.md"
        return f"{corpus_table} ({remedy})"
    if detected.is_sure:
        has_unnamed_columns = len(detected.names) > 2 and isinstance(detected.names[0], int)
        return (
            f"{corpus_table} (its columns are 0 to {len(detected.names) - 1})" if has_unnamed_columns else corpus_table
        )
    numbers = _format_toml_columns([*map(detected.names.index, columns)])
    if detected.is_headed or {*sources, target}.issubset(detected.names):
        return f"{corpus_table}, or {numbers} if its first row is not a header"
    return f"{table}, {numbers} }}, or {_format_toml_columns(columns)} if its first row is a header"


def _first_lines(path: Path) -> list[str]:
    return [line for line in islice(open_lines(path), MAX_LINES_SAMPLED) if line.strip()]


def _conll_columns(path: Path) -> str:
    """The end of a table for a file of columns: which of them are read, if not the first and the last."""
    layout = detect_layout(path)
    if layout.is_conll_2009:
        return ", source = 1, target = 4 } (its columns are those of CoNLL-2009)"
    if layout.has_arguments:
        return ", source = 3, target = 4 } (its columns are those of CoNLL-2012)"
    if (problem := tagged_words_problem(path) or unlabelled_problem(path, layout)) is not None:
        raise ExportableFileError(problem, file=path)
    words = find_word_column(path, layout)
    labels = find_label_column(path, layout, words)
    source = "" if words == layout.word_column else f", source = {words}"
    return f"{source}{'' if labels is None else f', target = {labels}'} }}"


def _choose_columns(detected: DetectedColumns, sources: Sequence[str], target: str) -> list[str | int]:
    """The columns of the source, if any, and last that of the target."""
    if {*sources, target}.issubset(detected.names):
        return [*sources, target]
    if len(detected.names) < 2 or not sources:
        return [detected.names[-1] if detected.names else target]
    return [detected.names[index] for index in detected.column_indices]


def _format_toml_columns(columns: Sequence[str | int]) -> str:
    *sources, target = map(_toml_value, columns)
    source = f"[{', '.join(sources)}]" if len(sources) > 1 else "".join(sources) or '"none"'
    return f"source = {source}, target = {target}"


def _toml_value(column: str | int) -> str:
    return str(column) if isinstance(column, int) else f'"{escape_unprintable(column)[:80]}"'


def _detect_columns(path: Path, format_: str) -> DetectedColumns:
    """The columns of a file in a format; none in one whose columns have names of their own."""
    if format_ in ("jsonl", "parquet"):
        records = _json_rows(path) if format_ == "jsonl" else _parquet_rows(path)
        _check_rows(path, records)
        value_rows = [row_fields(record) for record in records]
        _check_choices(path, value_rows)
        return _detect_value_columns(value_rows)
    if format_ == "tmx":
        return DetectedColumns(languages_of_first_unit(path))
    if format_ not in ("csv", "tsv"):
        return DetectedColumns([])
    check_layout(path)
    delimiter = "\t" if format_ == "tsv" else find_long_delimiter(path) or find_delimiter(path, ["1"], is_headed=False)
    quoting: Quoting = "raw"
    if len(delimiter) == 1:
        quoting = find_tsv_quoting(path) if format_ == "tsv" else find_csv_quoting(path, delimiter)
    rows = _sample_rows(split_rows(path, delimiter, quoting))
    first, other_rows = (rows[0], rows[1:]) if rows else (["", ""], [])
    if other_rows and has_row_names(first, other_rows):
        first = ["", *first]
    if has_usual_names(first) and len(first) > 1:
        other_rows = [row for row in other_rows if row != first]
    if has_repeated_names(first, other_rows):
        column_indices = column_indices_by_name(first) or choose_column_indices(other_rows, len(first))
        return DetectedColumns(range(len(first)), column_indices=column_indices, has_repeated_names=True)
    if not is_header(first, other_rows):
        if (problem := unnamed_choices_problem(rows)) is not None:
            raise ExportableFileError(problem, file=path)
        column_indices = choose_column_indices(rows, len(first))
        return DetectedColumns(
            range(len(first)), column_indices=column_indices, has_languages=are_tatoeba_rows(rows, column_indices)
        )
    _check_choices(path, [dict(zip(first, row, strict=False)) for row in other_rows])
    named_indices = column_indices_by_name(first)
    is_headed = (
        named_indices is not None or has_usual_names(first) or not other_rows or differs_from_rows(first, other_rows)
    )
    return DetectedColumns(
        first, not first[0], is_headed, named_indices or choose_column_indices(other_rows, len(first), first)
    )


def _sample_rows(rows: NumberedRows) -> list[list[str]]:
    """The first rows that are not empty, and some behind them, as a table may be sorted by its labels."""
    sample = [row for _, row in islice(rows, MAX_LINES_SAMPLED) if any(row)]
    with suppress(DataError):  # reading the table will say it
        sample += [row for _, row in islice(rows, 0, MAX_ROWS_BEHIND, ROWS_PER_SAMPLE) if any(row)]
    return sample


def _json_rows(path: Path) -> list[Mapping[str, object]]:
    """The first rows of a file. Raises ExportableFileError if it is one object that is no row."""
    if (problem := program_document_problem(path)) is not None:
        raise ExportableFileError(problem, file=path)
    try:
        rows = first_rows(path, MAX_LINES_SAMPLED)
    except DataError:  # one object in a line that is too long
        if (problem := whole_document_problem(path)) is None:
            raise
        raise ExportableFileError(problem, file=path) from None
    # else they number rows, which are told below
    are_names = len(rows) == 1 and row_problem(rows[0]) is None and not all(map(str.isdecimal, rows[0]))
    if are_names and (problem := table_orientation_problem(rows[0])) is not None:
        raise ExportableFileError(problem, file=path)
    may_be_table = len(rows) == 1 and (has_columns(rows[0]) or column_indices_by_name(list(rows[0])) is None)
    if may_be_table and (problem := whole_document_problem(path)) is not None:
        raise ExportableFileError(problem, file=path)
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
    return DetectedColumns(names, column_indices=column_indices, with_lists=with_lists)


def _check_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Raise ExportableFileError if a column holds spans of entities, or the first row is a whole table."""
    if not rows:
        return
    orientation_problem = table_orientation_problem(rows[0]) if len(rows) == 1 else None
    if (problem := row_problem(rows[0]) or orientation_problem) is not None:
        raise ExportableFileError(problem, file=path)
    for row in rows:
        for name, value in (*row.items(), ("", [row])):
            if (problem := value_problem(name, value)) is not None:
                raise ExportableFileError(f"{name!r:.60} {problem}" if name in row else problem, file=path)


def _check_choices(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Raise ExportableFileError if rows are questions with choices."""
    if (problem := choices_problem(rows)) is not None:
        raise ExportableFileError(problem, file=path)


def _value_text(value: object) -> str:
    """The text that a value is or may stand for; empty for others, such as objects."""
    if isinstance(value, list):
        if any(isinstance(each, list | dict) for each in value):
            return ""
        return " ".join(map(_value_text, value))
    return str(value) if isinstance(value, str | int | float) else ""
