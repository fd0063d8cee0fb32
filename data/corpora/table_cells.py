"""Cells to texts: columns of Arrow tables, lists of texts in a cell, and which are source and references."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import cast

import pyarrow as pa

from tfm.data.corpora.references import Row
from tfm.data.corpora.remarks import add_remark
from tfm.data.corpora.tables.values import arrow_remedy, is_list_type
from tfm.data.corpora.tables.variable_languages import language_column
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, format_names
from tfm.data.formats.class_labels import (
    ClassNames,
    class_name,
    schema_class_names,
    unused_names_problem,
)
from tfm.data.formats.row_sizes import decode_array, split_table
from tfm.data.lines import join_lines

MAX_NESTING_DEPTH = 4
"""How deep fields of structs are looked up."""
LINE_BREAKS_REMARK = (
    "line breaks within its texts are read as spaces: if a model is to learn lines (poems, code), write the texts into "
    'a file of lines, for source = "none", target = FILE'
)


def column_names(corpus: CorpusConfig) -> list[str]:
    """The files or columns of source, target and further references."""
    return [*corpus.source_columns, corpus.target, *(corpus.references or ())]


def join_cells(cells: Iterable[str]) -> str:
    """The source that several cells of a row are, with a space between; empty ones add nothing."""
    return " ".join(filter(None, cells))


def remark_line_breaks(text: str, corpus: CorpusConfig, path: Path | str) -> None:
    """Remark that a text has several lines, where texts are read alone and not as a side of pairs."""
    if corpus.source is None and "\n" in text.strip():
        add_remark(path, LINE_BREAKS_REMARK)


def cell_text(value: str | list[str], column: str, corpus: CorpusConfig, path: Path | str, line: int) -> str:
    """The text of a cell; a list where lists are joined. line: of the cell, or its row, from 1."""
    if isinstance(value, str):
        return value
    lists: str | None = corpus.lists  # or "label", which no recipe says: see `with_lists_of`
    if lists == "words":
        if invalid_words := [word for word in value if word.split() != [word]]:
            content = f"the word {invalid_words[0][:40]!r}" if invalid_words[0] else "an empty word"
            problem = (
                f"column {column!r} holds {content}: without a space, each has one tag; write for example _ instead"
            )
            raise DataError(problem, file=path, line=line)
    elif lists == "label":
        if len(value) > 1 and column not in corpus.source_columns:
            problem = (
                f"column {column!r} holds several labels ({format_names(value, max_chars=60)}), and a text has one"
            )
            raise DataError(f"{problem}: write one name for them, or a row for each", file=path, line=line)
    elif lists != "join":
        problem = f'column {column!r} holds lists; say lists = "join" for their texts with spaces between'
        test_remedy = ' or, of a test set\'s target, lists = "references"'
        raise DataError(problem + ("" if column in corpus.source_columns else test_remedy), file=path, line=line)
    return " ".join(value)


def cell_references(
    value: str | list[str], column: str, corpus: CorpusConfig, path: Path | str, line: int
) -> list[str]:
    """The references in a cell."""
    if isinstance(value, list) and corpus.lists == "references":
        return value or [""]
    return [cell_text(value, column, corpus, path, line)]


def top_level_columns(corpus: CorpusConfig, names: Sequence[str]) -> list[str]:
    """The columns of a table that contain what a corpus names, directly or in a field (see `_table_column`)."""
    prefixes = {*(each.split(".")[0] for each in column_names(corpus) if each), "translation"}
    return [name for name in names if {name, name.split(".")[0]} & prefixes]


def read_tables(
    tables: Iterable[pa.Table], corpus: CorpusConfig, path: str, class_names: ClassNames | None = None
) -> Iterator[Row]:
    """The rows of tables with the same columns: source, target and further references.

    Each table is cut into parts before its values become Python's, so that memory is bounded by that of the largest
    table.

    Args:
        tables: the tables, the first of which may be empty.
        corpus: which columns are read.
        path: what messages name.
        class_names: the names of classes that are stored as integers; those in the metadata of a table come first.

    Raises:
        DataError: a row is longer than a line may be, or a column holds something else than text, lists of texts or,
            for a target, classes.
    """
    first_row, num_sources = 1, len(corpus.source_columns)
    for table in tables:
        table.validate(full=True)  # of offsets that lead elsewhere nothing must be read
        classes = {**(class_names or {}), **schema_class_names(table.schema)}
        columns = [
            _language_or_table_column(
                table,
                name,
                corpus.lists if index >= num_sources else None,
                path,
                first_row,
                may_be_classes=index >= num_sources or name in classes,
                has_names=index >= num_sources and bool(corpus.classes),
            )
            for index, name in enumerate(column_names(corpus))
        ]
        texts = pa.Table.from_arrays(columns, [str(number) for number in range(len(columns))])
        for part in split_table(texts, path, first_row):
            yield from _rows_of_table_part(part, corpus, path, first_row, classes)
            first_row += len(part)


def _rows_of_table_part(
    part: pa.Table, corpus: CorpusConfig, path: str, first_row: int, classes: ClassNames
) -> Iterator[Row]:
    names, num_sources = column_names(corpus), len(corpus.source_columns)
    columns: list[list[str] | list[list[str]]] = []
    for index, (name, column) in enumerate(zip(names, part.columns, strict=True)):
        class_names = (corpus.classes if index >= num_sources else ()) or classes.get(name)
        label_name = partial(class_name, names=class_names, column=name, file=path)
        columns.append(_column_values(column, first_row, label_name, partial(_one_line, corpus=corpus, path=path)))
    is_pair = num_sources < 2 and len(columns) == num_sources + 1
    if is_pair and not any(isinstance(cell, list) for column in columns for cell in column[:1]):
        sources = columns[0] if num_sources else [""] * len(part)
        return cast(Iterator[Row], zip(sources, columns[-1], strict=True))
    numbered_cells = enumerate(zip(*columns, strict=True), first_row)
    return (make_row(cells, names, corpus, path, number) for number, cells in numbered_cells)


def make_row(
    cells: Sequence[str | list[str]], names: Sequence[str], corpus: CorpusConfig, path: Path | str, line_number: int
) -> Row:
    """The source and the references of a row.

    Args:
        cells: those of the source, and those behind it.
        names: of their columns.
        corpus: how lists of texts are read.
        path, line_number: the place, for messages.
    """
    named_cells, num_sources = list(zip(cells, names, strict=True)), len(corpus.source_columns)
    source = join_cells(cell_text(cell, name, corpus, path, line_number) for cell, name in named_cells[:num_sources])
    texts = (cell_references(cell, name, corpus, path, line_number) for cell, name in named_cells[num_sources:])
    return source, *chain.from_iterable(texts)


def _language_or_table_column(
    table: pa.Table, name: str, lists: str | None, path: str, first_row: int, **kinds: bool
) -> pa.ChunkedArray:
    """The texts of a language where the languages vary from row to row, else a column as `_table_column` has it."""
    texts = None if name in table.column_names else language_column(table, name, lists, path, first_row)
    return _table_column(table, name, path, **kinds) if texts is None else texts


def _table_column(table: pa.Table, name: str, path: str, *, may_be_classes: bool, has_names: bool) -> pa.ChunkedArray:
    """A column of texts, of classes, or of lists of them; `a.b.c`, and `c` within a column `translation` (as on the
    Hub), is a field of structs.

    has_names: whether the recipe has names of its classes.
    """
    for _ in range(MAX_NESTING_DEPTH):
        if name in table.column_names or not any(pa.types.is_struct(field.type) for field in table.schema):
            break
        table = table.flatten()
    full_name = next((each for each in (name, f"translation.{name}") if each in table.column_names), None)
    if full_name is None:
        raise DataError(f"there is no column {name!r}; it has {format_names(table.column_names)}", file=path)
    if table.column_names.count(full_name) > 1:
        raise DataError(f"has column {name!r} twice: rename one of them", file=path)
    column = _null_as_text(decode_array(table.column(full_name)))
    value_type = _value_type(column.type)
    is_text = (
        pa.types.is_string(value_type) or pa.types.is_large_string(value_type) or pa.types.is_string_view(value_type)
    )
    if not is_text and not (_is_class_label_type(value_type) and may_be_classes):
        remedy = arrow_remedy(name, column.type, may_be_class=may_be_classes)
        raise DataError(f"column {name!r} holds {column.type}, not text{remedy}", file=path)
    if is_text and has_names:
        raise DataError(unused_names_problem(name), file=path)
    return column


def _null_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Turn a column of nulls, or of lists of nulls, into one of empty texts; other columns are unchanged."""
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    is_empty = is_list_type(column.type) and pa.types.is_null(column.type.value_type)
    return column.cast(pa.list_(pa.string())) if is_empty else column


def _one_line(text: str | None, row: int, corpus: CorpusConfig, path: str) -> str:
    remark_line_breaks(text or "", corpus, path)
    return join_lines(text or "")


def _column_values(
    column: pa.ChunkedArray, first_row: int, label_name: Callable[..., str], one_line: Callable[..., str]
) -> list[str] | list[list[str]]:
    """The cells of a column as texts.

    Args:
        column: the column.
        first_row: the number of its first row.
        label_name: gives the name of a class by its value and `row`.
        one_line: gives a text on one line by the text and `row`.
    """
    cell = label_name if _is_class_label_type(_value_type(column.type)) else one_line
    rows = enumerate(column.to_pylist(), first_row)
    if is_list_type(column.type):
        return [[cell(each, row=row) for each in value or ()] for row, value in rows]
    return [cell(value, row=row) for row, value in rows]


def _value_type(data_type: pa.DataType) -> pa.DataType:
    """The type of the values of a column, without lists and dictionaries."""
    value_type = data_type.value_type if is_list_type(data_type) else data_type
    return value_type.value_type if pa.types.is_dictionary(value_type) else value_type


def _is_class_label_type(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_boolean(data_type))
