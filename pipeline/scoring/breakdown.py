"""Quality by length, and samples to look at: the worst, and some at random."""

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tfm.data.scripts import num_words
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.bleu_tokenizer import resolve_tokenizer
from tfm.pipeline.scoring.metrics.labels import accuracy, line_accuracy
from tfm.pipeline.scoring.metrics.references import drop_blank_references
from tfm.pipeline.scoring.metrics.registry import Metric, Score, bleu_effective_order, chrf, sentence_chrf

METRICS_BY_LENGTH: Mapping[str, Metric] = {"accuracy": accuracy, "bleu": bleu_effective_order, "chrf": chrf}


@dataclass(frozen=True)
class LengthBin:
    """The segments of some lengths, and their scores.

    Args:
        shortest: the least length, included.
        longest: the greatest length, included.
        num_segments: the number of segments.
        scores: by metric.
        unit: of the length.
    """

    shortest: int
    longest: int
    num_segments: int
    scores: Mapping[str, Score]
    unit: str = "words"


@dataclass(frozen=True)
class SampleSegment:
    """One segment with its output.

    Args:
        line: from 1.
        source: the source, if it is known.
        hypothesis: the output.
        references: its references.
        chrf: in 0..100.
        accuracy: of a model that labels, the share in 0..1 of the segment's labels that are right.
    """

    line: int
    source: str | None
    hypothesis: str
    references: tuple[str, ...]
    chrf: float
    accuracy: float | None = None


def has_label_metrics(config: EvaluationConfig) -> bool:
    """Whether lines of labels are scored, not texts."""
    return not {"accuracy", "macro_f1", "entity_f1"}.isdisjoint(config.metrics)


def breakdown_by_length(
    texts: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    config: EvaluationConfig,
    excluded_metrics: Collection[str] = (),
    num_bins: int = 6,
) -> list[LengthBin]:
    """Score segments in bins by the number of words of `texts`: BLEU and chrF or, of labels, their accuracy.

    The bins are of about equal size. Length is in characters if one number of words has more than three quarters of the
    segments, as of single words. BLEU is of effective order (n-grams as long as the hypotheses have), as a bin may hold
    nothing of four words. All metrics are left out in a bin without a reference. Segments of one length share a bin, so
    a corpus of few lengths has fewer bins.

    Args:
        texts: one for each segment: the sources.
        hypotheses: one for each segment.
        references: one or more lists as long.
        config: settings of the metrics.
        excluded_metrics: metrics to leave out.
        num_bins: the most bins.

    Returns:
        The bins, the shortest texts first.
    """
    unit, lengths = _source_lengths(texts)
    names = [
        name
        for name in (("accuracy",) if has_label_metrics(config) else ("bleu", "chrf"))
        if name not in excluded_metrics
    ]
    config = resolve_tokenizer(config, references)
    bins = []
    for shortest, longest in _length_ranges(lengths, num_bins) if names else []:
        rows = [row for row, length in enumerate(lengths) if shortest <= length <= longest]
        segments = [hypotheses[row] for row in rows], [[reference[row] for row in rows] for reference in references]
        has_words = any(text.strip() for column in segments[1] for text in column)
        scores = {name: METRICS_BY_LENGTH[name](*segments, config) for name in names if has_words}
        bins.append(LengthBin(shortest, longest, len(rows), scores, unit))
    return bins


def _source_lengths(texts: Sequence[str]) -> tuple[str, list[int]]:
    """The unit and the lengths of texts: words, or where most have as many, characters if these spread further."""
    words, characters = [num_words(text) for text in texts], [len(text.strip()) for text in texts]
    commonest = [max(Counter(lengths).values(), default=0) for lengths in (words, characters)]
    by_characters = commonest[0] > 0.75 * len(texts) and commonest[1] < commonest[0]
    return ("characters", characters) if by_characters else ("words", words)


def _length_ranges(lengths: Sequence[int], num_bins: int) -> list[tuple[int, int]]:
    """Ranges of length that hold about len(lengths) / num_bins segments each, and together all of them."""
    sorted_lengths = sorted(lengths)
    ranges: list[tuple[int, int]] = []
    start = 0
    while start < len(sorted_lengths):
        share = max(1, (len(sorted_lengths) - start) // max(1, num_bins - len(ranges)))
        longest = sorted_lengths[start + share - 1]
        end = start + share
        while end < len(sorted_lengths) and sorted_lengths[end] == longest:
            end += 1
        ranges.append((sorted_lengths[start], longest))
        start = end
    return ranges


def worst_samples(
    sources: Sequence[str] | None,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    count: int,
    *,
    config: EvaluationConfig,
) -> list[SampleSegment]:
    """Find the segments of the lowest chrF or, of labels, of the lowest share that is right, the worst first.

    Among equals, the earlier line comes first.

    Args:
        sources: one for each segment, if they are known.
        hypotheses: one for each segment.
        references: one or more lists as long.
        count: the number of segments to return.
        config: settings of the metrics.
    """
    if count == 0:
        return []
    samples = [_make_sample(row, sources, hypotheses, references, config) for row in range(len(hypotheses))]
    return sorted(samples, key=lambda each: (each.chrf if each.accuracy is None else each.accuracy, each.line))[:count]


def random_samples(
    sources: Sequence[str] | None,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    count: int,
    seed: int,
    *,
    config: EvaluationConfig,
) -> list[SampleSegment]:
    """Draw segments, in the order of the corpus.

    Args:
        sources: one for each segment, if they are known.
        hypotheses: one for each segment.
        references: one or more lists as long.
        count: the number of segments to draw; all, where there are fewer.
        seed: of the draw.
        config: settings of the metrics.
    """
    rows = random.Random(seed).sample(range(len(hypotheses)), min(count, len(hypotheses)))
    return [_make_sample(row, sources, hypotheses, references, config) for row in sorted(rows)]


def _make_sample(
    row: int,
    sources: Sequence[str] | None,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    config: EvaluationConfig,
) -> SampleSegment:
    segment = tuple(drop_blank_references([each[row] for each in references]))
    source = None if sources is None else sources[row]
    right = line_accuracy(hypotheses[row], references[0][row], config) if has_label_metrics(config) else None
    return SampleSegment(
        row + 1, source, hypotheses[row], segment, sentence_chrf(hypotheses[row], segment, config), right
    )
