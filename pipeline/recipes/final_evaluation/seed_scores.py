"""Seeds of one recipe scored on its test sets together: one look at them, and the mean ± standard deviation."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from tfm.data.dataset.store import load_dataset
from tfm.data.errors import format_count
from tfm.pipeline.artifacts.artifact import open_artifact, read_artifact
from tfm.pipeline.artifacts.canonical_json import sha256_of_json, to_jsonable
from tfm.pipeline.comparison.signatures import comparable_parts
from tfm.pipeline.recipes.run_paths import RunPaths
from tfm.pipeline.reports.evaluation_report import metric_label
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring import ledger
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_from_json


def joint_fingerprint(folders: Sequence[Path]) -> str:
    """The fingerprint of the models of some runs together, as the ledger has it; of one run that of its model."""
    models = [open_artifact(RunPaths(each).model, "train").fingerprint for each in folders]
    return models[0] if len(models) == 1 else sha256_of_json(models)


def record_joint_test_use(folders: Sequence[Path], settings: Any, chosen: str, reporter: Reporter) -> None:
    """Enter into the ledger, before they are scored, that seeds of a recipe look at its test sets together, once.

    Args:
        folders: the runs.
        settings: of decoding and evaluation; a scoring that goes on with the same ones is no other look.
        chosen: how the recipe was chosen.
        reporter: shows how often each test set was looked at.
    """
    first, model = RunPaths(folders[0]), joint_fingerprint(folders)
    evaluated_model = ledger.read_evaluated_model(first.model, model, chosen)
    if evaluated_model is None:
        return
    digest = sha256_of_json([model, to_jsonable(settings)])
    names = ledger.RUN_SEPARATOR.join(each.resolve().name for each in folders)
    new_entries = [
        ledger.LedgerEntry(texts, name, model, names, chosen, seen=digest)
        for name, texts in test_fingerprints(first).items()
    ]
    entries = ledger.read_ledger(evaluated_model.root)
    recorded_uses = {(each.texts, each.model, each.seen) for each in entries}
    ledger.append_entries(
        evaluated_model.root,
        [each for each in new_entries if (each.texts, each.model, each.seen) not in recorded_uses],
        reporter,
    )
    for entry in new_entries:
        words = ledger.describe_test_uses(ledger.select_entries([*entries, entry], entry.texts))
        reporter.line(f"{entry.test}: this test set was scored {words}")


def test_fingerprints(run: RunPaths) -> dict[str, str]:
    """The fingerprint of each test set of a run's dataset, by name."""
    tests = read_artifact(run.dataset, lambda manifest: load_dataset(manifest.folder), "preprocess").tests
    return {name: ledger.split_fingerprint(split) for name, split in tests.items()}


def show_seed_scores(name: str, contents: Mapping[str, Mapping[str, Any]], reporter: Reporter) -> dict[str, Any]:
    """Show the mean ± standard deviation (n - 1) over seeds of each score.

    Args:
        name: the name of the recipe.
        contents: of the scores.json of each run, by the name of the run.
        reporter: shows a table for each test set.

    Returns:
        The figures by test set and metric, and all contents.
    """
    figures_by_test: dict[str, Any] = {}
    for evaluations in zip(*(evaluations_from_json(each) for each in contents.values()), strict=True):
        figures = _summarize_seeds(evaluations)
        figures_by_test[evaluations[0].name] = figures
        rows = [
            (
                metric_label(metric, summary["signature"]),
                f"{summary['mean']:.4g} ± {summary['deviation']:.2g}",
                *(f"{value:.4g}" for value in summary["values"]),
            )
            for metric, summary in figures.items()
        ]
        title = f"{name}, {evaluations[0].name}: mean ± standard deviation of {format_count(len(contents), 'seed')}"
        reporter.table(title, ["metric", "score", *contents], rows)
    return {"name": name, "tests": figures_by_test, "runs": dict(contents)}


def _summarize_seeds(evaluations: Sequence[Evaluation]) -> dict[str, dict[str, Any]]:
    """Mean, deviation and values of each score that all seeds have, finite and by one definition."""
    summaries = {}
    for metric in evaluations[0].scores:
        scores = [each.scores[metric] for each in evaluations if metric in each.scores]
        values = [each.score for each in scores]
        definitions = {comparable_parts(metric, each.signature) for each in scores}
        if len(scores) == len(evaluations) and len(definitions) == 1 and all(map(math.isfinite, values)):
            summary = {"mean": fmean(values), "deviation": stdev(values), "values": values}
            summaries[metric] = {**summary, "signature": scores[0].signature}
    return summaries
