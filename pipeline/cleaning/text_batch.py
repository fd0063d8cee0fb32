"""Texts of many pairs as arrays of characters, so that a rule counts all of them at once."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tfm.data.arrays import Ints
from tfm.pipeline.cleaning.rules.character_sets import white_space

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


class TextBatch:
    """Some texts, and their characters one after another.

    texts: (n,).
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def characters(self) -> NDArray[np.uint32]:
        """(c,) the code points of all texts."""
        return np.frombuffer("".join(self.texts).encode("utf-32-le", "surrogatepass"), np.uint32)

    @cached_property
    def lengths(self) -> Ints:
        """(n,) characters of each text."""
        return np.fromiter(map(len, self.texts), np.int64, len(self.texts))

    @cached_property
    def num_words(self) -> Ints:
        """(n,) stretches between white space of each text, as `str.split` has them."""
        is_in_word = ~white_space()[self.characters]
        begins = is_in_word.copy()
        begins[1:] &= ~is_in_word[:-1]
        first = self._text_starts[self.lengths > 0]
        begins[first] = is_in_word[first]
        return self.count_flagged(begins)

    def count_flagged(self, flags: Bools) -> Ints:
        """(n,) characters of each text that have a flag (c,)."""
        sums = np.zeros(len(flags) + 1, np.int64)
        np.cumsum(flags, out=sums[1:])
        counts: Ints = sums[self._text_starts + self.lengths] - sums[self._text_starts]
        return counts

    @cached_property
    def _text_starts(self) -> Ints:
        return np.cumsum(self.lengths) - self.lengths


class TextPairBatch:
    """Some pairs of a corpus.

    Args:
        sources: (n,), each "" where the corpus has targets alone.
        targets: (n,).
        has_source: whether these are pairs.
        languages: of sources and targets, if the corpus says them.
    """

    def __init__(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        has_source: bool = True,
        languages: tuple[str, str] | None = None,
    ) -> None:
        self.source = TextBatch(sources)
        self.target = TextBatch(targets)
        self.has_source = has_source
        self.languages = languages

    def __len__(self) -> int:
        return len(self.target)

    @property
    def sides(self) -> tuple[TextBatch, ...]:
        """The texts of each side that there is."""
        return (self.source, self.target) if self.has_source else (self.target,)

    def select(self, rows: Ints) -> "TextPairBatch":
        """Return some of the pairs."""
        columns = [[each.texts[row] for row in rows.tolist()] for each in (self.source, self.target)]
        return TextPairBatch(*columns, has_source=self.has_source, languages=self.languages)


def text_lengths(texts: TextBatch, unit: str) -> Ints:
    """(n,) the lengths of texts, in words or characters."""
    return texts.num_words if unit == "word" else texts.lengths


def as_column(scores: NDArray[np.generic]) -> Floats:
    """Return scores (n,) as the one column (n, 1) of a rule."""
    return scores.astype(np.float64).reshape(-1, 1)
