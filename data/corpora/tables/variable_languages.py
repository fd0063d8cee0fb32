"""Translations into languages that vary from row to row, as a feature of `datasets` has them:
`{"language": ["de", "en"], "translation": ["Hund", "dog"]}`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

import pyarrow as pa

from tfm.data.corpora.remarks import add_remark
from tfm.data.errors import DataError, format_names

FIELDS = ("language", "translation")


def has_variable_languages(value: object) -> TypeGuard[Mapping[str, Sequence[str | None]]]:
    """Whether a value is a list of languages, and one of as many texts."""
    if not isinstance(value, Mapping) or {*value} != {*FIELDS}:
        return False
    languages, texts = (value[field] for field in FIELDS)
    return (
        isinstance(languages, list)
        and isinstance(texts, list)
        and len(languages) == len(texts)
        and all(isinstance(each, str) for each in languages)
    )


def texts_of_language(
    value: Mapping[str, Sequence[str | None]], language: str, lists: str | None, path: Path | str, row: int
) -> str | list[str]:
    """The text of a row in a language, which is empty if the row has none in it; a list if lists are references.

    Args:
        value: the languages and texts of the row.
        language: the one to read.
        lists: the way a corpus reads lists of a target; of a source None.

        path, row: the place, for messages; if the first row lacks the language, that is remarked.

    Raises:
        DataError: there are several, and they are no references.
    """
    languages, translations = (value[field] for field in FIELDS)
    if row == 1 and language not in languages:
        has = format_names(dict.fromkeys(languages))
        add_remark(path, f"its first row has no text in {language!r:.40} (it has {has}), which is read as an empty one")
    texts = [text or "" for each, text in zip(languages, translations, strict=True) if each == language]
    if lists == "references":
        return texts
    if len(texts) > 1:
        remedy = 'keep one or, of a test set\'s target, set lists = "references"'
        problem = f"there are {len(texts)} translations in {language!r:.40}: {remedy}"
        raise DataError(problem, file=path, line=row)
    return texts[0] if texts else ""


def language_column(table: pa.Table, name: str, lists: str | None, path: str, first_row: int) -> pa.ChunkedArray | None:
    """The texts of a language; None if the table has no such column. The language is named alone where the column is
    `translation`, else behind its name and a dot.

    Args:
        table: some rows.
        name: of the column to read.
        lists: the way a corpus reads lists of a target; of a source None.
        path: what messages name.
        first_row: the number of the first row, for messages.
    """
    column, _, language = name.rpartition(".")
    column = column or FIELDS[1]
    if column not in table.column_names or not _is_variable_type(table.schema.field(column).type):
        return None
    texts: list[str | list[str]] = []
    for row, value in enumerate(table.column(column).to_pylist(), first_row):
        if value is not None and not has_variable_languages(value):
            raise DataError(f"column {column!r} has not as many texts as languages", file=path, line=row)
        texts.append(texts_of_language(value or dict.fromkeys(FIELDS, ()), language, lists, path, row))
    return pa.chunked_array([pa.array(texts, pa.list_(pa.string()) if lists == "references" else pa.string())])


def _is_variable_type(data_type: pa.DataType) -> bool:
    fields = [data_type.field(index) for index in range(data_type.num_fields)] if pa.types.is_struct(data_type) else []
    return {field.name for field in fields} == {*FIELDS} and all(
        pa.types.is_list(field.type) or pa.types.is_large_list(field.type) for field in fields
    )
