"""Scores as an artifact: scores.json, segments.jsonl and report.html published, unless fresh, and shown either way."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfm.data.errors import format_count
from tfm.data.json_documents import read_json
from tfm.pipeline.artifacts.canonical_json import sha256_of_json, to_jsonable
from tfm.pipeline.reports.evaluation_report import mean_of_directions_tables, render_report, score_rows
from tfm.pipeline.reports.evaluation_tables import evaluation_tables
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.evaluation.allowlist import external_metric_commands
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation, segment_scores
from tfm.pipeline.scoring.evaluation.scores_json import (
    evaluation_entry,
    evaluations_as_json,
    evaluations_from_json,
    raise_scores_file_errors,
)
from tfm.pipeline.scoring.ledger import (
    EvaluatedModel,
    LedgerEntry,
    append_entries,
    describe_test_uses,
    read_ledger,
    select_entries,
)
from tfm.pipeline.scoring.segment_scores import SEGMENTS_FILE as SEGMENTS
from tfm.pipeline.scoring.segment_scores import write_segments

if TYPE_CHECKING:
    from tfm.pipeline.artifacts.artifact import Draft, Plan

MAX_TERMINAL_COLUMNS = 12  # of a confusion matrix on a terminal


def publish_scores(
    plan: "Plan",
    evaluate: Callable[[Path | None], list[Evaluation]],
    training: Path | None,
    command: Sequence[str],
    reporter: Reporter,
    evaluated_model: EvaluatedModel | None = None,
) -> dict[str, Any]:
    """Publish the evaluations of `work`, unless they are there already, and show them either way.

    Args:
        plan: of the artifact.
        evaluate: evaluates; given the folder for files of its own.
        training: the folder whose metrics.jsonl the report draws.
        command: the command line, for the manifest.
        reporter: shows scores.
        evaluated_model: the model whose looks enter the ledger; None if these are no test sets, or those of no run.

    Returns:
        The content of scores.json.
    """
    from tfm.pipeline.artifacts.artifact import is_fresh, publish  # here, as scores may be shown alone

    if is_fresh(plan, reporter):
        file = plan.folder / "scores.json"
        with raise_scores_file_errors(file, remedy="run this again"):
            content = read_json(file)
            evaluations = evaluations_from_json(content)
            _show_score_tables(evaluations, reporter)
        _warn_of_repeated_test_use(summarize_test_uses(evaluations, evaluated_model), reporter)
    else:
        metrics = _read_training_metrics(training)  # before all work: it may be unreadable
        with publish(plan, command=command) as draft:
            evaluations = evaluate(draft.folder)
            content = evaluations_as_json(evaluations)
            # First, so that a kill hides no use of the tests with published scores.
            test_uses = record_test_use(evaluations, evaluated_model, reporter)
            _write_scores(draft, content, _report_page(plan, evaluations, metrics, test_uses))
            write_segments(draft.folder / SEGMENTS, map(segment_scores, evaluations))
        show_scores_and_samples(evaluations, reporter)
        _warn_of_repeated_test_use(test_uses, reporter)
    reporter.line(f"report: {plan.folder / 'report.html'}")
    return content


def show_unpublished_scores(
    evaluations: Sequence[Evaluation], reporter: Reporter, evaluated_model: EvaluatedModel | None = None
) -> dict[str, Any]:
    """Show scores that are not published.

    Args:
        evaluations: of test sets.
        reporter: shows scores.
        evaluated_model: the model whose looks enter the ledger; None if there is none.

    Returns:
        The content that scores.json would have.
    """
    test_uses = record_test_use(evaluations, evaluated_model, reporter)
    show_scores_and_samples(evaluations, reporter)
    _warn_of_repeated_test_use(test_uses, reporter)
    return evaluations_as_json(evaluations)


def warn_of_failed_metrics(content: Mapping[str, Any], external: Sequence[str], out: Path, reporter: Reporter) -> None:
    """Warn of external metrics that failed, with the way to compute them, since no scores become stale by themselves.

    Args:
        content: of scores.json.
        external: the names of the external metrics that were asked for.
        out: the folder of the scores.
        reporter: shows the warning.
    """
    missing = {name for entry in (content, *content["others"].values()) for name in entry["missing"]}
    if failed := [name for name in external if name in missing]:
        reporter.warn(f"scores do not include {', '.join(failed)}. Fix its command, delete {out} and evaluate again")


def record_test_use(
    evaluations: Sequence[Evaluation], evaluated_model: EvaluatedModel | None, reporter: Reporter
) -> dict[str, str]:
    """Enter into the ledger that each of these test sets was looked at.

    Args:
        evaluations: of the test sets.
        evaluated_model: the model that looked; None: nothing is entered.
        reporter: shows warnings.

    Returns:
        The number of looks by now, in words, as `summarize_test_uses` does.
    """
    if evaluated_model is not None:
        append_entries(evaluated_model.root, _record_ledger_entries(evaluations, evaluated_model), reporter)
    return summarize_test_uses(evaluations, evaluated_model)


def summarize_test_uses(evaluations: Sequence[Evaluation], evaluated_model: EvaluatedModel | None) -> dict[str, str]:
    """The number of looks at each test set, these scores included, in words, by its name.

    The same scores, made again, therefore have the same report, even where they cannot be entered.
    """
    if evaluated_model is None:
        return {}
    earlier_looks = read_ledger(evaluated_model.root)
    return {
        look.test: f"this test set was scored {describe_test_uses(select_entries([*earlier_looks, look], look.texts))}"
        for look in _record_ledger_entries(evaluations, evaluated_model)
    }


def _record_ledger_entries(evaluations: Sequence[Evaluation], evaluated_model: EvaluatedModel) -> list[LedgerEntry]:
    """Entries of the ledger: scores of the same texts by another name are the same scores."""
    entries = []
    for evaluation in evaluations:
        if evaluation.texts is not None:
            entry = {name: value for name, value in evaluation_entry(evaluation).items() if name != "split"}
            entries.append(
                evaluated_model.ledger_entry(evaluation.name, evaluation.texts, sha256_of_json(to_jsonable(entry)))
            )
    return entries


def _warn_of_repeated_test_use(test_uses: Mapping[str, str], reporter: Reporter) -> None:
    for name, words in test_uses.items():
        reporter.line(f"{name}: {words}")


def show_scores_and_samples(evaluations: Sequence[Evaluation], reporter: Reporter) -> None:
    """The tables of scores, and a few samples of the main test set."""
    _show_score_tables(evaluations, reporter)
    for sample in evaluations[0].terminal_samples:
        reporter.line(f"sample, line {sample.line}")
        if sample.source is not None:
            reporter.line(f"  source      {sample.source}")
        reporter.line(f"  hypothesis  {sample.hypothesis}")
        for reference in sample.references:
            reporter.line(f"  reference   {reference}")


def _write_scores(draft: "Draft", content: dict[str, Any], page: str) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
    (draft.folder / "scores.json").write_text(text + "\n", encoding="utf-8")
    (draft.folder / "report.html").write_text(page, encoding="utf-8")
    for entry in (content, *content["others"].values()):
        draft.figures[entry["split"]] = {name: score["score"] for name, score in entry["metrics"].items()}


def _read_training_metrics(training: Path | None) -> list[dict[str, object]]:
    """The lines of a training's metrics.jsonl; none if there is no such file."""
    log = None if training is None else training / "metrics.jsonl"
    if log is None or not log.exists():
        return []
    from tfm.pipeline.reports.training_curves import read_metrics

    return read_metrics(log)


def _draw_training_curves(metrics: list[dict[str, object]]) -> str | None:
    if not metrics:
        return None
    from tfm.pipeline.reports.training_curves import curves_svg

    return curves_svg(metrics)


def _report_page(
    plan: "Plan", evaluations: list[Evaluation], metrics: list[dict[str, object]], test_uses: Mapping[str, str]
) -> str:
    """The report. A training without a metrics.jsonl (a model from elsewhere) has no curves."""
    title = f"Evaluation: {evaluations[0].name}"
    return render_report(
        title,
        evaluations,
        curves=_draw_training_curves(metrics),
        inputs=plan.inputs,
        test_uses=test_uses,
        commands=list(external_metric_commands(plan.config)),
    )


def _show_score_tables(evaluations: Sequence[Evaluation], reporter: Reporter) -> None:
    for evaluation in evaluations:
        title = f"{evaluation.name}: {format_count(evaluation.num_segments, 'segment')}"
        reporter.table(title, ("metric", "score", "signature"), score_rows(evaluation))
        for name, columns, rows in evaluation_tables(evaluation, MAX_TERMINAL_COLUMNS):
            reporter.table(f"{evaluation.name}: {name}", columns, rows)
    for title, means in mean_of_directions_tables(evaluations):
        reporter.table(title, ("metric", "mean"), means)
