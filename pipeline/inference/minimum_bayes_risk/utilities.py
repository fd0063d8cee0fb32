"""Utilities of all pairs of some texts at once: segment scores of sacrebleu from matrices of n-gram counts.

u(h, r): the score of hypothesis h by reference r, 0 to 100. Legend: U texts · G distinct n-grams of an order.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tfm.data.scripts import find_untokenized_script

Floats = NDArray[np.float64]
TextIndices = Sequence[int]
CHRF_ORDER, BLEU_ORDER, CHRF_BETA = 6, 4, 2


class PairUtility(Protocol):
    """The utility of some texts, given in the beginning, by others of them."""

    @abstractmethod
    def __call__(self, hypothesis: int, references: TextIndices) -> Floats:
        """Return (len(references),) the utility of a text by each of some references.

        Args:
            hypothesis: its place.
            references: their places.
        """


class _NgramCounts:
    """Counts of the n-grams of texts, by order: matches of one text with others are sums of minima."""

    def __init__(self, counters: Sequence[Sequence[Counter[object]]]) -> None:
        self._counts = [_count_matrix([text[order] for text in counters]) for order in range(len(counters[0]))]
        self.totals = np.stack([counts.sum(1) for counts in self._counts])

    def matches(self, hypothesis: int, references: TextIndices) -> Floats:
        """Return (orders, len(references)) the number of n-grams that a text shares with each reference."""
        rows = np.asarray(references)
        shared = (np.minimum(counts[hypothesis], counts[rows]).sum(1) for counts in self._counts)
        return np.stack([each.astype(np.float64) for each in shared])


def _count_matrix(counters: Sequence[Counter[object]]) -> NDArray[np.int64]:
    """(U, G) counts."""
    columns = {
        ngram: column for column, ngram in enumerate(dict.fromkeys(key for counter in counters for key in counter))
    }
    matrix = np.zeros((len(counters), len(columns)), np.int64)
    for row, counter in enumerate(counters):
        for ngram, count in counter.items():
            matrix[row, columns[ngram]] = count
    return matrix


class SegmentChrf:
    """chrF of each pair, as `sacrebleu.sentence_chrf` has it (Popović 2015)."""

    def __init__(self, texts: Sequence[str]) -> None:
        from sacrebleu.metrics.helpers import extract_all_char_ngrams

        self._ngrams = _NgramCounts([extract_all_char_ngrams(text, CHRF_ORDER) for text in texts])

    def __call__(self, hypothesis: int, references: TextIndices) -> Floats:
        """Return the chrF of a text by each of some references."""
        matches, totals = self._ngrams.matches(hypothesis, references), self._ngrams.totals.astype(np.float64)
        hypothesis_totals, reference_totals = totals[:, [hypothesis]], totals[:, np.asarray(references)]
        has_both = (hypothesis_totals > 0) & (reference_totals > 0)
        orders = np.maximum(has_both.sum(0), 1)
        precision, recall = (
            (np.where(has_both, matches, 0) / np.maximum(total, 1)).sum(0) / orders
            for total in (hypothesis_totals, reference_totals)
        )
        factor = CHRF_BETA**2
        denominator = factor * precision + recall
        scores: Floats = 100 * (1 + factor) * precision * recall / np.where(denominator > 0, denominator, 1)
        return scores


class SegmentBleu:
    """BLEU of each pair, as `sacrebleu.sentence_bleu` has it: effective order, exponential smoothing, tokens of 13a.

    The tokens are those of `zh`, or characters, if the letters stand in a script that 13a cannot read.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        from sacrebleu.metrics.helpers import extract_word_ngrams

        tokenize = _choose_tokenizer(texts)
        words = [tokenize(text.rstrip()).split() for text in texts]
        self._ngrams = _NgramCounts(
            [[extract_word_ngrams(tokens, order) for order in range(1, BLEU_ORDER + 1)] for tokens in words]
        )

    def __call__(self, hypothesis: int, references: TextIndices) -> Floats:
        """Return the BLEU of a text by each of some references."""
        matches, totals = self._ngrams.matches(hypothesis, references), self._ngrams.totals.astype(np.float64)
        hypothesis_totals, length = totals[:, hypothesis], totals[0, np.asarray(references)]
        order = int((hypothesis_totals > 0).sum())
        if not order:
            return np.zeros(len(references))
        misses = np.cumsum(matches[:order] == 0, axis=0)
        smoothed = np.where(matches[:order] > 0, matches[:order], 0.5**misses) / hypothesis_totals[:order, None]
        brevity = np.exp(np.minimum(0, 1 - length / hypothesis_totals[0]))
        return np.where(matches.any(0), 100 * brevity * np.exp(np.log(smoothed).mean(0)), 0)


def _choose_tokenizer(texts: Sequence[str]) -> Callable[[str], str]:
    """The tokenizer of BLEU for some texts; none that has to be installed, by which a choice would depend on it."""
    script = None if all(map(str.isascii, texts)) else find_untokenized_script(texts)
    if script is None:
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

        return Tokenizer13a()  # type: ignore[no-untyped-call]
    if script[0] == "Han":
        from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

        return TokenizerZh()  # type: ignore[no-untyped-call]
    from sacrebleu.tokenizers.tokenizer_char import TokenizerChar

    return TokenizerChar()  # type: ignore[no-untyped-call]


class ExactMatch:
    """100 where both texts are the same, so that the most frequent of all texts is chosen."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __call__(self, hypothesis: int, references: TextIndices) -> Floats:
        """Return 100 for each reference that is the text, and 0 for the others."""
        return np.array([100.0 * (self._texts[each] == self._texts[hypothesis]) for each in references])


UTILITIES: dict[str, Callable[[Sequence[str]], PairUtility]] = {
    "chrf": SegmentChrf,
    "bleu": SegmentBleu,
    "exact_match": ExactMatch,
}
"""By the name in `decoding.mbr_utility`."""
