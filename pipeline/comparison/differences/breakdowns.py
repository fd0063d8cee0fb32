"""Differences between systems: a figure of each by length of the source, by order of n-grams and by label.

All figures are in 0..100. A column is a system; `average_columns` makes one of the several runs of a system.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.reports.evaluation_report import metric_label
from tfm.pipeline.scoring.breakdown import breakdown_by_length
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.bleu_tokenizer import resolve_tokenizer
from tfm.pipeline.scoring.metrics.labels import label_scores
from tfm.pipeline.scoring.metrics.references import references_for_sacrebleu
from tfm.pipeline.scoring.metrics.tokenization import make_bleu


@dataclass(frozen=True)
class BreakdownRow:
    """A row of a breakdown.

    Args:
        name: of the texts that the row is of.
        count: the number of units in it, where it is the same for all systems.
        values: one a system, None if it has none.
    """

    name: str
    count: int | None
    values: Sequence[float | None]


@dataclass(frozen=True)
class Breakdown:
    """A figure of every system, row by row.

    Args:
        title: the figure, and the unit of the rows.
        rows_are: the unit of the rows, in a word.
        counts_are: the unit of the counts, in a word.
        rows: the rows.
    """

    title: str
    rows_are: str
    counts_are: str
    rows: Sequence[BreakdownRow]


def average_columns(breakdown: Breakdown, groups: Sequence[Sequence[int]]) -> Breakdown:
    """A column for each group of columns: the mean of those that have a value."""

    def mean_of_present(values: Sequence[float | None]) -> float | None:
        present_values = [each for each in values if each is not None]
        return fsum(present_values) / len(present_values) if present_values else None

    rows = [
        replace(row, values=[mean_of_present([row.values[i] for i in group]) for group in groups])
        for row in breakdown.rows
    ]
    return replace(breakdown, rows=rows)


def breakdown_by_source_length(
    systems: Sequence[Segments],
    config: EvaluationConfig,
    excluded_metrics: Collection[str] = (),
    on_done: Callable[[], None] = lambda: None,
) -> list[Breakdown]:
    """Score systems by length of the source, or of the reference if there is no source, in the unit of
    `breakdown_by_length`.

    Scores are BLEU (of effective order) and chrF or, of labels, their accuracy.

    Args:
        systems: the outputs of systems on the same texts.
        config: settings of the metrics.
        excluded_metrics: metrics to leave out.
        on_done: called after each system.
    """
    first = systems[0]
    sources = first.source_texts
    texts, rows_are = (first.references[0], "reference") if sources is None else (sources, "source")
    bins_by_system = []
    for system in systems:
        bins_by_system.append(
            breakdown_by_length(texts, system.hypotheses, system.references, config, excluded_metrics)
        )
        on_done()
    names = list(dict.fromkeys(name for group in bins_by_system[0] for name in group.scores))
    tables = []
    for name in names:
        rows = []
        # all systems have the same bins, which are those of the texts that all were given
        for bins in zip(*bins_by_system, strict=True):
            shortest, longest = bins[0].shortest, bins[0].longest
            scores = [each.scores.get(name) for each in bins]
            values = [None if each is None else each.score for each in scores]
            rows.append(
                BreakdownRow(
                    f"{shortest}" if shortest == longest else f"{shortest}–{longest}", bins[0].num_segments, values
                )
            )
        figure = metric_label(name) + (" (effective order)" if name == "bleu" else "")
        unit = bins_by_system[0][0].unit
        tables.append(Breakdown(f"{figure} by length of the {rows_are}", unit, "segments", rows))
    return tables


def breakdown_by_ngram_order(systems: Sequence[Segments], config: EvaluationConfig) -> Breakdown:
    """Split BLEU into its parts (Papineni et al. 2002), in percent.

    The parts are the precisions of 1- to 4-grams, not smoothed, the brevity penalty, and the length ratio: the
    hypotheses' length over that of the references.
    """
    bleu = make_bleu(resolve_tokenizer(config, systems[0].references))
    columns: list[Any] = [references_for_sacrebleu(each.references) for each in systems]
    scores: list[Any] = [bleu.corpus_score(each.hypotheses, of) for each, of in zip(systems, columns, strict=True)]
    rows = [
        BreakdownRow(f"{n + 1}-grams", None, [percentage(each.counts[n], each.totals[n]) for each in scores])
        for n in range(4)
    ]
    rows.append(BreakdownRow("brevity penalty", None, [100 * float(each.bp) for each in scores]))
    rows.append(BreakdownRow("length ratio", None, [percentage(each.sys_len, each.ref_len) for each in scores]))
    return Breakdown("What BLEU is made of, in percent", "part", "", rows)


def percentage(part: int, total: int) -> float | None:
    """A share in 0..100; None of nothing."""
    return 100 * part / total if total else None


def breakdown_by_label(systems: Sequence[Segments], config: EvaluationConfig) -> Breakdown:
    """F1 of each label that the references or a system have, and how often the references have it (count)."""
    scores_by_system = [label_scores(each.hypotheses, each.references, config).by_label for each in systems]
    support = {name: each.support for one in scores_by_system for name, each in one.items()}
    rows = [
        BreakdownRow(name, support[name], [one[name].f1 if name in one else None for one in scores_by_system])
        for name in sorted(support)
    ]
    return Breakdown("F1 by label", "label", "in the references", rows)


def largest_differences(breakdown: Breakdown, max_rows: int) -> Breakdown:
    """Return the `max_rows` rows in which a system is farthest from the first, these first; equal ones as they were."""

    def spread_of_row(row: BreakdownRow) -> float:
        first = row.values[0] or 0.0
        return max(abs((each or 0.0) - first) for each in row.values)

    return replace(breakdown, rows=sorted(breakdown.rows, key=spread_of_row, reverse=True)[:max_rows])
