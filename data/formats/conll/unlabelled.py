"""Files with a word a line and no labels: words alone, or beside numbers and signs, as test sets of shared tasks."""

from itertools import islice
from pathlib import Path

from tfm.data.formats.conll.column_roles import (
    MIN_WORDS_JUDGED,
    find_word_column,
    sample_columns,
)
from tfm.data.formats.conll.layout import COMMENT_MARK, ColumnLayout, is_marked
from tfm.data.formats.conll.separators import MAX_ROWS_SAMPLED
from tfm.data.formats.conll.words_alone import (
    UNLABELLED_REMEDY,
    WORDS_ALONE_REMEDY,
    are_words_alone,
    sentences_command,
)
from tfm.data.lines import open_lines


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
