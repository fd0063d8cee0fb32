"""How a file of columns is laid out: what separates them, which lines are none of words, and where the words are."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tfm.data.lines import open_lines

DOCUMENT_START = "-DOCSTART-"
COMMENT_MARK = "#"
DOCUMENT_BEGIN = "#begin document"
MAX_WORDS_SAMPLED, MIN_WORDS_SAMPLED = 200, 3
WORD_COLUMN_NAMES = ("word", "words", "token", "tokens", "form", "text")
LABEL_COLUMN_NAMES = (
    "tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "pos", "pos_tag", "pos_tags", "upos", "xpos",
    "chunk", "chunk_tag", "iob", "bio", "entity",
)  # fmt: skip


@dataclass(frozen=True)
class ColumnLayout:
    """The layout of a file.

    Args:
        is_tabbed: whether tabs separate the columns, else spaces.
        width: the number of columns.
        is_headed: whether the first line that is no comment names them.
        has_arguments: whether it is CoNLL-2012's (OntoNotes): a sentence has a column for each predicate of it, behind
            others, the first of which names the document.
        comment_values: what stands in the last column of lines that begin as the word `#` would, but are comments.
    """

    is_tabbed: bool
    width: int
    is_headed: bool = False
    has_arguments: bool = False
    comment_values: frozenset[str] = frozenset()

    def split(self, line: str) -> list[str]:
        """The cells of a line."""
        return line.split("\t") if self.is_tabbed else re.split(r"[ \t]+", line.strip(" \t"))

    def is_comment(self, cells: Sequence[str], *, is_first: bool) -> bool:
        """Whether a line is a comment. is_first: whether no word of its sentence stands before it."""
        if not cells[0].startswith(COMMENT_MARK):
            return False
        return (
            self.has_arguments
            or len(cells) != self.width
            or (is_first and cells[0].strip() == COMMENT_MARK and cells[-1] in self.comment_values)
        )


def detect_layout(path: Path) -> ColumnLayout:
    """The layout of a file, by its first word; lines that begin with # are compared with all of its words."""
    first = next((line for line in open_lines(path) if line.strip() and not _is_marked(line)), None)
    if first is None:
        return ColumnLayout(False, 1)
    layout = ColumnLayout("\t" in first, 0)
    cells = layout.split(first)
    names = [cell.lower() for cell in cells]
    is_headed = names[-1] in LABEL_COLUMN_NAMES and not {*names}.isdisjoint(WORD_COLUMN_NAMES)
    if next(open_lines(path), "").startswith(DOCUMENT_BEGIN):
        return ColumnLayout(layout.is_tabbed, len(cells), has_arguments=True)
    comment_values = _comment_values(path, layout, len(cells))
    return ColumnLayout(layout.is_tabbed, len(cells), is_headed, comment_values=comment_values)


def number_column_problem(path: Path, layout: ColumnLayout) -> str | None:
    """Why the first column cannot be that of words: in the first sentences it counts, or it is always the same."""
    sentences: list[list[str]] = [[]]
    lines = (line for line in open_lines(path) if not _is_marked(line))
    for line in islice(lines, int(layout.is_headed), MAX_WORDS_SAMPLED):
        if line.strip():
            sentences[-1].append(layout.split(line)[0])
        else:
            sentences.append([])
    cells = [cell for sentence in sentences for cell in sentence]
    if len(cells) < MIN_WORDS_SAMPLED:
        return None
    for begin in (0, 1):
        if all(cell == str(place) for sentence in sentences for place, cell in enumerate(sentence, begin)):
            return f"its first column counts the words ({', '.join(cells[:3])}, ...)"
    if len(cells) > 2 * MIN_WORDS_SAMPLED and len({*cells}) == 1:
        return f"its first column is {cells[0]:.40} at every word"
    return None


def _is_marked(line: str) -> bool:
    return line.startswith((COMMENT_MARK, DOCUMENT_START))


def _comment_values(path: Path, layout: ColumnLayout, width: int) -> frozenset[str]:
    """The values of the last column in lines that begin with `#` and in no others; the label of the word # may be #."""
    found = {cells[-1] for cells in _cells(path, layout, is_marked=True) if len(cells) == width}
    found -= {COMMENT_MARK}
    if found:
        for cells in _cells(path, layout, is_marked=False):
            found.discard(cells[-1])
    return frozenset(found)


def _cells(path: Path, layout: ColumnLayout, *, is_marked: bool) -> Iterator[list[str]]:
    """The cells of the lines that begin with #, alone in their cell, or of all others."""
    for line in open_lines(path):
        if line.startswith((f"{COMMENT_MARK} ", f"{COMMENT_MARK}\t")) == is_marked and line.strip():
            yield layout.split(line)
