"""The separator of a file's columns: tabs, spaces, both, or white space of any kind, as text copied from a page has."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal

Separator = Literal["tabs", "spaces", "tabs and spaces", "white space"]
BLANKS_PATTERN = re.compile(r"[ \t]+")
MAX_ROWS_SAMPLED = 200
"""The first lines by which columns are told apart: of twenty sentences and more, read in no time."""
MIN_ROWS_JUDGED = 10
"""Fewer rows have few different values behind a space by chance."""


def split_columns(line: str, separator: Separator) -> list[str]:
    """The cells of a line; those between tabs may be empty."""
    if separator == "tabs":
        return line.split("\t")
    return line.split() if separator == "white space" else BLANKS_PATTERN.split(line.strip(" \t"))


def find_separator(lines: Iterable[str]) -> Separator:
    """The separator by which all lines have as many columns, of more than one: tabs if the first line has one, else
    spaces, which tabs may be among, else white space of any kind.

    A cell between tabs may have spaces, but if all have as many, with few different values behind them, as of
    `EU NNP` and a tab, they separate columns too.

    Args:
        lines: those of words, which can be iterated again.
    """
    first = next(iter(lines), "")
    usual: Separator = "tabs" if "\t" in first else "spaces"
    if not _have_one_width(lines, usual):
        others: tuple[Separator, ...] = ("tabs and spaces", "white space")
        return next((each for each in others if _have_one_width(lines, each)), usual)
    if usual == "tabs" and _has_columns_within_cells(list(islice(lines, MAX_ROWS_SAMPLED))):
        return "tabs and spaces"
    return usual


def _have_one_width(lines: Iterable[str], separator: Separator) -> bool:
    width = 0
    for line in lines:
        num_columns = len(split_columns(line.rstrip("\t"), separator))
        width = width or num_columns
        if num_columns != width:
            return False
    return width > 1


def _has_columns_within_cells(lines: Sequence[str]) -> bool:
    """Whether spaces separate columns too, of lines that tabs alone give as many."""
    if len(lines) < MIN_ROWS_JUDGED or not _have_one_width(lines, "spaces"):
        return False
    rows = [[cell.split(" ") for cell in line.rstrip("\t").split("\t")] for line in lines]
    widths = [len(cell) for cell in rows[0]]
    if max(widths) == 1 or any([*map(len, row)] != widths for row in rows):
        return False
    place = next(index for index, width in enumerate(widths) if width > 1)
    return 2 * len({row[place][1] for row in rows}) <= len(rows)


def other_space_problem(line: str, width: int) -> str:
    """A note on white space that separates nothing, to be added to a message on a line of another number of columns;
    empty if with it the line has not `width` of them.
    """
    spaces = [character for character in line if character.isspace() and character not in " \t"]
    if not spaces or len(line.split()) != width:
        return ""
    name = unicodedata.name(spaces[0], "a control character").lower()
    return f"; U+{ord(spaces[0]):04X} ({name}) separates no columns here: replace it by a space"
