"""Files with a word a line and its labels in columns, as CoNLL-2003 and many sets of named entities have them.

Columns are separated by tabs or spaces, sentences by blank lines. CoNLL-U, whose ten columns have names, is in
`conllu`.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tfm.data.errors import DataError, format_count
from tfm.data.formats.conll.schemes import TagSchemeChecker
from tfm.data.lines import MAX_LINE_BYTES, open_lines

DOCUMENT_START = "-DOCSTART-"
FIRST_COLUMN, LAST_COLUMN = "source", "target"
"""Names of columns whose number is not given: the word is in the first one, its label in the last."""
UNSPECIFIED_LABEL = "_"
"""The mark of the family of CoNLL formats for a word without a label."""


def read_conll(
    path: Path,
    columns: Sequence[str],
    space_replacement: str = " ",
    on_warning: Callable[[Path, str], None] | None = None,
) -> Iterator[tuple[str, ...]]:
    """For each sentence its words' values in each of `columns`, joined by spaces.

    Args:
        path: the file.
        columns: numbers from 0, or FIRST_COLUMN and LAST_COLUMN.
        space_replacement: what stands for a space within a value, which files with tabs may have.
        on_warning: is told the scheme of the tags in the last of the columns, and how often they break it.

    Raises:
        DataError: naming the line; it has another number of columns than the first one, an empty cell, or a word
            without label.
    """
    is_tabbed, width = _detect_tabs_and_width(path)
    places = [_column_index(path, column, width) for column in columns]
    check = TagSchemeChecker()
    words: list[list[str]] = []
    lines: list[int] = []
    size = 0

    def finish_sentence() -> tuple[str, ...]:
        values = list(zip(*words, strict=True))
        check.add(values[-1], lines)
        words.clear()
        lines.clear()
        return tuple(" ".join(column) for column in values)

    for number, line in enumerate(open_lines(path), 1):
        cells = line.split("\t") if is_tabbed else line.split()
        if not line.strip() or cells[0] == DOCUMENT_START:
            size = 0
            if words:
                yield finish_sentence()
            continue
        if line.startswith("#") and len(cells) != width:
            continue
        size += len(line)
        if size > MAX_LINE_BYTES:
            problem = f"its sentence is longer than {MAX_LINE_BYTES:,} characters; is a blank line missing?"
            raise DataError(problem, file=path, line=number)
        words.append(_column_values(cells, places, width, space_replacement, path, number))
        lines.append(number)
    if words:
        yield finish_sentence()
    if on_warning is not None and (text := check.warning()) is not None:
        on_warning(path, text)


def _detect_tabs_and_width(path: Path) -> tuple[bool, int]:
    """Whether tabs separate the columns of a file, and their number, by its first word."""
    for line in open_lines(path):
        if line.strip() and not line.startswith(("#", DOCUMENT_START)):
            is_tabbed = "\t" in line
            return is_tabbed, len(line.split("\t") if is_tabbed else line.split())
    return False, 1


def _column_index(path: Path, column: str, width: int) -> int:
    place = {FIRST_COLUMN: 0, LAST_COLUMN: width - 1}.get(column)
    place = int(column) if place is None else place
    if place >= width:
        raise DataError(f"there is no column {place}; its first word has {width}, counted from 0", file=path)
    return place


def _column_values(
    cells: Sequence[str], columns: Sequence[int], width: int, space_replacement: str, path: Path, line_number: int
) -> list[str]:
    if len(cells) != width:
        has = f"has {format_count(len(cells), 'column')}, but the first word has {width}"
        raise DataError(f"{has}: a blank line separates sentences", file=path, line=line_number)
    values = [space_replacement.join(cells[place].split()) for place in columns]
    if empty := [place for place, value in zip(columns, values, strict=True) if not value]:
        raise DataError(f"its column {empty[0]} is empty: each word needs a value", file=path, line=line_number)
    if columns[-1] != columns[0] and values[-1] == UNSPECIFIED_LABEL:
        problem = f"its label (column {columns[-1]}) is _, which says that the word has none"
        raise DataError(f"{problem}: name a target column that every word has", file=path, line=line_number)
    return values
