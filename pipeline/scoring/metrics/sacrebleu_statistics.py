"""Statistics of segments by sacrebleu's metrics, counted once a text: scores of parts of a corpus add up the same ones.

An evaluation scores a corpus, its sentences by length, and single ones; a comparison draws from them. sacrebleu counts
anew each time.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from tfm.pipeline.scoring.metrics.references import references_for_sacrebleu

SacrebleuMetric = BLEU | CHRF | TER
Statistics = tuple[float, ...]
MAX_CACHED_SEGMENTS = 1 << 17
"""The most segments of a metric that are remembered; of more, the last ones are."""


def segment_statistics(
    metric: SacrebleuMetric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> list[Statistics]:
    """Return what a metric counts in each segment; its signature has the number of references of these segments.

    Args:
        metric: the metric, as it is set up for the references.
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
    """
    known = _cached_statistics(_metric_settings(metric))
    segments = [
        (hypothesis, *(text for text in texts if text is not None))
        for hypothesis, *texts in zip(hypotheses, *references_for_sacrebleu(references), strict=True)
    ]
    missing = [each for each in dict.fromkeys(segments) if each not in known]
    if missing:
        columns: Any = [  # sacrebleu's types know of no segment with fewer references than others
            [texts[place] if place < len(texts) else None for texts in missing]
            for place in range(1, max(map(len, missing)))
        ]
        counted = metric._extract_corpus_statistics([texts[0] for texts in missing], columns)
        known.update(zip(missing, map(tuple, counted), strict=True))
    found = [known[each] for each in segments]
    while len(known) > MAX_CACHED_SEGMENTS:
        known.pop(next(iter(known)))
    counts = {len(each) - 1 for each in segments}
    metric.num_refs = counts.pop() if len(counts) == 1 else -1
    return found


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
