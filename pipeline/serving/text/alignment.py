"""Links between the words of a translation and the characters of its source.

Legend: S pieces of the source · T pieces of the translation · W words of the translation · C characters of the source.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import regex
from numpy.typing import NDArray

from tfm.data.scripts import SPACELESS_LETTERS

Floats = NDArray[np.float64]
Span = tuple[int, int]

_WORD_PATTERN = regex.compile(
    rf"{SPACELESS_LETTERS}\p{{M}}*|[\w\p{{M}}]+(?:['’.\-][\w\p{{M}}]+)*|[^\w\s]", flags=regex.V1
)
SAME_WORD_SHARE = 0.9
"""The share of a word's weight that the one word that is spelled alike gets: a name, a number."""
DIAGONAL_STDDEV_WORDS = 1.0
"""The standard deviation of the place of a word's source, where no model tells it, in words of the translation."""


@dataclass(frozen=True)
class Alignment:
    """The attention of each piece of a translation to each piece of its source.

    source_spans: of the S pieces, the first character and the one after the last. target_spans: of the T pieces.
    weights: (T, S), none below 0.
    """

    source_spans: tuple[Span, ...]
    target_spans: tuple[Span, ...]
    weights: Floats


@dataclass(frozen=True)
class AlignedWords:
    """The words of a translation.

    text: the translation. spans: (W,) of its words. cumulative: (W, C + 1), the share of a word's source that lies
    before each character. strengths: (W,) how much the place of a word counts, less for punctuation.
    """

    text: str
    spans: tuple[Span, ...]
    cumulative: Floats
    strengths: Floats

    def source_shares(self, start: int, end: int) -> Floats:
        """The share (W,) of each word's source that lies in a stretch of characters; without any, a half."""
        total = self.cumulative[:, -1]
        mass_inside = self.cumulative[:, end] - self.cumulative[:, start]
        return np.where(total > 0, mass_inside / np.where(total > 0, total, 1), 0.5)

    def is_punctuation(self, word: int) -> bool:
        """Whether a word is a mark between words."""
        start, end = self.spans[word]
        return is_punctuation(self.text[start:end])


def find_words(text: str) -> list[Span]:
    """The words of a text, and each mark between them; in scripts without spaces, the characters."""
    return [match.span() for match in _WORD_PATTERN.finditer(text)]


def is_punctuation(text: str) -> bool:
    """Whether no letter or digit is in a text."""
    return not any(character.isalnum() for character in text)


def align_words(source: str, target: str, alignment: Alignment | None) -> AlignedWords:
    """Find the source of each word of a translation.

    Args:
        source: the text that was translated.
        target: its translation.
        alignment: of a model; None: words are taken to stand in the order of their sources.
    """
    spans = find_words(target)
    if alignment is None or not len(alignment.weights):
        mass = _diagonal_alignment(len(spans), source)
    else:
        mass = _spread_piece_weights(spans, source, alignment)
    _prefer_same_words(mass, source, [target[start:end] for start, end in spans])
    cumulative = np.concatenate([np.zeros((len(spans), 1)), mass.cumsum(1)], axis=1)
    strengths = np.array([0.1 if is_punctuation(target[start:end]) else 1.0 for start, end in spans])
    return AlignedWords(target, tuple(spans), cumulative, strengths)


def _spread_piece_weights(spans: list[Span], source: str, alignment: Alignment) -> Floats:
    """The weights (W, C) of pieces, spread over the characters of theirs; a space has none."""
    character_weights = np.zeros((len(alignment.weights), len(source)))
    for column, (start, end) in enumerate(alignment.source_spans):
        indices = [index for index in range(start, end) if not source[index].isspace()]
        character_weights[:, indices] += alignment.weights[:, column, None] / max(len(indices), 1)
    mass = np.zeros((len(spans), len(source)))
    for word, (start, end) in enumerate(spans):
        for row, (first, last) in enumerate(alignment.target_spans):
            overlap = min(end, last) - max(start, first)
            if overlap > 0:
                mass[word] += character_weights[row] * overlap / (last - first)
    return mass


def _diagonal_alignment(num_words: int, source: str) -> Floats:
    """Weights (W, C) of words that come from those at the same share of the way."""
    spans = find_words(source)
    mass = np.zeros((num_words, len(source)))
    centres = (np.arange(num_words) + 0.5) / max(num_words, 1)
    for number, (start, end) in enumerate(spans):
        distances = (centres - (number + 0.5) / len(spans)) * num_words / DIAGONAL_STDDEV_WORDS
        mass[:, start:end] = np.exp(-0.5 * distances**2)[:, None] / (end - start)
    return mass


def _prefer_same_words(mass: Floats, source: str, words: list[str]) -> None:
    """Let a word that stands once in both texts come from itself."""
    sources = [(source[start:end], start, end) for start, end in find_words(source)]
    target_counts, source_counts = Counter(words), Counter(text for text, _, _ in sources)
    spans = {
        text: (start, end) for text, start, end in sources if source_counts[text] == 1 and not is_punctuation(text)
    }
    for row, word in enumerate(words):
        if target_counts[word] == 1 and word in spans:
            start, end = spans[word]
            total = mass[row].sum() or 1.0
            mass[:, start:end] *= 1 - SAME_WORD_SHARE
            mass[row] *= 1 - SAME_WORD_SHARE
            mass[row, start:end] += SAME_WORD_SHARE * total / (end - start)
