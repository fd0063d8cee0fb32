"""Scores of the main test set with intervals, and the test of each row against the baseline."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tfm.pipeline.comparison.looks_at_tests import LookedAt, looked_at
from tfm.pipeline.comparison.metric_statistics import Counted, Remark, count
from tfm.pipeline.comparison.runs import Comparison
from tfm.pipeline.comparison.systems import NO_TRANSLATIONS, System, read_system
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.progress import Quiet, Reporter
from tfm.pipeline.significance.holm import LEVEL
from tfm.pipeline.significance.paired_tests import Difference, Result, compare_systems
from tfm.pipeline.significance.resampling import RESAMPLES, TRIALS, seed_of_tests
from tfm.pipeline.significance.seeds import RecipeResult, SeedDifference, compare_recipes

MOST_SEGMENTS = 10_000
"""That sacrebleu's own tests get, which hold all draws in memory; of more, the same draws are made in blocks."""
NOT_ALL_SEEDS = "not tested: not all of its seeds have this score"
ONE_SEED = "not tested: with one seed nothing is known of how much seeds matter; `--each` tests each run"

HOLDS_ZERO = "p is below 0.05, but the 95 % interval of the difference holds 0: take it for undecided"


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

    Tested are runs with the texts and the signature of the baseline; others have an interval alone. Runs, each against
    the first of the baseline, are one family for Holm's correction; rows are another one. A row of several seeds is
    tested over seeds and segments, if the baseline has several too. each_run: test each run also where no row is a
    single one, which takes most of the time. Raises DataError where what lies in a run is damaged, RecipeError for a
    wrong SACREBLEU_SEED.
    """
    seed_of_tests()  # a wrong one is wrong for all metrics
    base = found.baseline.runs[0]
    runs = [base, *(run for run in found.runs if run is not base)]
    systems = {run.name: read_system(run.folder, run.name, found.test) for run in runs if run.folder is not None}
    each_run = each_run or any(len(row.runs) == 1 for row in found.rows)
    remarks: list[Remark] = []
    by_run: dict[str, dict[str, Measured]] = {}
    by_row: dict[str, dict[str, Measured]] = {}
    num_segments = 0
    with (reporter if metrics else Quiet()).bar("testing", len(metrics) * len(runs), "scores") as bar:
        for metric in metrics:
            counted = count(metric, found, runs, systems)
            remarks += counted.missing
            if each_run:
                by_run[metric] = _by_run(counted, partial(bar.advance, 1, metric))
            by_row[metric], without = _by_row(found, metric, counted, by_run.get(metric, {}))
            remarks += [*without, *_contradictions(metric, by_row[metric])]
            num_segments = num_segments or len(next(iter(counted.beside_baseline.values()), ()))
            bar.advance(len(runs) - each_run * counted.num_known, metric)
    notes = [f"{name}: {note}" for name, each in systems.items() for note in each.notes if note != NO_TRANSLATIONS]
    test = systems[base.name].main if num_segments else None
    looks = looked_at(runs, systems)
    return Outcome(test, num_segments, by_run, by_row, systems, looks, [*notes, *_in_words(remarks)])


def settings_of_tests() -> dict[str, int | float | None]:
    """What a p-value depends on beside the scores; seed None: other draws each time."""
    return {"resamples": RESAMPLES, "trials": TRIALS, "seed": seed_of_tests(), "level": LEVEL}


def _by_run(counted: Counted, on_done: Callable[[], None]) -> dict[str, Measured]:
    """The score of each run, and its test over segments against the first of the baseline where they compare."""
    groups = [counted.beside_baseline, *({name: each} for name, each in counted.alone.items())]
    found = {}
    for group in groups:
        systems = [replace(each, sacrebleu=None) if len(each) > MOST_SEGMENTS else each for each in group.values()]
        results = compare_systems(systems, on_done=on_done) if systems else []
        found.update({name: Measured.of_run(result) for name, result in zip(group, results, strict=True)})
    return found


def _by_row(
    found: Comparison, metric: str, counted: Counted, by_run: Mapping[str, Measured]
) -> tuple[dict[str, Measured], list[Remark]]:
    """The score of each row, and its test against the baseline where all its runs compare.

    A single run is tested as such, but against a baseline of several seeds not at all.
    """
    known = counted.beside_baseline
    measured = {row.name: by_run[row.runs[0].name] for row in found.rows if row.runs[0].name in by_run}
    measured = {row.name: measured[row.name] for row in found.rows if row.name in measured and len(row.runs) == 1}
    rows = [found.baseline, *(row for row in found.rows if row is not found.baseline)]
    partly = [Remark(row.name, metric, NOT_ALL_SEEDS) for row in rows if row.lacking(f"test.{metric}")]
    rows = [row for row in rows if all(run.name in known for run in row.runs)]
    if found.baseline not in rows or all(len(row.runs) == 1 for row in rows):
        return measured, partly
    try:
        results = compare_recipes([[known[run.name] for run in row.runs] for row in rows])
    except DataError as error:  # a single segment
        return measured, [*partly, *(Remark(row.name, metric, f"not tested: {error}") for row in rows)]
    for row, result in zip(rows, results, strict=True):
        if len(row.runs) > 1:
            measured[row.name] = Measured.of_seeds(result)
        elif len(found.baseline.runs) > 1:
            measured[row.name] = replace(measured[row.name], versus=None)
    untested = [row.name for row in rows[1:] if measured[row.name].versus is None]
    return measured, [*partly, *(Remark(name, metric, ONE_SEED) for name in untested)]


def _contradictions(metric: str, measured: Mapping[str, Measured]) -> list[Remark]:
    """Rows whose difference is significant though it may as well be 0, by the interval.

    Randomisation asks whether it matters which system said what. Of systems that differ in kind (one writes a third of
    the other) that may be so though their scores are as good as the same.
    """
    tests = {name: each.versus for name, each in measured.items() if each.versus is not None and each.versus.stands}
    return [Remark(name, metric, HOLDS_ZERO) for name, test in tests.items() if test.low <= 0 <= test.high]


def _in_words(remarks: Sequence[Remark]) -> list[str]:
    """What is not tested, or not sure: for each reason by which metrics, of which systems."""
    metrics: dict[tuple[str, str], list[str]] = {}
    for each in remarks:
        metrics.setdefault((each.system, each.why), []).append(each.metric)
    systems: dict[tuple[str, str], list[str]] = {}
    for (system, why), names in metrics.items():
        systems.setdefault((", ".join(names), why), []).append(system)
    return [f"{', '.join(names)}: {metric}: {why}" for (metric, why), names in systems.items()]
