"""Summaries beside their sources: their length, their compression, and the share of their words that is new."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfm.pipeline.scoring.metrics.score import Score
from tfm.pipeline.scoring.metrics.tokenization import UnicodeWordTokenizer

NGRAM_ORDERS = (1, 2, 3, 4)
NOVELTY_ORDER = 2  # of the n-grams for the novelty in the table of scores
SUMMARY_METRICS = ("length", "compression", "novelty")
"""Figures of [evaluation] that need sources, and of which neither the lower nor the higher is better."""
NO_SOURCES_REASON = "needs the sources, as texts: give --source FILE"
NO_WORDS_REASON = "no hypothesis has a word"
_TOKENIZATION_SIGNATURE = "tok:unicode-words|case:lc|norm:nfc"

Tokens = Sequence[str]


@dataclass(frozen=True)
class SummaryStatistics:
    """Figures of some texts beside their sources.

    Args:
        length: words, the mean over segments.
        compression: words of the source / words of the text, the mean over segments whose text has words (Grusky et al.
            2018).
        novelty: by order the percentage of n-grams of all texts that are not in their source (See et al. 2017); None
            if there are no such n-grams.
    """

    length: float
    compression: float | None
    novelty: Mapping[int, float | None]


def summary_statistics(sources: Sequence[str], texts: Sequence[str]) -> SummaryStatistics:
    """The figures of texts, each beside its source; words are those of ROUGE's tokenizer `unicode`."""
    tokenize = UnicodeWordTokenizer().tokenize
    pairs = [(tokenize(source), tokenize(text)) for source, text in zip(sources, texts, strict=True)]
    ratios = [len(source) / len(text) for source, text in pairs if text]
    return SummaryStatistics(
        sum(len(text) for _, text in pairs) / max(len(pairs), 1),
        math.fsum(ratios) / len(ratios) if ratios else None,
        {order: _novelty_share(pairs, order) for order in NGRAM_ORDERS},
    )


def summary_scores(names: Sequence[str], statistics: SummaryStatistics) -> tuple[dict[str, Score], dict[str, str]]:
    """The figures that are named as scores, and the reasons why others are missing."""
    values = {
        "length": (statistics.length, f"unit:word|{_TOKENIZATION_SIGNATURE}|stat:mean"),
        "compression": (statistics.compression, f"unit:word|{_TOKENIZATION_SIGNATURE}|stat:mean-source/hypothesis"),
        "novelty": (
            statistics.novelty[NOVELTY_ORDER],
            f"n:{NOVELTY_ORDER}|{_TOKENIZATION_SIGNATURE}|stat:not-in-source/ngrams*100",
        ),
    }
    requested = {name: values[name] for name in names if name in values}
    scores = {name: Score(value, signature) for name, (value, signature) in requested.items() if value is not None}
    return scores, dict.fromkeys((name for name in requested if name not in scores), NO_WORDS_REASON)


def _novelty_share(pairs: Sequence[tuple[Tokens, Tokens]], order: int) -> float | None:
    novel = total = 0
    for source, text in pairs:
        source_ngrams = {*_list_ngrams(source, order)}
        ngrams = _list_ngrams(text, order)
        novel, total = novel + sum(each not in source_ngrams for each in ngrams), total + len(ngrams)
    return 100 * novel / total if total else None


def _list_ngrams(tokens: Tokens, order: int) -> list[tuple[str, ...]]:
    return list(zip(*(tokens[begin:] for begin in range(order)), strict=False))
