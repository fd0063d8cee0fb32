"""External metrics of judged texts, such as COMET, as the evaluations of their runs noted them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfm.pipeline.comparison.systems import System, read_system
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.judging.statistics.correlation import MetricScores
from tfm.pipeline.judging.statistics.ratings import JudgedUnit
from tfm.pipeline.reports.run_summary import read_run, run_name
from tfm.pipeline.scoring.metrics.score import LOWER_IS_BETTER_SIGNATURE

RecordedMetrics = Mapping[str, tuple[str, Mapping[JudgedUnit, float]]]
"""By the name of a metric: its signature, and its number of each text."""


def read_recorded_metrics(
    runs: Sequence[Path], texts: Mapping[JudgedUnit, str]
) -> tuple[dict[str, MetricScores], list[str]]:
    """External metrics of the texts of some runs, by name, and notes on those that not all of the runs have alike.

    Args:
        runs: their folders, or those of their models.
        texts: what was judged, by segment ("test:line") and system: a run is that of its path, which is the name of
            runs whose folders are called the same, or else that of its folder.

    Raises:
        RecipeError: a run is no judged system, or the same one as another.
        DataError: a run says something else than was judged, or its evaluation noted nothing of its segments.
    """
    systems_judged = list(dict.fromkeys(system for _, system in texts))
    metrics_by_system: dict[str, RecordedMetrics] = {}
    for run in dict.fromkeys(runs):
        name = str(run) if str(run) in systems_judged else run_name(run)
        if name not in systems_judged:
            raise RecipeError(
                f"--run {run}: nothing of a system {name} was judged; judged were {', '.join(systems_judged)}"
            )
        if name in metrics_by_system:
            raise RecipeError(f"--run {run}: another run is given of the system {name}; remove one of them")
        metrics_by_system[name] = _read_run_metrics(run, name, texts)
    names = list(dict.fromkeys(metric for noted in metrics_by_system.values() for metric in noted))
    scores, notes = {}, []
    for metric in names:
        signatures = {noted[metric][0] if metric in noted else None for noted in metrics_by_system.values()}
        signature = signatures.pop()
        if signatures or signature is None:
            notes.append(f"{metric}: not all runs have it, computed in the same way")
            continue
        sign = -1 if LOWER_IS_BETTER_SIGNATURE in signature.split("|") else 1
        by_system = {
            system: {unit: sign * value for unit, value in recorded[metric][1].items()}
            for system, recorded in metrics_by_system.items()
        }
        by_unit = {unit: value for values in by_system.values() for unit, value in values.items()}
        means = {system: math.fsum(values.values()) / len(values) for system, values in by_system.items()}
        scores[metric] = MetricScores(signature, by_unit, means)
    return scores, notes


def _read_run_metrics(run: Path, name: str, texts: Mapping[JudgedUnit, str]) -> RecordedMetrics:
    folder = run.parent if run.name == "model" else run
    text_by_unit = {unit: text for unit, text in texts.items() if unit[1] == name}
    trained, system = read_run(run, name), read_system(folder, name)
    numbers = {unit: _segment_scores(folder, system, unit[0], text) for unit, text in text_by_unit.items()}
    signatures = {key.removeprefix("test."): figure.signature for key, figure in trained.figures.items()}
    return {
        metric: (signature, {unit: each[metric] for unit, each in numbers.items()})
        for metric, signature in signatures.items()
        if all(metric in each for each in numbers.values())
    }


def _segment_scores(run: Path, system: System, segment: str, text: str) -> Mapping[str, float]:
    """The external numbers of one text."""
    test, _, line = segment.rpartition(":")
    row, segments, values = int(line) - 1, system.tests.get(test), system.figures.get(test, ())
    if segments is None or row >= len(values):
        raise DataError(f"its evaluation noted no segments of the test set {test}: score it again", file=run)
    if segments.hypotheses[row] != text:
        raise DataError(f"differs from the judged text in line {line} of {test}", file=run)
    return values[row].external
