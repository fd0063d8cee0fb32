"""Files with a word a line and no labels: words alone, or beside numbers and signs, as test sets of shared tasks."""

from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path

from tfm.data.formats.conll.column_roles import (
    MIN_SENTENCES_JUDGED,
    MIN_WORDS_JUDGED,
    find_word_column,
    sample_columns,
)
from tfm.data.formats.conll.layout import COMMENT_MARK, ColumnLayout, is_marked
from tfm.data.formats.conll.separators import MAX_ROWS_SAMPLED
from tfm.data.lines import open_lines

UNLABELLED_REMEDY = "write those of a sentence in a line, which `tfm translate` labels, as by {}"


def unlabelled_problem(path: Path, layout: ColumnLayout) -> str | None:
    """Why a file has no labels: beside its words are signs in place of labels and, if the words are not first, numbers.
    None if it has some; numbers behind words that come first may be labels.
    """
    if layout.table is not None or layout.standard or not layout.width:
        return None
    if layout.width == 1:
        lines = [line for line in islice(open_lines(path), MAX_ROWS_SAMPLED) if not is_marked(line)]
        return f"has a word a line and no labels: {WORDS_ALONE_REMEDY}" if are_words_alone(lines) else None
    columns = sample_columns(path, layout)
    word = find_word_column(path, layout)
    others = [each for each in columns if each.place != word]
    has_labels = not all(each.are_signs or (word > 0 and each.are_numbers) for each in others)
    if not others or len(others[0].cells) < MIN_WORDS_JUDGED or has_labels:
        return None
    has_comments = any(line.startswith(COMMENT_MARK) for line in islice(open_lines(path), MAX_ROWS_SAMPLED))
    separator = "\t" if layout.separator == "tabs" else " "
    remedy = UNLABELLED_REMEDY.format(sentences_command(word, separator, has_comments=has_comments))
    return f"has words (column {word}) and no labels: {remedy}"


def are_words_alone(lines: Sequence[str]) -> bool:
    """Whether lines are words without labels, with marks of punctuation among them and blank lines between sentences.

    lines: the first of a file.
    """
    words = [line.strip() for line in lines]
    filled = [word for word in words if word]
    num_sentences = sum(bool(word) and not before for before, word in pairwise(["", *words]))
    return (
        num_sentences >= MIN_SENTENCES_JUDGED
        and len(filled) >= 2 * num_sentences
        and all(len(word.split()) == 1 for word in filled)
        and any(not any(map(str.isalnum, word)) for word in filled)
        and 2 * sum(any(map(str.isalpha, word)) for word in filled) > len(filled)
    )


def sentences_command(word_column: int, separator: str = " ", *, has_comments: bool = False) -> str:
    """The command that writes the words of each sentence in a line.

    Args:
        word_column: the place of the words.
        separator: between columns: a tab, or a space for any white space.
        has_comments: whether lines that begin with # are comments.
    """
    skip = "/^#/ {next} " if has_comments else ""
    option = "-F'\\t' " if separator == "\t" else ""
    join = f'NF {{line = line (line == "" ? "" : " ") ${word_column + 1}; next}}'
    return (
        f"""awk {option}'{skip}{join} line != "" {{print line; line = ""}} END {{if (line != "") print line}}' FILE"""
    )


WORDS_ALONE_REMEDY = UNLABELLED_REMEDY.format(sentences_command(0))
