"""Rows of JSON files with an object a row: its values are texts, lists of texts, classes, or refused with a remedy."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from tfm.data.corpora.references import Row
from tfm.data.corpora.remarks import add_remark
from tfm.data.corpora.table_cells import column_names, make_row, remark_line_breaks
from tfm.data.corpora.tables.json_items import iterate_items
from tfm.data.corpora.tables.structures import (
    COLUMNS_PROBLEM,
    UNDECIDED_REMARK,
    has_columns,
    is_undecided,
    rejected_problem,
    row_problem,
    value_problem,
    whole_document_problem,
)
from tfm.data.corpora.tables.values import number_remedy, object_remedy
from tfm.data.corpora.tables.variable_languages import has_variable_languages, texts_of_language
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, ExportableFileError, format_names
from tfm.data.formats.class_labels import ClassNames, class_name, holds_text, unused_names_problem
from tfm.data.lines import join_lines


def read_json(path: Path, corpus: CorpusConfig, class_names: ClassNames | None = None) -> Iterator[Row]:
    """The rows of a file with an object a line, or whose objects are in an array, which may be in an object.

    Args:
        path: the file.
        corpus: which keys are read.
        class_names: the names of classes that the data set stores as integers, per key.

    Raises:
        DataError: naming the line, or the number of the object in the array.
    """
    for number, row in _iterate_checked_items(path, corpus):
        if (problem := rejected_problem(row)) is not None:
            raise DataError(problem, file=path, line=number)
        yield _make_row(row, corpus, path, number, class_names or {})


def _iterate_checked_items(path: Path, corpus: CorpusConfig) -> Iterator[tuple[int, object]]:
    """The objects of a file with their numbers. Raises DataError if the first is no row, but the whole table."""
    items = iterate_items(path, column_names(corpus))
    for number, row in islice(items, 1):
        if (problem := row_problem(row) or _document_problem(path, row, corpus)) is not None:
            raise DataError(problem, file=path)
        second_row = [*islice(items, 1)] if corpus.lists != "words" and has_columns(row) else None
        if second_row == []:
            raise ExportableFileError(COLUMNS_PROBLEM, file=path)
        yield number, row
        yield from second_row or ()
    yield from items


def _document_problem(path: Path, row: object, corpus: CorpusConfig) -> str | None:
    """Why a file is no table whose rows are objects, if its first row does not have the columns that are read."""
    names = {each.split(".")[0] for each in column_names(corpus)}
    return None if isinstance(row, dict) and names <= {*row} else whole_document_problem(path)


def first_rows(path: Path, max_rows: int) -> list[Mapping[str, object]]:
    """The first objects of a file."""
    rows: list[Mapping[str, object]] = []
    for _, row in islice(iterate_items(path, ()), max_rows):
        if not isinstance(row, dict):
            break
        rows.append(row)
    return rows


def _make_row(record: object, corpus: CorpusConfig, path: Path, line_number: int, class_names: ClassNames) -> Row:
    names, num_sources = column_names(corpus), len(corpus.source_columns)
    cells: list[str | list[str]] = []
    for index, column in enumerate(names):
        is_source = index < num_sources
        value = _get_column_value(record, column, None if is_source else corpus.lists, path, line_number)
        if isinstance(value, str):
            remark_line_breaks(value, corpus, path)
        if corpus.classes and not is_source and holds_text(value):
            raise DataError(unused_names_problem(column), file=path, line=line_number)
        classes = class_names.get(column) if is_source else corpus.classes or class_names.get(column, ())
        cells.append(_value_to_text_or_texts(value, column, path, line_number, classes))
        if not is_source and is_undecided(column, cells[-1]):
            add_remark(path, UNDECIDED_REMARK)
    return make_row(cells, names, corpus, path, line_number)


def _get_column_value(row: object, column: str, lists: str | None, path: Path, line: int) -> object:
    """The value at a key.

    Args:
        row: the object.
        column: the key; `a.b` is key b of the object at key a, and b may be one of `translation`, as on the Hub.
        lists: the way the corpus reads lists of a target; of a source None.
        path, line: the place, for messages.
    """
    value: object = row
    nested = row.get("translation") if isinstance(row, dict) else None
    if isinstance(row, dict) and column not in row and isinstance(nested, dict) and column in nested:
        value = nested
    elif isinstance(row, dict) and column not in row and has_variable_languages(nested) and "." not in column:
        return texts_of_language(nested, column, lists, path, line)
    for key in [column] if isinstance(value, dict) and column in value else column.split("."):
        if has_variable_languages(value) and key not in value:
            return texts_of_language(value, key, lists, path, line)
        if not isinstance(value, dict) or key not in value:
            has = f"; it has {format_names(row)}" if isinstance(row, dict) else ""
            raise DataError(f"there is no {column!r}{has}", file=path, line=line)
        value = value[key]
    return value


def _value_to_text_or_texts(
    value: object, column: str, path: Path, line: int, classes: Sequence[str] | None
) -> str | list[str]:
    """The text or texts that a value stands for; null is an empty text.

    Args:
        value: the value.
        column, path, line: the place, for messages.
        classes: integers and truth values stand for classes that are called so, or have no names if there are none of
            these. None: they are refused, as in a source without names.
    """
    if isinstance(value, list | dict) and (problem := value_problem(column, value)) is not None:
        raise DataError(f"{column!r} {problem}", file=path, line=line)
    if isinstance(value, list) and (remedy := object_remedy(column, value)):
        raise DataError(f"{column!r} holds {json.dumps(value):.40}, not text{remedy}", file=path, line=line)
    if isinstance(value, list):
        return [_value_to_text(each, column, path, line, classes) for each in value]
    return _value_to_text(value, column, path, line, classes)


def _value_to_text(value: object, column: str, path: Path, line: int, classes: Sequence[str] | None) -> str:
    if isinstance(value, int) and classes is not None:
        return class_name(value, classes, column=column, file=path, row=line)
    if value is not None and not isinstance(value, str):
        is_number = isinstance(value, int | float)
        remedy = number_remedy(value, may_be_class=classes is not None) if is_number else object_remedy(column, value)
        raise DataError(f"{column!r} holds {json.dumps(value):.40}, not text{remedy}", file=path, line=line)
    text = join_lines(value or "")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise DataError(f"{column!r} contains half a surrogate pair, which is not a character", file=path, line=line)
    return text
