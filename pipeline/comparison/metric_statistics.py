"""The input of a metric's test for each system: the statistics of its segments, if they are known."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tfm.data.errors import format_count
from tfm.pipeline.comparison.runs import Comparison
from tfm.pipeline.comparison.systems import SegmentValues, System, text_mismatch_reason
from tfm.pipeline.errors import TfmError
from tfm.pipeline.reports.run_summary import RunSummary
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS
from tfm.pipeline.scoring.metrics.score import lower_is_better
from tfm.pipeline.significance.segment_statistics import (
    SegmentStatistics,
    mean_statistics,
    perplexity_statistics,
    ratio_statistics,
    segment_statistics,
)

COUNT_UNITS_BY_METRIC: Mapping[str, Callable[[SegmentValues], int | None]] = {
    "perplexity": lambda segment: segment.pieces,
    "word_perplexity": lambda segment: segment.words,
}
"""The unit of each perplexity: predictions, or words."""
NO_TEXTS_REASON = "no interval: the output for each segment is missing"
MISSING_SEGMENT_METRICS_REASON = (
    "no interval: scores/ has no figures per segment. Delete it and run `tfm evaluate` again"
)
NO_SEGMENT_METRICS_REASON = "no interval: this metric has no figures per segment"
MISMATCHED_VALUE_REASON = (
    "not tested: {:.4f} in scores/, but {:.4f} from the segments; remove scores/ and run `tfm evaluate` again"
)
NO_BASELINE_SCORE_REASON = "not tested: the baseline has no such score"
BITS_PER_CHARACTER = "bits_per_character"
SCORE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class MetricNote:
    """A note on a metric of a system.

    Args:
        system: the name of the system.
        metric: the name of the metric.
        note: such as the reason why it is not tested.
    """

    system: str
    metric: str
    note: str


@dataclass(frozen=True)
class MetricStatistics:
    """Statistics of a metric by name of a run.

    Args:
        comparable: statistics of the runs that compare with the baseline, which is the first of them.
        incomparable: statistics of the other runs.
        missing: the runs without statistics, and those that are not tested.
    """

    comparable: Mapping[str, SegmentStatistics]
    incomparable: Mapping[str, SegmentStatistics]
    missing: Sequence[MetricNote]

    @property
    def num_systems_with_statistics(self) -> int:
        return len(self.comparable) + len(self.incomparable)


def collect_metric_statistics(
    metric: str, comparison: Comparison, runs: Sequence[RunSummary], systems: Mapping[str, System]
) -> MetricStatistics:
    """Count the statistics of a metric of the main test set, of some runs; the first run is the baseline.

    Args:
        metric: the name of the metric.
        comparison: the comparison of the runs.
        runs: the runs, of which those with the metric count.
        systems: the outputs of runs, by name.
    """
    name, base = f"test.{metric}", runs[0].name
    runs_with_metric = [run for run in runs if name in run.figures and run.name in systems]
    has_base = any(run.name == base for run in runs_with_metric)
    comparable_runs = [run for run in runs_with_metric if has_base and comparison.is_comparable(run, name)]
    comparable, missing = _statistics_by_system(metric, comparable_runs, systems)
    missing += [] if has_base else [MetricNote(run.name, metric, NO_BASELINE_SCORE_REASON) for run in runs_with_metric]
    names, incomparable = {run.name for run in comparable_runs} if comparable else {base}, {}
    for run in runs_with_metric:
        if run.name not in names:
            run_statistics, notes = _statistics_by_system(metric, [run], systems)
            incomparable.update(run_statistics)
            missing += notes
    return MetricStatistics(comparable, incomparable, list(dict.fromkeys(missing)))


def _statistics_by_system(
    metric: str, runs: Sequence[RunSummary], systems: Mapping[str, System]
) -> tuple[dict[str, SegmentStatistics], list[MetricNote]]:
    """Statistics of runs on one test set; none if the first, whose texts the others need, has none.

    Statistics that do not give the score in scores/ again are left out: they are of something else.
    """
    reasons = {run.name: _missing_statistics_reason(metric, systems[run.name], systems[runs[0].name]) for run in runs}
    missing = [MetricNote(name, metric, reason) for name, reason in reasons.items() if reason is not None]
    measurable_runs = [run for run in runs if reasons[run.name] is None]
    if not runs or reasons[runs[0].name] is not None:
        return {}, missing
    try:
        statistics_of_runs = _system_statistics(
            metric,
            [systems[run.name] for run in measurable_runs],
            measurable_runs[0].figures[f"test.{metric}"].signature,
        )
    except TfmError as error:
        return {}, [*missing, *(MetricNote(run.name, metric, f"not tested: {error}") for run in measurable_runs)]
    statistics_by_name = {}
    for run, statistics in zip(measurable_runs, statistics_of_runs, strict=True):
        score, value = run.figures[f"test.{metric}"].score, statistics.value
        if math.isclose(value, score, rel_tol=SCORE_TOLERANCE, abs_tol=SCORE_TOLERANCE):
            statistics_by_name[run.name] = statistics
        else:
            reason = (
                NO_SEGMENT_METRICS_REASON
                if metric == BITS_PER_CHARACTER
                else MISMATCHED_VALUE_REASON.format(score, value)
            )
            missing.append(MetricNote(run.name, metric, reason))
    return (statistics_by_name if runs[0].name in statistics_by_name else {}), missing


def _missing_statistics_reason(metric: str, system: System, baseline: System) -> str | None:
    """The reason why a system has no statistics of a metric beside the baseline; None if it has."""
    if metric in METRIC_FUNCTIONS:
        if system.texts is None:
            return NO_TEXTS_REASON
        return None if baseline.texts is None else text_mismatch_reason(system.texts, baseline.texts)
    segments, num = system.segment_values, len(baseline.segment_values)
    if metric == BITS_PER_CHARACTER and (system.texts is None or len(system.texts.references) > 1):
        return NO_SEGMENT_METRICS_REASON  # which of several references were left out is not known
    if metric in (*COUNT_UNITS_BY_METRIC, BITS_PER_CHARACTER):
        if not any(each.log_prob is not None for each in segments):
            return NO_SEGMENT_METRICS_REASON if segments else MISSING_SEGMENT_METRICS_REASON
    elif not segments or not all(metric in each.external for each in segments):
        return NO_SEGMENT_METRICS_REASON
    return f"{format_count(len(segments), 'segment')}, not {num:,}" if num and len(segments) != num else None


def _system_statistics(metric: str, systems: Sequence[System], signature: str) -> list[SegmentStatistics]:
    """The statistics of systems that are known to have them.

    The signature of an external metric decides whether the higher score is better.
    """
    if metric in METRIC_FUNCTIONS:
        texts = [system.texts for system in systems if system.texts is not None]
        return segment_statistics(
            metric, [each.hypotheses for each in texts], texts[0].references, systems[0].evaluation
        )
    if metric in COUNT_UNITS_BY_METRIC:
        unit = COUNT_UNITS_BY_METRIC[metric]
        return [
            perplexity_statistics(
                [each.log_prob for each in system.segment_values], [unit(each) for each in system.segment_values]
            )
            for system in systems
        ]
    if metric == BITS_PER_CHARACTER:
        return [_bits_per_character(system) for system in systems]
    higher = not lower_is_better(metric, signature)
    values = [[each.external[metric] for each in system.segment_values] for system in systems]
    return [mean_statistics(each, higher_is_better=higher) for each in values]


def _bits_per_character(system: System) -> SegmentStatistics:
    """-log2 p / characters of the references as they were read; a tokenizer may count others (`CharacterCounts`)."""
    assert system.texts is not None
    pairs = [
        (0.0, 0) if segment.log_prob is None else (-segment.log_prob, len(text))
        for segment, text in zip(system.segment_values, system.texts.references[0], strict=True)
    ]
    bits, characters = zip(*pairs, strict=True)
    return ratio_statistics(bits, characters, scale=1 / math.log(2), higher_is_better=False)
