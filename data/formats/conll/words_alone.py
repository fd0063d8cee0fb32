"""Files with a word a line and blank lines between sentences, and nothing else: which they are, and what joins them."""

from collections.abc import Sequence
from itertools import pairwise

UNLABELLED_REMEDY = "write those of a sentence in a line, which `tfm translate` labels, as by {}"
MIN_SENTENCES_JUDGED = 2
"""Sentences of several words that show whether a column has one value in each."""


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
