"""Outputs of any system, compared without a run: files of hypotheses, and folders that `tfm evaluate --out` wrote."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tfm.data.errors import DataError
from tfm.data.json_documents import read_json
from tfm.pipeline.artifacts.artifact import Input, Manifest, open_artifact, read_artifact
from tfm.pipeline.comparison.runs import Comparison, match_metric_name, sort_rows
from tfm.pipeline.comparison.score_checks import check_scores_match_texts
from tfm.pipeline.comparison.seeds import one_row_per_run
from tfm.pipeline.comparison.systems import SegmentValues, System, read_test_scores
from tfm.pipeline.comparison.test_set_usage import TestSetUsage
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.reports.run_summary import RunSummary
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.aligned_files import read_given_files, read_texts_of_scores
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_from_json, raise_scores_file_errors
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.evaluation.written_pieces import hypothesis_warnings
from tfm.pipeline.scoring.ledger import (
    LedgerEntry,
    append_entries,
    evaluated_model_of_files,
    read_ledger,
    select_entries,
    texts_fingerprint,
)
from tfm.pipeline.scoring.metrics.external.scores import external_scores
from tfm.pipeline.scoring.metrics.inapplicable_metrics import coverage_reasons, too_long_reasons
from tfm.pipeline.scoring.metrics.registry import SACREBLEU_METRICS, count_segments, score_texts

PLACEHOLDER_SETTINGS: Mapping[str, str] = {"model.architecture": "–", "model.task": ""}
"""Settings of outputs of unknown origin: no column shows them."""


@dataclass(frozen=True)
class SystemOutput:
    """The output of a system on a test set: its name, and a file of hypotheses or a folder of scores."""

    name: str
    path: Path

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()


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

    Raises DataError for a path where nothing is, RecipeError where two have one name.
    """
    found = []
    for word in words:
        name, equals, path = word.partition("=")
        if os.path.exists(word) or not equals:
            name, path = word, word
        if not name or not os.path.exists(path):
            problem = "there is no such file or folder" if name else "its name is missing: give NAME=FILE"
            raise DataError(problem, file=Path(path))
        found.append(SystemOutput(name, Path(path)))
    names = [each.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise RecipeError(f'two outputs are called "{twice}": give each a name of its own, NAME=FILE')
    return found


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
        read = _score_files(outputs, source, references, evaluation, reporter)
    else:
        if alone := next((each for each in outputs if not each.is_folder), None):
            raise RecipeError(f"{alone.path}: there is no reference to score it against: give --reference FILE")
        read = [_read_scored_folder(each) for each in outputs]
        evaluation = read[0][1].evaluation
    runs, systems = [run for run, _ in read], {system.name: system for _, system in read}
    of_base = next(run for run in runs if run.name == base)
    rows, order = one_row_per_run(runs), None
    if sort is not None:
        order = match_metric_name(sort, list(dict.fromkeys(name for run in runs for name in run.figures)))
        rows = sort_rows(rows, order)
    beside: dict[str, RunSummary] = {}
    for run in (of_base, *runs):
        for figure in run.figures:
            beside.setdefault(figure, run)
    base_row = next(row for row in rows if of_base in row.runs)
    found = Comparison(rows, base_row, beside, {run.name: {} for run in runs}, order)
    return OutputComparison(found, systems, evaluation)


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
        looker = evaluated_model_of_files((), path / "hypotheses.txt" if path.is_dir() else path)
        root = Path(os.path.abspath(path)).parent if looker is None else looker.root
        model, name = (run.model.fingerprint, run.name) if looker is None else (looker.model, looker.run)
        look = LedgerEntry(system.test_fingerprint, system.main, model, name, "files", seen=run.model.fingerprint)
        roots.setdefault(root, []).append(look)
    looked = []
    for root, entries in roots.items():
        append_entries(root, entries, reporter)
        known = tuple(select_entries(read_ledger(root) or entries, entries[0].texts))
        looked.append(TestSetUsage(entries[0].test, root, known or tuple(entries)))
    return looked


def _has_system_name(path: Path) -> bool:
    name, equals, rest = str(path).partition("=")
    return bool(name and equals) and not path.exists() and os.path.exists(rest)


def _is_evaluation_folder(path: Path) -> bool:
    """Whether a folder has scores and no model: `tfm evaluate --out` wrote it."""
    return (path / "scores.json").is_file() and (path / "manifest.json").is_file()


def _score_files(
    outputs: Sequence[SystemOutput],
    source: Path | None,
    references: Sequence[Path],
    evaluation: EvaluationConfig,
    reporter: Reporter,
) -> list[tuple[RunSummary, System]]:
    """Each output scored against the references; a folder's hypotheses are those that it holds."""
    given = {} if source is None else {"source": source}
    given |= {f"reference {number}": file for number, file in enumerate(references, 1)}
    files = {each.name: _hypotheses_file(each) for each in outputs}
    lines = read_given_files({**{f"output {name}": file for name, file in files.items()}, **given})
    columns = [lines[name] for name in given if name.startswith("reference ")]
    # as signatures call a text
    texts = "|".join(
        f"{name.removesuffix(' 1').replace(' ', '_')}:{Input.from_file(file).fingerprint[:12]}"
        for name, file in given.items()
    )
    hypotheses = {each.name: lines[f"output {each.name}"] for each in outputs}
    for name, given_texts in hypotheses.items():
        for warning in hypothesis_warnings(given_texts, columns[0]):
            reporter.warn(f"{name}: {warning}")
    coverage = coverage_reasons(columns, evaluation)
    without = {name: {**coverage, **too_long_reasons(texts, columns, evaluation)} for name, texts in hypotheses.items()}
    counted = [
        each
        for each in SACREBLEU_METRICS
        if each in evaluation.metrics and not any(each in why for why in without.values())
    ]
    found = []
    with reporter.bar("scoring", len(counted) + len(outputs), "parts") as bar:
        count_segments(
            list(hypotheses.values()),
            columns,
            evaluation.model_copy(update={"metrics": counted}),
            lambda metric: bar.advance(1, metric),
        )
        for each in outputs:
            segments = Segments(references[0].name, lines.get("source"), hypotheses[each.name], columns)
            fingerprint = Input.from_file(files[each.name]).fingerprint
            made = _placeholder_manifest(each.path, fingerprint)
            found.append(_score_output(each.name, segments, made, texts, evaluation, without[each.name], reporter))
            bar.advance(1, each.name)
    return found


def _score_output(
    name: str,
    segments: Segments,
    made: Manifest,
    texts: str,
    evaluation: EvaluationConfig,
    reasons: Mapping[str, str],
    reporter: Reporter,
) -> tuple[RunSummary, System]:
    """An output's scores; `texts` is what signatures say of the files, `reasons` those of metrics not to compute."""
    columns = segments.references
    without: dict[str, str] = {metric: reasons[metric] for metric in evaluation.metrics if metric in reasons}
    notes = [f"{metric} is not computed: {why}" for metric, why in without.items()]
    scores = score_texts(segments.hypotheses, columns, evaluation, without=without)
    others = external_scores(evaluation.external, name, segments.sources, segments.hypotheses, columns, reporter)
    notes += [f"{metric} {why}" for metric, why in others.missing.items()]
    figures = {
        f"test.{metric}": replace(score, signature=f"{score.signature}|{texts}")
        for metric, score in {**scores, **others.scores}.items()
    }
    noted = [
        SegmentValues(None, None, None, {metric: float(numbers[row]) for metric, numbers in others.numbers.items()})
        for row in range(len(segments.hypotheses) if others.numbers else 0)
    ]
    run = RunSummary(name, made, dict(PLACEHOLDER_SETTINGS), figures, notes=notes)
    known = texts_fingerprint(columns[0], segments.identifying_sources)
    test = segments.name
    return run, System(name, {test: segments}, {test: noted} if noted else {}, test, known, evaluation)


def _hypotheses_file(output: SystemOutput) -> Path:
    """The file of an output's hypotheses, of a folder of scores verified."""
    if not output.is_folder:
        return output.path
    made = open_artifact(output.path, "evaluate")
    if "hypotheses.txt" not in made.files:
        raise DataError("has no hypotheses.txt: remove the folder and run `tfm evaluate` again", file=output.path)
    return made.folder / "hypotheses.txt"


def _read_scored_folder(output: SystemOutput) -> tuple[RunSummary, System]:
    """Read a folder of `tfm evaluate --out`: its scores, and the texts that they are of."""
    made, content = read_artifact(output.path, _read_scores, "evaluate")
    known, figures, (first, *_), texts = content
    name = first.name
    about = "|".join(
        f"{label.removesuffix('_1')}:{each.fingerprint[:12]}"
        for label, each in sorted(
            made.inputs.items(), key=lambda entry: (entry[0] != "source", len(entry[0]), entry[0])
        )
        if label == "source" or label.startswith("reference")
    )
    scores = {f"test.{n}": replace(each, signature=f"{each.signature}|{about}") for n, each in first.scores.items()}
    segments = Segments(name, texts.get("source"), texts["hypotheses"], [texts[n] for n in texts if "reference" in n])
    try:
        evaluation = EvaluationConfig.model_validate(made.config.get("evaluation", {}))
    except ValidationError:
        problem = "another version of tfm made it: remove the folder and run `tfm evaluate` again"
        raise DataError(problem, file=output.path) from None
    check_scores_match_texts(made, first, segments, figures, evaluation)
    run = RunSummary(output.name, made, dict(PLACEHOLDER_SETTINGS), scores)
    return run, System(output.name, {name: segments}, figures, name, known.get(name), evaluation)


def _read_scores(manifest: Manifest) -> Any:
    shown = manifest.path / "scores.json"
    with raise_scores_file_errors(shown, again="score again"):
        evaluations = evaluations_from_json(read_json(manifest.folder / "scores.json", displayed_path=shown))
    return manifest, (*read_test_scores(manifest), evaluations, read_texts_of_scores(manifest))


def _placeholder_manifest(path: Path, fingerprint_: str) -> Manifest:
    """A manifest in place of that of the model, for an output of unknown origin."""
    return Manifest(path, path.parent, "hypotheses", fingerprint_, [], {}, {}, {}, None, {}, {})
