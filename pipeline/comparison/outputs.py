"""Outputs of any system, compared without a run: files of hypotheses, and folders that `tfm evaluate --out` wrote."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfm.data.errors import DataError
from tfm.pipeline.comparison.output_scores import (
    SystemOutput,
    ignore_unshared_sources,
    read_scored_folder,
    score_files,
)
from tfm.pipeline.comparison.runs import Comparison, match_metric_name, sort_rows
from tfm.pipeline.comparison.seeds import one_row_per_run
from tfm.pipeline.comparison.systems import System
from tfm.pipeline.comparison.test_set_usage import TestSetUsage
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.errors import RecipeError, control_character_pattern, escape_control_characters
from tfm.pipeline.reports.run_summary import RunSummary
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.ledger import (
    LedgerEntry,
    append_entries,
    evaluated_model_of_files,
    read_ledger,
    select_entries,
)


@dataclass(frozen=True)
class OutputComparison:
    """A comparison of outputs.

    Args:
        comparison: the comparison.
        systems: the systems whose outputs they are, by name.
        evaluation: settings by which they were scored.
    """

    comparison: Comparison
    systems: Mapping[str, System]
    evaluation: EvaluationConfig


def parse_outputs(words: Sequence[str]) -> list[SystemOutput]:
    """The outputs that are meant by NAME=PATH, or by a path alone, which is then the name.

    Raises DataError for a path where nothing is, RecipeError where two have one name, or a name has control characters.
    """
    outputs = []
    for word in words:
        name, equals, path = word.partition("=")
        if os.path.exists(word) or not equals:
            name, path = word, word
        if not name or not os.path.exists(path):
            problem = "there is no such file or folder" if name else "its name is missing: give NAME=FILE"
            raise DataError(problem, file=Path(path))
        if control_character_pattern().search(name):
            problem = f'an output is called "{escape_control_characters(name, keep="")}", which no table can show'
            raise RecipeError(f"{problem}: give it a name of letters, NAME=FILE")
        outputs.append(SystemOutput(name, Path(path)))
    names = [each.name for each in outputs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise RecipeError(f'two outputs are called "{twice}": give each a name of its own, NAME=FILE')
    return outputs


def check_metrics_of_texts(metrics: Sequence[str]) -> None:
    """Raise RecipeError if texts alone, which are scored anew, do not give one of the metrics that are asked for."""
    if "perplexity" in metrics:
        problem = "--metric perplexity: it is of a model, and texts that are scored by --reference have none"
        raise RecipeError(f"{problem}: give folders of `tfm evaluate --model DIR --out FOLDER` alone, or runs")


def are_outputs(paths: Sequence[Path]) -> bool:
    """Whether some paths are outputs and no runs: one is NAME=PATH, or a folder of `tfm evaluate --out`."""
    return any(_has_system_name(path) or _is_evaluation_folder(path) for path in paths)


def compare_outputs(
    outputs: Sequence[SystemOutput],
    *,
    source: Path | None,
    references: Sequence[Path],
    evaluation: EvaluationConfig,
    baseline: str | None,
    sort: str | None,
    reporter: Reporter,
) -> OutputComparison:
    """Outputs side by side, the texts in `references` being those that they are held against.

    Args:
        outputs: the systems.
        source: the file of the sources, if it is known.
        references: one file or more; none: each folder of scores has its own.
        evaluation: how files are scored; folders without `references` keep their scores.
        baseline: the name of an output, or its path; None: the first.
        sort: the figure by which they are ordered, the best first.
        reporter: shows progress.

    Raises:
        DataError: files do not have as many lines, or a folder holds no scores.
        RecipeError: a file is given without references, or the baseline is none of the outputs.
    """
    base = next((each.name for each in outputs if baseline in (None, each.name, str(each.path))), None)
    if base is None:
        raise RecipeError(f"--baseline {baseline}: the outputs are {', '.join(each.name for each in outputs)}")
    if references:
        results = score_files(outputs, source, references, evaluation, reporter)
    else:
        if file_output := next((each for each in outputs if not each.is_folder), None):
            raise RecipeError(f"{file_output.path}: there is no reference to score it against: give --reference FILE")
        results = ignore_unshared_sources([read_scored_folder(each) for each in outputs])
        evaluation = results[0][1].evaluation
    runs, systems = [run for run, _ in results], {system.name: system for _, system in results}
    base_run = next(run for run in runs if run.name == base)
    rows, order = one_row_per_run(runs), None
    if sort is not None:
        order = match_metric_name(sort, list(dict.fromkeys(name for run in runs for name in run.figures)))
        rows = sort_rows(rows, order)
    reference_runs: dict[str, RunSummary] = {}
    for run in (base_run, *runs):
        for figure in run.figures:
            reference_runs.setdefault(figure, run)
    base_row = next(row for row in rows if base_run in row.runs)
    comparison = Comparison(rows, base_row, reference_runs, {run.name: {} for run in runs}, order)
    return OutputComparison(comparison, systems, evaluation)


def record_test_set_usage(
    comparison: OutputComparison, outputs: Sequence[SystemOutput], reporter: Reporter
) -> list[TestSetUsage]:
    """Enter a look into the ledger beside each output; an output of a run has the ledger of the runs.

    Args:
        comparison: the scored outputs.
        outputs: their names and paths.
        reporter: shows warnings.

    Returns:
        The number of looks by now, by folder.
    """
    roots: dict[Path, list[LedgerEntry]] = {}
    for run in comparison.comparison.runs:
        system = comparison.systems[run.name]
        path = next(each.path for each in outputs if each.name == run.name)
        if system.test_fingerprint is None or system.main is None:
            continue
        evaluated_model = evaluated_model_of_files((), path / "hypotheses.txt" if path.is_dir() else path)
        root = Path(os.path.abspath(path)).parent if evaluated_model is None else evaluated_model.root
        model, name = (
            (run.model.fingerprint, run.name)
            if evaluated_model is None
            else (evaluated_model.model, evaluated_model.run)
        )
        look = LedgerEntry(system.test_fingerprint, system.main, model, name, "files", seen=run.model.fingerprint)
        roots.setdefault(root, []).append(look)
    usages = []
    for root, entries in roots.items():
        append_entries(root, entries, reporter)
        entries_of_texts = tuple(select_entries(read_ledger(root) or entries, entries[0].texts))
        usages.append(TestSetUsage(entries[0].test, root, entries_of_texts or tuple(entries)))
    return usages


def _has_system_name(path: Path) -> bool:
    name, equals, rest = str(path).partition("=")
    return bool(name and equals) and not path.exists() and os.path.exists(rest)


def _is_evaluation_folder(path: Path) -> bool:
    """Whether a folder has scores and no model: `tfm evaluate --out` wrote it."""
    return (path / "scores.json").is_file() and (path / "manifest.json").is_file()
