"""Scores of the main test set with intervals, and the test of each row against the baseline."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tfm.pipeline.comparison.metric_statistics import MetricNote, MetricStatistics, collect_metric_statistics
from tfm.pipeline.comparison.runs import Comparison
from tfm.pipeline.comparison.systems import NO_TRANSLATIONS_REASON, System, read_system
from tfm.pipeline.comparison.test_set_usage import TestSetUsage, list_test_set_usages
from tfm.pipeline.runtime.progress import NullReporter, Reporter
from tfm.pipeline.significance.holm import SIGNIFICANCE_LEVEL, format_p_value, holm_correction
from tfm.pipeline.significance.intervals import IDENTICAL_DRAWS_REASON
from tfm.pipeline.significance.paired_tests import PairedDifference, SystemResult, compare_systems
from tfm.pipeline.significance.resampling import RESAMPLES, TRIALS, resampling_seed
from tfm.pipeline.significance.seeds import (
    MIN_SEGMENTS,
    SEVERAL_SEEDS_REASON,
    RecipeResult,
    SeedDifference,
    compare_recipes,
)

MISSING_SEEDS_REASON = "not tested: not all of its seeds have this score"
BASELINE_MISSING_SEEDS_REASON = "not tested: not all seeds of the baseline have this score"
TOO_FEW_SEGMENTS_REASON = f"not tested: a test over seeds needs {MIN_SEGMENTS} segments"
ONE_SEGMENT_REASON = "not tested: there is one segment alone"
ONE_SEED_REASON = "not tested: one seed does not show how much scores vary between seeds. `--each` tests single runs"

TIES_COUNT_MESSAGE = (
    "p randomisation is sacrebleu's, which leaves out draws with just this difference; with them p is {}"
)
ZERO_IN_INTERVAL_MESSAGE = (
    "p < 0.05, but the 95 % interval of the difference contains 0: treat the difference as inconclusive"
)


@dataclass(frozen=True)
class ScoreEstimate:
    """A score of a row; of several seeds, their mean.

    Args:
        value: the score.
        spread: the number after ±: of one run half the width of its 95 % interval (`Result.half_width`), of several
            seeds their standard deviation.
        low: the lower end of the interval; None if there is a no_interval_reason.
        high: the upper end.
        versus: the test against the baseline.
        no_interval_reason: why there is no interval.
    """

    value: float
    spread: float | None
    low: float | None
    high: float | None
    versus: PairedDifference | SeedDifference | None = None
    no_interval_reason: str | None = None

    @classmethod
    def from_run(cls, result: SystemResult) -> "ScoreEstimate":
        spread, reason = None if result.low is None else result.half_width, result.no_interval_reason
        return cls(result.value, spread, result.low, result.high, result.versus, reason)

    @classmethod
    def from_seeds(cls, result: RecipeResult) -> "ScoreEstimate":
        reason = result.no_interval_reason
        return cls(result.mean, result.deviation, result.low, result.high, result.versus, reason)


@dataclass(frozen=True)
class SignificanceResults:
    """Results of the tests on the main test set, by metric ("bleu") and name of a run or row.

    Args:
        test: its name; None if nothing was tested.
        num_segments: of the test set.
        runs: the scores of runs.
        rows: the scores of rows.
        systems: the outputs of the runs, by name.
        looked_at: the looks at the test set.
        notes: the metrics that are not tested, and why.
        without_interval: the scores and differences that have no interval, and why.
    """

    test: str | None = None
    num_segments: int = 0
    runs: Mapping[str, Mapping[str, ScoreEstimate]] = field(default_factory=dict)
    rows: Mapping[str, Mapping[str, ScoreEstimate]] = field(default_factory=dict)
    systems: Mapping[str, System] = field(default_factory=dict)
    looked_at: Sequence[TestSetUsage] = ()
    notes: Sequence[str] = ()
    without_interval: Sequence[str] = ()


def run_significance_tests(
    comparison: Comparison,
    metrics: Sequence[str],
    reporter: Reporter,
    *,
    each_run: bool = True,
    systems: Mapping[str, System] | None = None,
) -> SignificanceResults:
    """Test the rows of a comparison against the baseline by metrics of the main test set.

    Tested are runs with the texts and the signature of the baseline; others have an interval alone. Runs, each against
    the first of the baseline, are one family for Holm's correction; rows are another one. A row of several seeds is
    tested over seeds and segments, if the baseline has several too.

    Args:
        comparison: the comparison.
        metrics: names of metrics.
        reporter: shows progress.
        each_run: test each run also where no row is a single one, which takes most of the time.
        systems: the outputs of runs, by name; None: those in their folders.

    Raises:
        DataError: a part of a run is damaged.
        RecipeError: SACREBLEU_SEED is wrong.
    """
    resampling_seed()  # a wrong one is wrong for all metrics
    base = comparison.baseline.runs[0]
    runs = [base, *(run for run in comparison.runs if run is not base)]
    if systems is None:
        systems = {
            run.name: read_system(run.folder, run.name, comparison.test) for run in runs if run.folder is not None
        }
    each_run = each_run or any(len(row.runs) == 1 for row in comparison.rows)
    remarks, without_interval = list[MetricNote](), list[MetricNote]()
    by_run: dict[str, dict[str, ScoreEstimate]] = {}
    by_row: dict[str, dict[str, ScoreEstimate]] = {}
    num_segments = 0
    with (reporter if metrics else NullReporter()).bar("testing", len(metrics) * len(runs), "scores") as bar:
        for metric in metrics:
            statistics = collect_metric_statistics(metric, comparison, runs, systems)
            remarks += statistics.missing
            if each_run:
                by_run[metric] = _estimate_runs(statistics, partial(bar.advance, 1, metric))
            by_row[metric], row_notes = _estimate_rows(comparison, metric, statistics, by_run.get(metric, {}))
            remarks += [*row_notes, *_contradiction_notes(metric, by_row[metric]), *_tie_notes(metric, by_row[metric])]
            without_interval += _no_interval_notes(metric, by_row[metric])
            num_segments = num_segments or len(next(iter(statistics.comparable.values()), ()))
            bar.advance(len(runs) - each_run * statistics.num_systems_with_statistics, metric)
    notes = [
        f"{name}: {note}" for name, each in systems.items() for note in each.notes if note != NO_TRANSLATIONS_REASON
    ]
    test = systems[base.name].main if num_segments else None
    looks = list_test_set_usages(runs, systems)
    notes_by_kind = [*notes, *_format_notes(remarks)], _format_notes(without_interval)
    return SignificanceResults(test, num_segments, by_run, by_row, systems, looks, *notes_by_kind)


def significance_test_settings() -> dict[str, int | float | None]:
    """Return the settings on which a p-value depends beside the scores; seed None: other draws each time."""
    return {"resamples": RESAMPLES, "trials": TRIALS, "seed": resampling_seed(), "level": SIGNIFICANCE_LEVEL}


def _estimate_runs(metric_statistics: MetricStatistics, on_done: Callable[[], None]) -> dict[str, ScoreEstimate]:
    """The score of each run, and its test over segments against the first of the baseline where they compare."""
    groups = [metric_statistics.comparable, *({name: each} for name, each in metric_statistics.incomparable.items())]
    estimates = {}
    for group in groups:
        results = compare_systems(list(group.values()), on_done=on_done) if group else []
        estimates.update({name: ScoreEstimate.from_run(result) for name, result in zip(group, results, strict=True)})
    return estimates


def _estimate_rows(
    comparison: Comparison, metric: str, metric_statistics: MetricStatistics, by_run: Mapping[str, ScoreEstimate]
) -> tuple[dict[str, ScoreEstimate], list[MetricNote]]:
    """The score of each row, and its test against the baseline where all its runs compare.

    A single run is tested as such, but against a baseline of several seeds not at all.
    """
    comparable, base = metric_statistics.comparable, comparison.baseline
    estimates = {row.name: by_run[row.runs[0].name] for row in comparison.rows if row.runs[0].name in by_run}
    estimates = {
        row.name: estimates[row.name] for row in comparison.rows if row.name in estimates and len(row.runs) == 1
    }
    if len(base.runs) > 1:  # what was tested is the difference from one of its seeds
        estimates = {name: replace(each, versus=None) for name, each in estimates.items()}
    rows = [base, *(row for row in comparison.rows if row is not base)]
    remarks = [MetricNote(row.name, metric, MISSING_SEEDS_REASON) for row in rows if row.runs_without(f"test.{metric}")]
    complete = [row for row in rows if all(run.name in comparable for run in row.runs)]
    row_names = [row.name for row in complete if row is not base]
    if any(len(each) == 1 for each in comparable.values()):
        remarks += [MetricNote(name, metric, ONE_SEGMENT_REASON) for name in row_names]
    elif base not in complete:
        complete_rows = [row for row in rows if row is not base and not row.runs_without(f"test.{metric}")]
        remarks += [
            MetricNote(row.name, metric, BASELINE_MISSING_SEEDS_REASON)
            for row in complete_rows
            if base.runs_without(f"test.{metric}")
        ]
    elif any(len(row.runs) > 1 for row in complete):
        results = compare_recipes([[comparable[run.name] for run in row.runs] for row in complete])
        for row, result in zip(complete, results, strict=True):
            if len(row.runs) > 1:
                estimates[row.name] = ScoreEstimate.from_seeds(result)
        few = len(next(iter(comparable.values()))) < MIN_SEGMENTS
        singles = {row.name for row in complete if len(row.runs) == 1 or len(base.runs) == 1}
        reasons = {
            name: ONE_SEED_REASON if name in singles or not few else TOO_FEW_SEGMENTS_REASON for name in row_names
        }
        remarks += [MetricNote(name, metric, reasons[name]) for name in row_names if estimates[name].versus is None]
    return _correct_p_values(
        {row.name: estimates[row.name] for row in comparison.rows if row.name in estimates}
    ), remarks


def _correct_p_values(estimates: Mapping[str, ScoreEstimate]) -> dict[str, ScoreEstimate]:
    """The rows with Holm's correction over their own tests: those of single seeds, in no row, are none of them."""
    tested = {name: each.versus for name, each in estimates.items() if each.versus is not None}
    p_values = dict(zip(tested, holm_correction([each.p for each in tested.values()]), strict=True))
    versus = {name: replace(each, p_holm=p_values[name]) for name, each in tested.items()}
    return {name: replace(each, versus=versus.get(name)) for name, each in estimates.items()}


def _no_interval_notes(metric: str, estimates: Mapping[str, ScoreEstimate]) -> list[MetricNote]:
    """The reasons why scores, and differences, have no interval."""
    noted_reasons = [(name, each.no_interval_reason, "no interval") for name, each in estimates.items()]
    # with several seeds ± is their deviation, and no interval
    noted_reasons = [each for each in noted_reasons if each[1] != SEVERAL_SEEDS_REASON]
    for name, estimate in estimates.items():
        if estimate.versus is not None and estimate.versus.no_interval_reason not in (
            estimate.no_interval_reason,
            IDENTICAL_DRAWS_REASON,
        ):
            noted_reasons.append((name, estimate.versus.no_interval_reason, "no interval of the difference"))
    return [
        MetricNote(name, metric, f"{subject}: {reason}")
        for name, reason, subject in noted_reasons
        if reason is not None
    ]


def _contradiction_notes(metric: str, estimates: Mapping[str, ScoreEstimate]) -> list[MetricNote]:
    """Rows whose difference is significant though it may as well be 0, by the interval.

    Randomization tests whether it matters which system wrote a segment. Between systems that differ in kind (one writes
    a third of the other) it may matter though their scores are equally good.
    """
    tests = {
        name: estimate.versus
        for name, estimate in estimates.items()
        if estimate.versus is not None and estimate.versus.is_significant
    }
    ends = {name: (test.low, test.high) for name, test in tests.items()}
    return [
        MetricNote(name, metric, ZERO_IN_INTERVAL_MESSAGE)
        for name, (low, high) in ends.items()
        if low is not None and high is not None and low <= 0 <= high
    ]


def _tie_notes(metric: str, estimates: Mapping[str, ScoreEstimate]) -> list[MetricNote]:
    """Rows whose p by sacrebleu is below the level and that which decides is not: few segments differ, or few of them
    matter.
    """
    tests = {name: each.versus for name, each in estimates.items() if isinstance(each.versus, PairedDifference)}
    return [
        MetricNote(name, metric, TIES_COUNT_MESSAGE.format(format_p_value(test.p)))
        for name, test in tests.items()
        if test.p_randomisation < SIGNIFICANCE_LEVEL <= test.p
    ]


def _format_notes(remarks: Sequence[MetricNote]) -> list[str]:
    """The notes on metrics that are not tested, or not sure, in words: for each reason the metrics and the systems."""
    metrics: dict[tuple[str, str], list[str]] = {}
    for note in remarks:
        metrics.setdefault((note.system, note.note), []).append(note.metric)
    systems: dict[tuple[str, str], list[str]] = {}
    for (system, reason), names in metrics.items():
        systems.setdefault((", ".join(names), reason), []).append(system)
    return [f"{', '.join(names)}: {metric}: {why}" for (metric, why), names in systems.items()]
