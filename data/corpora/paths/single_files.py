"""The corpus that a single file is, as a recipe says it: its format, and the columns that are read.

The format is that of `content_formats`; a table's columns are those of `table_columns`, those of words and labels are
found by `formats.conll`. Errors of a file in its format are left to reading it.
"""

from collections.abc import Sequence
from pathlib import Path

from tfm.data.corpora.paths.content_formats import (
    check_problems,
    detect_format,
    format_of_name,
    has_words_and_phones,
    read_filled_lines,
)
from tfm.data.corpora.paths.table_columns import DetectedColumns, detect_columns
from tfm.data.corpora.tables.word_lists import are_word_pairs
from tfm.data.errors import DataError, ExportableFileError, escape_unprintable
from tfm.data.formats.conll.column_roles import find_label_column, find_word_column
from tfm.data.formats.conll.layout import STANDARD_COLUMNS, detect_layout
from tfm.data.formats.conll.tagged_lines import tagged_words_problem
from tfm.data.formats.conll.unlabelled import unlabelled_problem

FORMATS_WITH_DEFAULTS = ("conllu", "xliff", "po")
"""Formats whose columns need no names."""


def suggest_corpus_table(path: Path, sources: Sequence[str], target: str) -> str:
    """A TOML table for `data.train` that reads a file, and in words what else it may be.

    Args:
        path: the file.
        sources, target: columns that the recipe names, which are taken where the file has them; without sources the
            texts are read alone.

    Raises:
        ExportableFileError: the file is one that a text or table is to be exported from, or text with tags or times.
    """
    format_ = format_of_name(path)
    try:
        format_ = detect_format(path)
        detected = detect_columns(path, format_)
    except ExportableFileError:
        raise
    except (DataError, ValueError, OSError):  # whatever is wrong with it, reading it will say
        format_ = format_ or "text"
        detected = DetectedColumns([0, 1] if format_ in ("csv", "tsv") else [*sources, target])
    if format_ == "text":
        return _text_table(path, sources)
    table = f'{{ format = "{format_}", path = "{path}"'
    if format_ == "conll":
        return table + _conll_columns(path)
    if format_ == "labelled":
        return _labelled_table(table, path, sources)
    return f"{table} }}" if format_ in FORMATS_WITH_DEFAULTS else _column_table(table, detected, sources, target)


def target_table(path: Path) -> str:
    """A table for a file of texts alone."""
    return f'{{ source = "none", target = "{path}" }}'


def _text_table(path: Path, sources: Sequence[str]) -> str:
    """A table for a file of texts, which has one side of pairs or texts alone."""
    if not sources:
        return target_table(path)
    check_problems(path, [tagged_words_problem(path)])
    pair = f'{{ source = "{path}", target = "OTHER" }}'
    return f"{pair}, where line i of OTHER is the translation of line i, or {target_table(path)} for texts alone"


def _labelled_table(table: str, path: Path, sources: Sequence[str]) -> str:
    """A table for a file of labels and texts; words before their phones or translations are sources.

    table: its begin.
    """
    lines = read_filled_lines(path)
    words = f'{table}, source = "label", target = "text" }}'
    if has_words_and_phones(lines):
        return words
    if not are_word_pairs(lines):
        return f"{table} }}"
    return f"{words}, or {target_table(path)} if its lines are texts" if sources else target_table(path)


def _conll_columns(path: Path) -> str:
    """The end of a table for a file of columns: which of them are read, if not the first and the last."""
    layout = detect_layout(path)
    if layout.standard:
        source, target = STANDARD_COLUMNS[layout.standard]
        return f", source = {source}, target = {target} }} (its columns are those of {layout.standard})"
    check_problems(path, (tagged_words_problem(path), unlabelled_problem(path, layout)))
    words = find_word_column(path, layout)
    labels = find_label_column(path, layout, words)
    source_key = "" if words == layout.word_column else f", source = {words}"
    return f"{source_key}{'' if labels is None else f', target = {labels}'} }}"


def _column_table(table: str, detected: DetectedColumns, sources: Sequence[str], target: str) -> str:
    """A table for a file with columns of texts, and the same by numbers or names if it may have a header.

    Args:
        table: its begin.
        detected: the columns of the file.
        sources, target: those that the recipe names.
    """
    if detected.delimiter is not None:
        table += f', delimiter = "{detected.delimiter}"'
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


def _choose_columns(detected: DetectedColumns, sources: Sequence[str], target: str) -> list[str | int]:
    """The columns of the source, if any, and last that of the target."""
    if {*sources, target}.issubset(detected.names):
        return [*sources, target]
    if len(detected.names) < 2 or not sources:
        return [detected.names[detected.text_index] if detected.names else target]
    return [detected.names[index] for index in detected.column_indices]


def _format_toml_columns(columns: Sequence[str | int]) -> str:
    *sources, target = map(_toml_value, columns)
    source = f"[{', '.join(sources)}]" if len(sources) > 1 else "".join(sources) or '"none"'
    return f"source = {source}, target = {target}"


def _toml_value(column: str | int) -> str:
    return str(column) if isinstance(column, int) else f'"{escape_unprintable(column)[:80]}"'
