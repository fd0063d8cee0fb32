"""Quality by length, and the samples that a reader wants to see: the worst, and some at random."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.config import EvaluationConfig
from pipeline.scoring.metrics import Score, score_texts, sentence_chrf


@dataclass(frozen=True)
class LengthBin:
    """The segments whose length lies in `shortest..longest` (words, both included), and their scores."""

    shortest: int
    longest: int
    num_segments: int
    scores: Mapping[str, Score]


@dataclass(frozen=True)
class Sample:
    """One segment with all that was said about it; `line` counts from 1."""

    line: int
    source: str | None
    hypothesis: str
    references: tuple[str, ...]
    chrf: float


def by_length(
    texts: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    config: EvaluationConfig,
    num_bins: int = 6,
) -> list[LengthBin]:
    """BLEU and chrF by the number of words of `texts` (the sources), in up to `num_bins` bins of about equal size.

    Where labels are scored: their accuracy. Segments of one length share a bin, so a corpus of few lengths has fewer
    bins. Signatures are those of `metrics.bleu` and `metrics.chrf`.
    """
    lengths = [len(text.split()) for text in texts]
    metrics = ("accuracy",) if "accuracy" in config.metrics else ("bleu", "chrf")
    config = config.model_copy(update={"metrics": metrics})
    bins = []
    for shortest, longest in _ranges(lengths, num_bins):
        rows = [row for row, length in enumerate(lengths) if shortest <= length <= longest]
        scores = score_texts(
            [hypotheses[row] for row in rows], [[reference[row] for row in rows] for reference in references], config
        )
        bins.append(LengthBin(shortest, longest, len(rows), scores))
    return bins


def _ranges(lengths: Sequence[int], num_bins: int) -> list[tuple[int, int]]:
    """Ranges of length that hold about len(lengths) / num_bins segments each, and together all of them."""
    ordered = sorted(lengths)
    ranges: list[tuple[int, int]] = []
    start = 0
    while start < len(ordered):
        share = max(1, (len(ordered) - start) // max(1, num_bins - len(ranges)))
        longest = ordered[start + share - 1]
        end = start + share
        while end < len(ordered) and ordered[end] == longest:
            end += 1
        ranges.append((ordered[start], longest))
        start = end
    return ranges


def worst_samples(
    sources: Sequence[str] | None, hypotheses: Sequence[str], references: Sequence[Sequence[str]], count: int
) -> list[Sample]:
    """The `count` segments of the lowest chrF, the worst first; of equals, the earlier line first."""
    if count == 0:
        return []
    samples = [_sample(row, sources, hypotheses, references) for row in range(len(hypotheses))]
    return sorted(samples, key=lambda sample: (sample.chrf, sample.line))[:count]


def random_samples(
    sources: Sequence[str] | None,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    count: int,
    seed: int,
) -> list[Sample]:
    """`count` segments (all, where there are fewer) drawn by `seed`, in the order of the corpus."""
    rows = random.Random(seed).sample(range(len(hypotheses)), min(count, len(hypotheses)))
    return [_sample(row, sources, hypotheses, references) for row in sorted(rows)]


def _sample(
    row: int, sources: Sequence[str] | None, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> Sample:
    segment = tuple(reference[row] for reference in references)
    source = None if sources is None else sources[row]
    return Sample(row + 1, source, hypotheses[row], segment, sentence_chrf(hypotheses[row], segment))
