"""Scores of the main test set with intervals, and the test of each row against the baseline."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tfm.pipeline.comparison.looks_at_tests import LookedAt, looked_at
from tfm.pipeline.comparison.metric_statistics import Missing, statistics_of
from tfm.pipeline.comparison.runs import Comparison
from tfm.pipeline.comparison.systems import System, read_system
from tfm.pipeline.errors import DataError
from tfm.pipeline.reports.run_summary import Trained
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.significance.holm import LEVEL
from tfm.pipeline.significance.paired_tests import Difference, Result, compare_systems
from tfm.pipeline.significance.resampling import RESAMPLES, TRIALS, seed_of_tests
from tfm.pipeline.significance.seeds import RecipeResult, SeedDifference, compare_recipes
from tfm.pipeline.significance.segment_statistics import SegmentStatistics

NO_SCORE = "no interval and no test: the baseline has no such score"
ONE_SEED = "not tested: with one seed nothing is known of how much seeds matter; `--each` tests each run"


@dataclass(frozen=True)
class Measured:
    """A score of a row; of several seeds, their mean.

    spread: what is shown after ±, of one run half the width of its 95 % interval (`Result.half_width`), of several
    seeds their standard deviation. low, high: the interval. versus: the test against the baseline.
    """

    value: float
    spread: float | None
    low: float
    high: float
    versus: Difference | SeedDifference | None = None

    @classmethod
    def of_run(cls, result: Result) -> "Measured":
        return cls(result.value, result.half_width, result.low, result.high, result.versus)

    @classmethod
    def of_seeds(cls, result: RecipeResult) -> "Measured":
        return cls(result.mean, result.deviation, result.low, result.high, result.versus)


@dataclass(frozen=True)
class Outcome:
    """What was found on the main test set, by metric ("bleu") and name of a run or row.

    test: its name, and that of `num_segments` segments; None where nothing was tested. systems: what the runs said, by
    name. looked_at: how often the test set was. notes: what is not tested, and why.
    """

    test: str | None = None
    num_segments: int = 0
    runs: Mapping[str, Mapping[str, Measured]] = field(default_factory=dict)
    rows: Mapping[str, Mapping[str, Measured]] = field(default_factory=dict)
    systems: Mapping[str, System] = field(default_factory=dict)
    looked_at: Sequence[LookedAt] = ()
    notes: Sequence[str] = ()


def run_tests(found: Comparison, metrics: Sequence[str], reporter: Reporter, *, each_run: bool = True) -> Outcome:
    """Tests the rows of a comparison against the baseline by metrics of the main test set.

    Compared are runs with the texts and the signature of the baseline. Runs, each against the first of the baseline,
    are one family for Holm's correction; rows are another one. A row of several seeds is tested over seeds and
    segments, if the baseline has several too. each_run: test each run also where no row is a single one, which takes
    most of the time. Raises DataError where what lies in a run is damaged, RecipeError for a wrong SACREBLEU_SEED.
    """
    seed_of_tests()  # a wrong one is wrong for all metrics
    base = found.baseline.runs[0]
    runs = [base, *(run for run in found.runs if run is not base)]
    systems = {run.name: read_system(run.folder, run.name) for run in runs if run.folder is not None}
    missing: list[Missing] = []
    by_run: dict[str, dict[str, Measured]] = {}
    by_row: dict[str, dict[str, Measured]] = {}
    num_segments = 0
    with reporter.bar("testing", len(metrics) * len(runs), "scores") as bar:
        for metric in metrics:
            compared = [run for run in runs if run.name in systems and _compares(found, run, metric)]
            known: dict[str, SegmentStatistics] = {}
            if compared and base not in compared:
                missing.append(Missing(base.name, metric, NO_SCORE))
            elif compared:
                scores = [run.figures[f"test.{metric}"].score for run in compared]
                known, without = statistics_of(metric, [systems[run.name] for run in compared], scores)
                missing += without
            bar.advance(len(runs) - len(known), metric)
            if known:
                num_segments = len(known[base.name])
                if each_run or any(len(row.runs) == 1 for row in found.rows):
                    by_run[metric] = _by_run(known, bar.advance)
                else:
                    bar.advance(len(known))
                by_row[metric], without = _by_row(found, metric, known, by_run.get(metric, {}))
                missing += without
    notes = [f"{name}: {note}" for name, system in systems.items() for note in system.notes]
    test = systems[base.name].main if num_segments else None
    looks = looked_at(runs, systems)
    return Outcome(test, num_segments, by_run, by_row, systems, looks, [*notes, *_in_words(missing)])


def settings_of_tests() -> dict[str, int | float | None]:
    """What a p-value depends on beside the scores; seed None: other draws each time."""
    return {"resamples": RESAMPLES, "trials": TRIALS, "seed": seed_of_tests(), "level": LEVEL}


def _compares(found: Comparison, run: Trained, metric: str) -> bool:
    return f"test.{metric}" in run.figures and found.compares(run, f"test.{metric}")


def _by_run(known: Mapping[str, SegmentStatistics], on_done: Callable[[], None]) -> dict[str, Measured]:
    """The score of each run, and its test over segments against the first."""
    results = compare_systems(list(known.values()), on_done=on_done)
    return {name: Measured.of_run(result) for name, result in zip(known, results, strict=True)}


def _by_row(
    found: Comparison, metric: str, known: Mapping[str, SegmentStatistics], by_run: Mapping[str, Measured]
) -> tuple[dict[str, Measured], list[Missing]]:
    """The score of each row whose runs are all known, and its test against the baseline.

    Where no row has several seeds, and where the baseline has one, a single run is tested as such.
    """
    rows = [found.baseline, *(row for row in found.rows if row is not found.baseline)]
    rows = [row for row in rows if all(run.name in known for run in row.runs)]
    if found.baseline not in rows:
        return {}, []
    alone = {row.name: by_run[row.runs[0].name] for row in rows if len(row.runs) == 1}
    if len(alone) == len(rows):
        return alone, []
    try:
        results = compare_recipes([[known[run.name] for run in row.runs] for row in rows])
    except DataError as error:  # a single segment
        return {}, [Missing(row.name, metric, f"not tested: {error}") for row in rows]
    measured = {row.name: Measured.of_seeds(result) for row, result in zip(rows, results, strict=True)}
    for name, of_run in alone.items():
        measured[name] = of_run if found.baseline.name in alone else replace(of_run, versus=None)
    untested = [row.name for row in rows[1:] if measured[row.name].versus is None]
    return measured, [Missing(name, metric, ONE_SEED) for name in untested]


def _in_words(missing: Sequence[Missing]) -> list[str]:
    """What is not tested: for each reason by which metrics, of which systems."""
    metrics: dict[tuple[str, str], list[str]] = {}
    for each in missing:
        metrics.setdefault((each.system, each.why), []).append(each.metric)
    systems: dict[tuple[str, str], list[str]] = {}
    for (system, why), names in metrics.items():
        systems.setdefault((", ".join(names), why), []).append(system)
    return [f"{', '.join(names)}: {metric}: {why}" for (metric, why), names in systems.items()]
