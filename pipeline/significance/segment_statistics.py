"""Statistics of segments for each metric: rows of numbers such that the corpus score is a function of their sum.

Resampling segments, swapping them between systems and leaving one out are then sums of other rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tfm.data.errors import DataError, format_count
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics import sacrebleu_statistics
from tfm.pipeline.scoring.metrics.cider import (
    cider_d_of_segments,
    document_frequencies,
    references_of_segments,
)
from tfm.pipeline.scoring.metrics.entities.scores import ENTITY_F1, entity_counts
from tfm.pipeline.scoring.metrics.error_rates import ERROR_RATES, edits_and_units
from tfm.pipeline.scoring.metrics.labels import label_pairs
from tfm.pipeline.scoring.metrics.meteor import meteor_of_segments
from tfm.pipeline.scoring.metrics.registry import SACREBLEU_METRICS, exact_matches, sacrebleu_metric
from tfm.pipeline.scoring.metrics.rouge import rouge_of_segments
from tfm.pipeline.scoring.metrics.sacrebleu_statistics import SacrebleuMetric
from tfm.pipeline.significance.sacrebleu_scores import score_sums

Array = NDArray[np.floating]
MAX_MACRO_F1_CELLS = 30_000_000
"""The most cells of the rows of macro F1, which has three columns a label: 240 MB."""


@dataclass(frozen=True)
class SegmentStatistics:
    """Statistics of a system on a test set for a metric.

    Args:
        rows: (segments, K).
        score: sums of rows (..., K) -> scores (...).
        higher_is_better: whether higher scores are better.
        sacrebleu: the metric, where it is sacrebleu's.
        is_share: whether a segment is right or wrong, 1 or 0 of 1 (or of 0, if it does not count), and the score 100
            times the share that is right.
        rarest: of macro F1, the number of segments that have the rarest label.
    """

    rows: Array
    score: Callable[[Array], Array]
    higher_is_better: bool = True
    sacrebleu: SacrebleuMetric | None = None
    is_share: bool = False
    rarest: int | None = None

    @property
    def value(self) -> float:
        """The score of the whole test set."""
        return float(self.score(self.rows.sum(0)))

    def __len__(self) -> int:
        return len(self.rows)


def segment_statistics(
    metric: str,
    systems: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    config: EvaluationConfig,
) -> list[SegmentStatistics]:
    """Compute the statistics of each system's hypotheses by a metric; over all segments they give its `score_texts`.

    Args:
        metric: one of `METRIC_FUNCTIONS`, or "rouge1.recall", "rouge1.precision", …
        systems: the hypotheses of each system, one for each segment.
        references: one or more lists as long.
        config: settings of the metric.

    Raises:
        DataError: the numbers of lines differ, nothing is given, or macro F1 has more labels than memory is meant for.
        RecipeError: as the metrics do.
    """
    for lines in (*references, *systems):
        if not lines or len(lines) != len(references[0]):
            raise DataError(
                f"{format_count(len(lines), 'line')} beside a reference of {len(references[0])}: "
                "give one for each segment"
            )
    if metric in SACREBLEU_METRICS:
        return [_sacrebleu_statistics(metric, hypotheses, references, config) for hypotheses in systems]
    if metric == "macro_f1":
        return _macro_f1_statistics(systems, references, config)
    name, _, part = metric.partition(".")
    if name.startswith("rouge"):
        column = ("", "recall", "precision").index(part)
        return [
            mean_statistics(
                [100 * triple[column] for triple in rouge_of_segments(name, hypotheses, references, config)]
            )
            for hypotheses in systems
        ]
    if name == ENTITY_F1:
        return [_entity_statistics(part, hypotheses, references[0], config) for hypotheses in systems]
    if metric in ERROR_RATES:
        return [_error_rate_statistics(metric, hypotheses, references, config) for hypotheses in systems]
    return [STATISTICS_FUNCTIONS_BY_METRIC[metric](hypotheses, references, config) for hypotheses in systems]


def mean_statistics(values: Sequence[float], *, higher_is_better: bool = True) -> SegmentStatistics:
    """Statistics of a score that is the mean of one number a segment: METEOR, CIDEr-D, an external metric, ratings."""
    return ratio_statistics(values, [1.0] * len(values), higher_is_better=higher_is_better)


def ratio_statistics(
    parts: Sequence[float], wholes: Sequence[float], *, scale: float = 1.0, higher_is_better: bool = True
) -> SegmentStatistics:
    """Statistics of a score that is scale * sum(parts) / sum(wholes), and 0 if the wholes are.

    Args:
        parts: one for each segment.
        wholes: one for each segment.
        scale: the factor, such as 100 for percent.
        higher_is_better: whether higher scores are better.
    """
    return SegmentStatistics(
        np.column_stack([parts, wholes]).astype(np.float64), partial(_ratio_of_sums, scale=scale), higher_is_better
    )


def perplexity_statistics(log_probs: Sequence[float | None], units: Sequence[int | None]) -> SegmentStatistics:
    """Statistics of exp(-sum log p / sum of units), the units being pieces (with end tokens) or words.

    A segment whose log probability is None was left out of the perplexity.
    """
    rows = [(0.0, 0.0) if log_p is None else (-log_p, unit or 0) for log_p, unit in zip(log_probs, units, strict=True)]
    return SegmentStatistics(np.array(rows, dtype=np.float64), _perplexity_of_sums, higher_is_better=False)


def _ratio_of_sums(sums: Array, scale: float) -> Array:
    parts, wholes = sums[..., 0], sums[..., 1]
    return scale * np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes != 0)


def _perplexity_of_sums(sums: Array) -> Array:
    with np.errstate(over="ignore"):  # beyond a float it is infinite, as `exp_or_inf` has it
        return np.exp(_ratio_of_sums(sums, 1.0))


def _sacrebleu_statistics(
    name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> SegmentStatistics:
    metric = sacrebleu_metric(name, references, config)
    rows = sacrebleu_statistics.segment_statistics(metric, hypotheses, references)
    return SegmentStatistics(np.array(rows, dtype=np.float64), partial(score_sums, metric), name != "ter", metric)


def _meteor_statistics(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> SegmentStatistics:
    return mean_statistics([100 * value for value in meteor_of_segments(hypotheses, references, config)])


def _cider_d_statistics(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> SegmentStatistics:
    """Statistics of CIDEr-D as a mean with the document frequencies of all segments: resamples keep the weights."""
    segments = references_of_segments(references)
    return mean_statistics(cider_d_of_segments(hypotheses, segments, document_frequencies(segments)))


def _exact_match_statistics(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> SegmentStatistics:
    right = exact_matches(hypotheses, references, config)
    return replace(ratio_statistics(right, [1.0] * len(right), scale=100), is_share=True)


def _accuracy_statistics(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> SegmentStatistics:
    lines = [label_pairs([one], [other], config) for one, other in zip(hypotheses, references[0], strict=True)]
    right = [sum(given == wanted for given, wanted in pairs) for pairs in lines]
    counts = [len(pairs) for pairs in lines]
    return replace(ratio_statistics(right, counts, scale=100), is_share=max(counts, default=0) == 1)


def _error_rate_statistics(
    name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> SegmentStatistics:
    """Edits and units by segment; each is a share where every segment has one unit, which is right or wrong."""
    edits, units = zip(*edits_and_units(name, hypotheses, references, config), strict=True)
    is_share = {*units} == {1} and {*edits} <= {0, 1}
    return replace(ratio_statistics(edits, units, scale=100, higher_is_better=False), is_share=is_share)


def _entity_statistics(
    component: str, hypotheses: Sequence[str], references: Sequence[str], config: EvaluationConfig
) -> SegmentStatistics:
    """Statistics of F1 = 2 right / (hypothesis + reference), of recall or of precision.

    component: "" (F1), "recall" or "precision".
    """
    counts = entity_counts(hypotheses, references, config)
    right, hypothesis_counts, reference_counts = (
        [float(each) for each in column] for column in zip(*counts, strict=True)
    )
    denominators = {"recall": reference_counts, "precision": hypothesis_counts}.get(component) or [
        (a + b) / 2 for a, b in zip(hypothesis_counts, reference_counts, strict=True)
    ]
    return ratio_statistics(right, denominators, scale=100)


STATISTICS_FUNCTIONS_BY_METRIC: Mapping[
    str, Callable[[Sequence[str], Sequence[Sequence[str]], EvaluationConfig], SegmentStatistics]
] = {
    "meteor": _meteor_statistics,
    "cider_d": _cider_d_statistics,
    "exact_match": _exact_match_statistics,
    "accuracy": _accuracy_statistics,
}
"""Metrics of a single system, except sacrebleu's and ROUGE."""


def _macro_f1_statistics(
    systems: Sequence[Sequence[str]], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> list[SegmentStatistics]:
    """Columns by label: the counts of right ones and of each side, so that F1 = 2 right / (hypothesis + reference).

    The labels are those of all systems: a row must mean the same in each, to be swapped between them.
    """
    lines = [
        [label_pairs([one], [other], config) for one, other in zip(hypotheses, references[0], strict=True)]
        for hypotheses in systems
    ]
    names = sorted({label for system in lines for pairs in system for pair in pairs for label in pair if label})
    column = {name: 3 * index for index, name in enumerate(names)}
    if len(references[0]) * 3 * len(names) > MAX_MACRO_F1_CELLS:
        raise DataError(f"macro F1 of {len(names):,} labels on {len(references[0]):,} lines is not tested: too many")
    statistics = []
    for system in lines:
        rows = np.zeros((len(system), max(3 * len(names), 3)))
        for row, pairs in zip(rows, system, strict=True):
            for hypothesis_label, reference_label in pairs:
                if hypothesis_label:
                    row[column[hypothesis_label] + 1] += 1
                if reference_label:
                    row[column[reference_label] + 2] += 1
                if hypothesis_label == reference_label:
                    row[column[hypothesis_label]] += 1
        in_segments = (rows[:, 1::3] + rows[:, 2::3] > 0).sum(0)
        statistics.append(
            SegmentStatistics(rows, _mean_f1, rarest=int(in_segments[in_segments > 0].min(initial=len(rows))))
        )
    return statistics


def _mean_f1(sums: Array) -> Array:
    """The mean over the labels that occur, in 0..100."""
    right, totals = sums[..., 0::3], sums[..., 1::3] + sums[..., 2::3]
    f1 = np.divide(2 * right, totals, out=np.zeros_like(right), where=totals > 0)
    means: Array = 100 * f1.sum(-1) / np.maximum((totals > 0).sum(-1), 1)
    return means
