"""Statistics of segments by sacrebleu's metrics, counted once a text: scores of parts of a corpus add up the same ones.

An evaluation scores a corpus, its sentences by length, and single ones; a comparison draws from them. sacrebleu counts
again each time. Counts of BLEU and chrF with one reference are the same numbers, found in sets where no n-gram comes
twice, in two thirds of sacrebleu's time.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from tfm.pipeline.scoring.metrics.references import references_for_sacrebleu

SacrebleuMetric = BLEU | CHRF | TER
Statistics = tuple[float, ...]
MAX_CACHED_SEGMENTS = 1 << 17
"""The most segments of a metric that are remembered; of more, the last ones are."""
MAX_REFERENCES_AT_ONCE = 1024
"""The most segments whose references are held as n-grams, of which chrF has some 40 kB a line."""


def segment_statistics(
    metric: SacrebleuMetric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> list[Statistics]:
    """Return what a metric counts in each segment; its signature has the number of references of these segments.

    Args:
        metric: the metric, as it is set up for the references.
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
    """
    if isinstance(metric, CHRF) and metric.char_order and metric.word_order and len(references) == 1:
        return _chrf_statistics_by_parts(metric, hypotheses, references)
    cached = _cached_statistics(_metric_settings(metric))
    segments = [
        (hypothesis, *(text for text in texts if text is not None))
        for hypothesis, *texts in zip(hypotheses, *references_for_sacrebleu(references), strict=True)
    ]
    missing: dict[tuple[str, ...], list[str]] = {}
    for hypothesis, *texts in dict.fromkeys(segments):
        if (hypothesis, *texts) not in cached:
            missing.setdefault(tuple(texts), []).append(hypothesis)
    groups = list(missing.items())
    for start in range(0, len(groups), MAX_REFERENCES_AT_ONCE):
        cached.update(_count_segments(metric, dict(groups[start : start + MAX_REFERENCES_AT_ONCE])))
    statistics = [cached[each] for each in segments]
    while len(cached) > MAX_CACHED_SEGMENTS:
        cached.pop(next(iter(cached)))
    counts = {len(each) - 1 for each in segments}
    metric.num_refs = counts.pop() if len(counts) == 1 else -1
    return statistics


def _chrf_statistics_by_parts(
    metric: CHRF, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> list[Statistics]:
    """Statistics of chrF++: those of chrF, which it is often asked beside, and then those of n-grams of words.

    With several references chrF and chrF++ may find another one nearest: these are counted apart.
    """
    characters = CHRF(metric.char_order, 0, metric.beta, metric.lowercase, metric.whitespace)
    words = CHRF(0, metric.word_order, metric.beta, metric.lowercase, metric.whitespace)
    rows = [segment_statistics(part, hypotheses, references) for part in (characters, words)]
    metric.num_refs = words.num_refs
    return [first + second for first, second in zip(*rows, strict=True)]


def _count_segments(
    metric: SacrebleuMetric, hypotheses: Mapping[tuple[str, ...], Sequence[str]]
) -> dict[tuple[str, ...], Statistics]:
    """Statistics of hypotheses, given by their references, whose n-grams are counted once for all of them."""
    count = _pair_counter(metric)
    if count is not None and all(len(texts) == 1 for texts in hypotheses):
        return {
            (text, reference): statistics
            for (reference,), many in hypotheses.items()
            for text, statistics in zip(many, count(metric, reference, many), strict=True)
        }
    columns: Any = list(zip_longest(*hypotheses))  # sacrebleu's types know of no segment with fewer than others
    segments = [(text, *texts) for texts, many in hypotheses.items() for text in many]
    references_with_counts = zip(metric._cache_references(columns), hypotheses.values(), strict=True)
    metric._ref_cache = [each for each, many in references_with_counts for _ in many]
    statistics = metric._extract_corpus_statistics([text for text, *_ in segments], None)
    metric._ref_cache = None
    return dict(zip(segments, map(tuple, statistics), strict=True))


def _pair_counter(metric: SacrebleuMetric) -> Callable[[Any, str, Sequence[str]], list[Statistics]] | None:
    """The function that counts for a metric what hypotheses and their one reference share; None: sacrebleu does."""
    if isinstance(metric, BLEU):
        return _count_words
    if isinstance(metric, CHRF) and metric.word_order == 0 and not metric.whitespace:
        return _count_characters
    return None


def _count_words(metric: BLEU, reference: str, hypotheses: Sequence[str]) -> list[Statistics]:
    """Both lengths, the n-grams of words that match, and those of the hypothesis, for each order."""

    def find_ngrams(text: str) -> list[Sequence[object]]:
        words = metric._preprocess_segment(text).split()
        shifted = [words[first:] for first in range(metric.max_ngram_order)]
        # zip ends with the last word
        return [words, *(list(zip(*shifted[:order], strict=False)) for order in range(2, len(shifted) + 1))]

    wanted, statistics = find_ngrams(reference), list[Statistics]()
    for text in hypotheses:
        given = find_ngrams(text)
        matches = map(_num_matches, given, wanted)
        statistics.append((len(given[0]), len(wanted[0]), *matches, *map(len, given)))
    return statistics


def _count_characters(metric: CHRF, reference: str, hypotheses: Sequence[str]) -> list[Statistics]:
    """The n-grams of characters of the hypothesis, of the reference, and those that match, for each order."""

    def find_ngrams(text: str) -> list[Sequence[object]]:
        characters = "".join(metric._preprocess_segment(text).split())
        ngrams = [list(characters)]
        for order in range(2, metric.char_order + 1):
            # zip ends with the last character
            ngrams.append([start + end for start, end in zip(ngrams[-1], characters[order - 1 :], strict=False)])
        return [*ngrams]

    wanted, statistics = find_ngrams(reference), list[Statistics]()
    for text in hypotheses:
        row: list[int] = []
        for ours, theirs in zip(find_ngrams(text), wanted, strict=True):
            row += len(ours) if theirs else 0, len(theirs), _num_matches(ours, theirs)
        statistics.append(tuple(row))
    return statistics


def _num_matches(given: Sequence[object], wanted: Sequence[object]) -> int:
    """The number of items in common, each as often as it is in both."""
    distinct = set(given)
    if len(distinct) == len(given):
        return len(distinct.intersection(wanted))
    counts, limits = Counter(given), Counter(wanted)
    return sum([min(counts[each], limits[each]) for each in distinct.intersection(wanted)])


def corpus_score(
    metric: SacrebleuMetric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[float, str]:
    """Return a metric's score of a corpus, and its signature; arguments as in `segment_statistics`."""
    rows: Any = segment_statistics(metric, hypotheses, references)
    return float(metric._aggregate_and_compute(rows).score), metric.get_signature().format()


def _metric_settings(metric: SacrebleuMetric) -> str:
    """All that a metric counts by: its kind and its signature, without the number of references and without the order
    of n-grams that a score needs (`eff`), as all are counted.
    """
    metric.num_refs = 1
    return f"{type(metric).__name__} {metric.get_signature().format().replace('|eff:yes', '|eff:no')}"


@lru_cache(maxsize=8)
def _cached_statistics(settings: str) -> dict[tuple[str, ...], Statistics]:
    return {}
