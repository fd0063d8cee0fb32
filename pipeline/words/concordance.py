"""Words by the company they keep: the windows in which a word stands, counts of its neighbors, and vectors of these.

    X_wo = how often o stands at most m words from w, on the same line        count vector of w: row w of X
    one-hot vector of w: 1 at the place of w, and 0 elsewhere

Words are what spaces separate. Legend: V words · m window · N words of a text.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.neighbours import WordVectors
from tfm.pipeline.model_io.vector_files import Matrix

DEFAULT_WINDOW = 5
MAX_WORDS = 5000
"""V: the most frequent words that have vectors, and a component in each count vector."""


class Occurrence(NamedTuple):
    """A word of a text between its neighbors.

    Args:
        line: number of the line, from 1.
        left: the words before it within the window.
        word: the word.
        right: the words after it within the window.
    """

    line: int
    left: tuple[str, ...]
    word: str
    right: tuple[str, ...]


def find_occurrences(lines: Iterable[str], word: str, window: int) -> Iterator[Occurrence]:
    """Find a word in a text, in its order: its concordance.

    Args:
        lines: the text.
        word: the word.
        window: the most words to each side.
    """
    for number, line in enumerate(lines, 1):
        words = line.split()
        for position, token in enumerate(words):
            if token == word:
                left_words = words[max(0, position - window) : position]
                right_words = words[position + 1 : position + 1 + window]
                yield Occurrence(number, tuple(left_words), word, tuple(right_words))


def count_neighbours(occurrences: Iterable[Occurrence]) -> Counter[str]:
    """Count the words within the windows of occurrences: the row of a word in X, of those that are not 0."""
    return Counter(word for each in occurrences for word in (*each.left, *each.right))


def count_vectors(lines: Sequence[str], window: int) -> WordVectors:
    """Return the count vectors of the most frequent words of a text. Raises DataError for a text without words."""
    return _vectors_from_matrix(lines, lambda rows: _cooccurrences(lines, rows, window))


def one_hot_vectors(lines: Sequence[str]) -> WordVectors:
    """Return the one-hot vectors of the same words: any two are orthogonal. Raises DataError as `count_vectors`."""
    return _vectors_from_matrix(lines, lambda rows: np.eye(len(rows), dtype=np.float32))


def _vectors_from_matrix(lines: Sequence[str], matrix_of: Callable[[dict[str, int]], Matrix]) -> WordVectors:
    """Vectors of the most frequent words, by the function that makes them of their rows."""
    frequencies = Counter(word for line in lines for word in line.split())
    if not frequencies:
        raise DataError("the text has no words: they have no vectors")
    rows = {word: row for row, (word, _) in enumerate(frequencies.most_common(MAX_WORDS))}
    return WordVectors(rows, matrix_of(rows), owner="the text")


def _cooccurrences(lines: Sequence[str], rows: dict[str, int], window: int) -> Matrix:
    """X (V, V)."""
    line_rows: list[NDArray[np.int64]] = [
        np.array([*(rows.get(word, -1) for word in line.split()), *[-1] * window], np.int64) for line in lines
    ]
    row_numbers, counts = np.concatenate(line_rows), np.zeros((len(rows), len(rows)), np.float32)
    for distance in range(1, window + 1):
        left, right = row_numbers[:-distance], row_numbers[distance:]
        are_known = (left >= 0) & (right >= 0)  # between lines are as many unknown words as in the window
        np.add.at(counts, (left[are_known], right[are_known]), 1)
        np.add.at(counts, (right[are_known], left[are_known]), 1)
    return counts
