"""CoNLL-U files: sentences as words and tags from their columns (universaldependencies.org/format.html).

A form or its lemma may contain spaces (5 000).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from tfm.data.errors import DataError, format_count
from tfm.data.lines import MAX_LINE_BYTES, open_lines

NUM_COLUMNS = 10
# The source is the words, the target their universal parts of speech, where a recipe names no other column.
COLUMN_INDICES = {"form": 1, "lemma": 2, "upos": 3, "xpos": 4, "deprel": 7, "source": 1, "target": 3}
READABLE_COLUMN_INDICES = {**COLUMN_INDICES, "id": 0, "head": 6}
"""Columns that can be read; those of COLUMN_INDICES can also be a side of a corpus."""
COLUMN_NAMES = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC".split()
PLUS_HEADER = "# global.columns ="
MAX_WORDS_SAMPLED, MIN_WORDS_SAMPLED = 50, 3
LABEL_COLUMNS, UNSPECIFIED_VALUE = ("upos", "xpos", "deprel", "target"), "_"
"""Columns of labels, in which `_` says that a word has none."""


def read_conllu(path: Path, columns: Sequence[str], space_replacement: str = " ") -> Iterator[tuple[str, ...]]:
    """For each sentence its words' values in each of `columns`, joined by spaces.

    Multiword tokens (1-2) and empty nodes (1.1) are no words.

    Args:
        path: the file.
        columns: names, of COLUMNS.
        space_replacement: what stands for a space within a form or lemma.

    Raises:
        DataError: naming file and line; also of a word without a label in the last column, the target, where no tree
            (head) is asked for, and of a file whose words, or lemmas that are the target, are all `_`.
    """
    words: list[list[str]] = []
    size = last_id = 0
    _check_has_text(path, columns[-1])
    for number, line in enumerate(open_lines(path), 1):
        if line.startswith("#"):
            continue
        is_blank = not line.strip()
        size = 0 if is_blank else size + len(line)
        if size > MAX_LINE_BYTES:
            problem = f"its sentence is longer than {MAX_LINE_BYTES:,} characters; is a blank line missing?"
            raise DataError(problem, file=path, line=number)
        if not is_blank:
            new_words = _parse_word(line, columns, space_replacement, path, number)
            word_id = int(line.split("\t", 1)[0]) if new_words else last_id
            if words and new_words and word_id <= last_id:
                problem = f"its word has the number {word_id} behind {last_id}: a blank line separates sentences"
                raise DataError(problem, file=path, line=number)
            words, last_id = words + new_words, word_id
        elif words:
            yield _join_words(words)
            words = []
    if words:
        yield _join_words(words)


def _check_has_text(path: Path, target: str) -> None:
    """Raise DataError if the first words are all `_`, as where somebody else has a right to the text, or their lemmas.

    Here and there a word without a lemma is usual.
    """
    lines = (line.split("\t") for line in open_lines(path) if line and not line.startswith("#"))
    words = [cells for cells in islice(lines, MAX_WORDS_SAMPLED) if len(cells) == NUM_COLUMNS and cells[0].isdecimal()]
    names = next(open_lines(path), "")
    if names.startswith(PLUS_HEADER) and names.removeprefix(PLUS_HEADER).split() != COLUMN_NAMES:
        problem = f"is CoNLL-U Plus, with the columns {names.removeprefix(PLUS_HEADER).strip()[:200]}, counted from 0"
        remedy = 'set format = "conll", and source and target to the numbers of the words and their labels'
        raise DataError(f"{problem}: {remedy}", file=path)
    has_no = {
        column: len(words) >= MIN_WORDS_SAMPLED and {each[COLUMN_INDICES[column]] for each in words} == {"_"}
        for column in ("form", "lemma")
    }
    if has_no["form"]:
        problem = "its words are all _, as in treebanks without their text: merge the text into them first"
        raise DataError(problem, file=path)
    if target == "lemma" and has_no["lemma"]:
        problem = "its lemmas are all _, which says that words have none: name another target column"
        raise DataError(problem, file=path)


def _join_words(words: list[list[str]]) -> tuple[str, ...]:
    return tuple(" ".join(column) for column in zip(*words, strict=True))


def _parse_word(
    line: str, columns: Sequence[str], space_replacement: str, path: Path, line_number: int
) -> list[list[str]]:
    """The values of the one word of a line; none of a line that is no word."""
    cells = line.split("\t")
    if len(cells) != NUM_COLUMNS:
        problem = f"has {format_count(len(cells), 'column')}; CoNLL-U has {NUM_COLUMNS}, with a tab between them"
        raise DataError(problem, file=path, line=line_number)
    if re.fullmatch(r"[0-9]+[-.][0-9]+", cells[0]):
        return []
    if not re.fullmatch(r"[0-9]+", cells[0]):
        raise DataError(f"{cells[0]:.40} is not a word number", file=path, line=line_number)
    values = [cells[READABLE_COLUMN_INDICES[column]] for column in columns]
    for column, value in zip(columns, values, strict=True):
        if value == UNSPECIFIED_VALUE and column == columns[-1] and column in LABEL_COLUMNS and "head" not in columns:
            problem = f"its {column} is _, which says that the word has none: name a target column that every word has"
            raise DataError(problem, file=path, line=line_number)
        may_have_space = READABLE_COLUMN_INDICES[column] in (COLUMN_INDICES["form"], COLUMN_INDICES["lemma"])
        if not value.strip() or (not may_have_space and any(character.isspace() for character in value)):
            problem = f"its {column} is {value[:40]!r}: a word must not be empty or contain a space"
            raise DataError(problem, file=path, line=line_number)
    return [[space_replacement.join(value.split()) for value in values]]
