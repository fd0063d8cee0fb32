"""The lines of a table of cells: those above it that are comments are none of it, and a row may have a cell more."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from tfm.data.corpora.remarks import add_remark
from tfm.data.corpora.tables.word_lists import MIN_ENTRIES_JUDGED
from tfm.data.lines import open_lines

COMMENT_MARK = "#"
ANKI_MARK = "#separator:"
"""The first line of notes that Anki exports: a further one (#columns:Front<tab>Back) has as many cells as they have."""
FIRST_ROW_NAME = "1"
"""R's name of the first row, if it has no other."""
QUOTED_CELL = re.compile(r'"(?:[^"]|"")*+"')
LONG_DELIMITERS = (" ||| ", " +++$+++ ", " :: ", "::", "->")
"""Delimiters of several characters, as fast_align, published dialogues and lists of misspelled words have them."""
TWO_BARS = "||"
"""Between records and their texts, as of E2E in GPT-2's experiments; in a table between bars it is an empty cell."""
WORD_DELIMITERS = (" : ", " \u2013 ", " \u2014 ", " - ")
"""Between a word or phrase and its translation, in lists of such."""
MAX_WORDS_OF_CELL = 5
"""The words of a phrase in a list; a sentence around a mark has more."""
MAX_COMMENT_LINES = 1000
MAX_ROWS_SAMPLED = 200
"""The first rows by which a table is known, some of which are longer than one line."""


def table_lines(path: Path, delimiters: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, without the comments above its table, which are remarked.

    delimiters: what may be between its cells.
    """
    num_comments = _count_leading_comments(path, delimiters)
    if num_comments:
        lines = "1 line above the table is" if num_comments == 1 else f"{num_comments:,} lines above the table are"
        add_remark(path, f"{lines} left out as comments ({COMMENT_MARK})")
    return ((number, line) for number, line in enumerate(open_lines(path), 1) if number > num_comments)


def _count_leading_comments(path: Path, delimiters: Sequence[str]) -> int:
    """The number of first lines that begin with # or are blank, and are none of the table.

    A header may begin so too (`#source<tab>target`), and so may texts: so the first such line that by some delimiter
    has as many cells as the line behind them all is of the table. But if it is not the last, and no line further down
    begins so, all are comments that happen to have delimiters; the last may yet be the header.
    """
    if not next(open_lines(path), "").startswith(COMMENT_MARK):
        return 0
    head = [*islice(open_lines(path), MAX_COMMENT_LINES)]
    count = next((n for n, line in enumerate(head) if line.strip() and not line.startswith(COMMENT_MARK)), 0)
    comments, below = head[:count], head[count + 1 : count + 1 + MAX_ROWS_SAMPLED]
    widths = {mark: width for mark in delimiters if (width := _num_cells(head[count], mark)) > 1}
    if not widths:
        return 0
    alike = [n for n, line in enumerate(comments) if any(_num_cells(line, mark) == widths[mark] for mark in widths)]
    if not alike or comments[0].startswith(ANKI_MARK):
        return count
    if alike[0] >= sum(bool(line.strip()) for line in comments) - 1:
        return alike[0]
    if any(line.startswith(COMMENT_MARK) for line in below):
        return alike[0]
    return count - (alike[-1] == count - 1 and not comments[-1].startswith(f"{COMMENT_MARK} "))


def _num_cells(line: str, delimiter: str) -> int:
    if len(delimiter) > 1:
        return line.count(delimiter) + 1
    try:
        return len(next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error:
        return line.count(delimiter) + 1


def spaced_quotes_follow(path: Path, delimiter: str) -> bool:
    """Whether each row below the first has a space after each delimiter, and quotation marks after one: "a", "b"."""
    mark = re.escape(delimiter)
    cell = rf'(?: *"(?:[^"]|"")*+" *|(?! *")[^{mark}]*+)'
    line_of_cells = re.compile(f"{cell}(?:{mark}{cell})*+")
    is_one = False
    for line in islice(open_lines(path), 1, MAX_ROWS_SAMPLED):
        if f'{delimiter} "' in line and line_of_cells.fullmatch(line) is None:
            return False
        plain = QUOTED_CELL.sub('""', line)
        if delimiter in plain.replace(f"{delimiter} ", ""):
            return False
        is_one |= f'{delimiter} ""' in plain
    return is_one


def find_long_delimiter(path: Path) -> str | None:
    """Find a delimiter of several characters that occurs equally often in each of the first lines; None if there is
    none.
    """
    lines = [line for line in islice(open_lines(path), MAX_ROWS_SAMPLED) if line.strip()]
    if (delimiter := find_even_mark(lines, LONG_DELIMITERS)) is not None:
        return delimiter
    if _has_two_bars(lines):
        return TWO_BARS
    return next((mark for mark in WORD_DELIMITERS if _are_phrases(lines, mark)), None)


def find_even_mark(lines: Sequence[str], marks: Sequence[str]) -> str | None:
    """The first of some marks that is in each of the lines, equally often; None if there is none."""
    counts = ((mark, {line.count(mark) for line in lines}) for mark in marks)
    return next((mark for mark, numbers in counts if len(numbers) == 1 and 0 not in numbers), None)


def _are_phrases(lines: Sequence[str], mark: str) -> bool:
    """Whether each line is a word or phrase, a mark and another of these."""
    rows = [line.split(mark) for line in lines]
    return len(rows) >= MIN_ENTRIES_JUDGED and all(
        len(row) == 2 and all(0 < len(cell.split()) <= MAX_WORDS_OF_CELL for cell in row) for row in rows
    )


def _has_two_bars(lines: Sequence[str]) -> bool:
    """Whether two bars stand once in each line, and no single characters divide lines into as many cells each."""
    rests = [line.replace(TWO_BARS, "", 1) for line in lines]
    if not lines or not all(TWO_BARS in line for line in lines) or any(TWO_BARS in rest for rest in rests):
        return False
    widths = {mark: {rest.count(mark) for rest in rests} for mark in "|,;\t"}
    return all(len(width) > 1 or width == {0} for width in widths.values()) and not any("|||" in line for line in lines)


def row_width(header: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """The number of cells of the rows below a first one: as many, or one more that the header does not name.

    So are names of rows, as R writes them before the others, and what is behind a delimiter at the end of each row.
    """
    if rows and (has_row_names(header, rows) or has_empty_ends(header, rows)):
        return len(header) + 1
    return len(header)


def has_row_names(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows have names before the cells that a header names, beginning with 1."""
    return len(rows[0]) == len(header) + 1 and rows[0][0] == FIRST_ROW_NAME and not has_empty_ends(header, rows)


def has_empty_ends(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether each row has an empty cell more than a header, as where a delimiter ends the line."""
    return all(len(row) == len(header) + 1 and not row[-1] for row in rows)
