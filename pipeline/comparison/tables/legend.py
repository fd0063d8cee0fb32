"""The meaning of the marks of a comparison, in words: below its tables, and in the caption of one in a paper."""

from collections.abc import Sequence

from tfm.pipeline.comparison.human_agreement import look_up_human_agreement
from tfm.pipeline.comparison.metric_tests import ScoreEstimate, SignificanceResults
from tfm.pipeline.comparison.runs import Comparison
from tfm.pipeline.comparison.tables.columns import NOT_COMPARABLE_MARK, SIGNIFICANT_MARK, Column, metric_signature
from tfm.pipeline.significance.holm import SIGNIFICANCE_LEVEL
from tfm.pipeline.significance.human_agreement_table import TABLE_SOURCE
from tfm.pipeline.significance.paired_tests import PairedDifference
from tfm.pipeline.significance.resampling import RESAMPLES, TRIALS
from tfm.pipeline.significance.seeds import SeedDifference

HUMAN_AGREEMENT_LEGEND = (
    "people agree: how often human judges prefer the same system as the metric, if it differs by this much "
    f"({TABLE_SOURCE})"
)


def legend_sentences(
    comparison: Comparison, tested: SignificanceResults, metrics: Sequence[str], columns: Sequence[Column]
) -> list[str]:
    """Return a sentence, without full stop, for each kind of mark in some columns, and for scores without interval.

    Args:
        comparison: the comparison.
        tested: the results of the tests.
        metrics: names of metrics.
        columns: of the table.
    """
    marks = [*_plus_minus_sentences(comparison, columns), *_test_sentences(comparison, tested, metrics)]
    if any(not cell.comparable for column in columns for cell in column.cells):
        marks.append(f"{NOT_COMPARABLE_MARK}: not comparable with {comparison.baseline.name}")
    return [*marks, *tested.without_interval]


def agreement_legend(comparison: Comparison, tested: SignificanceResults, metrics: Sequence[str]) -> list[str]:
    """Return the sentence for the chance that people agree, where that is shown.

    Args:
        comparison: the comparison.
        tested: the results of the tests.
        metrics: names of metrics.
    """
    agreements = (
        look_up_human_agreement(metric, metric_signature(comparison, metric), estimate.versus.difference)
        for metric in metrics
        for estimate in _estimates_of_all_rows(tested, metric)
        if estimate.versus is not None
    )
    return [HUMAN_AGREEMENT_LEGEND] if any(each is not None for each in agreements) else []


def _estimates_of_all_rows(tested: SignificanceResults, metric: str) -> list[ScoreEstimate]:
    return list(tested.rows.get(metric, {}).values())


def _plus_minus_sentences(comparison: Comparison, columns: Sequence[Column]) -> list[str]:
    """The meaning of ±, of one run and of several seeds."""
    run_counts = [
        len(row.runs) for index, row in enumerate(comparison.rows) if any(each.cells[index].spread for each in columns)
    ]
    interval = f"half of its 95 % interval over segments (bootstrap, {RESAMPLES:,} resamples; of shares Wilson's)"
    sentences = [f"± of one run: {interval}"] if 1 in run_counts else []
    return [*sentences, *(["± of several seeds: their standard deviation"] if max(run_counts, default=1) > 1 else [])]


def _test_sentences(comparison: Comparison, tested: SignificanceResults, metrics: Sequence[str]) -> list[str]:
    """The tests, in words: runs over segments, rows of several seeds over both."""
    sentences = []
    for kind, method in (
        (PairedDifference, f"approximate randomisation ({TRIALS:,} trials)"),
        (SeedDifference, "a t-test over seeds and segments"),
    ):
        tests = [
            estimate.versus
            for metric in metrics
            for estimate in _estimates_of_all_rows(tested, metric)
            if isinstance(estimate.versus, kind)
        ]
        if not tests:
            continue
        sizes = sorted(
            {
                sum(isinstance(each.versus, kind) for each in _estimates_of_all_rows(tested, metric))
                for metric in metrics
            }
            - {0}
        )
        finding = f"{SIGNIFICANT_MARK}: differs" if any(each.is_significant for each in tests) else "none differs"
        of_a_metric = " of a metric" if len(sizes) > 1 else ""
        correction = f", after Holm's correction over {' or '.join(map(str, sizes))} tests{of_a_metric}"
        correction = correction if sizes[-1] > 1 else ""
        sentences.append(
            f"{finding} from {comparison.baseline.name} with p < {SIGNIFICANCE_LEVEL:g} by {method}{correction}"
        )
    return sentences
