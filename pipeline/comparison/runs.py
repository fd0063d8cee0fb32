"""Trained models compared: their differences, their figures, and which figures are comparable.

If the signatures of two figures differ, the difference is reported: losses on different datasets, BLEU of different
texts or seconds of different machines cannot be compared.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfm.data.errors import format_names
from tfm.pipeline.comparison.seeds import ComparisonRow, duplicate_seed_reasons, group_by_seed
from tfm.pipeline.comparison.signatures import comparable_parts, describe_signature_difference
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.reports.run_summary import VALIDATION_TEST_NAME, RunSummary, read_run, run_name
from tfm.pipeline.scoring.ledger import LEDGER_FILE as LEDGER
from tfm.pipeline.scoring.metrics.score import lower_is_better
from tfm.pipeline.tasks.abilities import TASK_SPECS

COST_FIGURES = ("parameters", "updates", "seconds")
"""Figures that are no scores, of which the lower is the better."""
SORTED_BY_TEST_MESSAGE = "sorted by {}: a test set used to choose a model gives an optimistic score of the chosen one"


@dataclass(frozen=True)
class Comparison:
    """Runs, or seeds of runs, to compare.

    Args:
        rows: in the order in which they are shown.
        baseline: the row against which the others are held.
        reference_runs: by figure, the run that the others' figures must compare with: one of the baseline, or if it has
            none, the first shown.
        differs: by name of a run the part of its config that is not as in the first run of the baseline.
        order: the figure by which the rows are sorted.
        test: the test set of test.bleu, ...; None: the main one of each.
    """

    rows: Sequence[ComparisonRow]
    baseline: ComparisonRow
    reference_runs: Mapping[str, RunSummary]
    differs: Mapping[str, Mapping[str, object]]
    order: str | None = None
    test: str | None = None

    @property
    def runs(self) -> list[RunSummary]:
        return [run for row in self.rows for run in row.runs]

    @property
    def main_test_metrics(self) -> list[str]:
        """The metrics of test sets that stand in a table."""
        specs = [TASK_SPECS[task] for task in dict.fromkeys(run.task for run in self.runs) if task in TASK_SPECS]
        return list(dict.fromkeys(f"test.{name}" for spec in specs for name in spec.figures))

    def is_comparable(self, run: RunSummary, name: str) -> bool:
        """Whether a figure of the run can be compared with that of the baseline."""
        return _comparable_signature(name, run) == _comparable_signature(name, self.reference_runs[name])

    def is_row_comparable(self, row: ComparisonRow, name: str) -> bool:
        """Whether a figure of all runs of a row, those that have it, can be compared with that of the baseline."""
        return all(self.is_comparable(run, name) for run in row.runs if name in run.figures)

    def config_differences(self, row: ComparisonRow) -> dict[str, object]:
        """The config of a row where it differs from the baseline; for several seeds without the seed."""
        has_several_seeds = len(row.runs) > 1 or len(self.baseline.runs) > 1
        return {
            key: value
            for key, value in self.differs[row.runs[0].name].items()
            if key != "seed" or not has_several_seeds
        }

    @property
    def notes(self) -> list[str]:
        """Notes on figures that are left out, or do not compare, in words."""
        by_test = self.test != VALIDATION_TEST_NAME and (self.order or "").startswith("test.")
        remarks = [SORTED_BY_TEST_MESSAGE.format(self.order)] if by_test else []
        remarks += [f"{run.name}: {note}" for run in self.runs for note in run.notes]
        remarks += duplicate_seed_reasons(self.runs)
        for row in self.rows:
            runs_without: dict[str, list[str]] = {}
            for name in dict.fromkeys(name for run in row.runs for name in run.figures):
                if run_names := row.runs_without(name):
                    runs_without.setdefault(format_names(run_names), []).append(name)
                if (reason := row.no_mean_reason(name)) is not None:
                    remarks.append(f"{row.name}: {name}: {reason}")
            remarks += [
                f"{row.name}: {', '.join(names)}: the mean is without {runs}" for runs, names in runs_without.items()
            ]
        for run in self.runs:
            reasons: dict[tuple[str, str], list[str]] = {}
            for name in run.figures:
                if not self.is_comparable(run, name):
                    reference_run = self.reference_runs[name]
                    reason = describe_signature_difference(
                        _comparable_signature(name, run), _comparable_signature(name, reference_run)
                    )
                    reasons.setdefault((reference_run.name, reason), []).append(name)
            remarks += [
                f"{run.name}: {', '.join(n)}: not comparable with {o}: {reason}" for (o, reason), n in reasons.items()
            ]
        return remarks


def compare_runs(
    folders: Sequence[Path],
    sort: str | None = None,
    *,
    baseline: Path | None = None,
    test: str | None = None,
    group_runs: Callable[[Sequence[RunSummary]], list[ComparisonRow]] = group_by_seed,
) -> Comparison:
    """Compare the models in some folders, of runs or of models, each verified.

    Args:
        folders: of runs or models.
        sort: a figure by which rows are ordered, the best first, those without it last; loss for valid.loss, rouge1,
            which validation has not, for test.rouge1; None: as given.
        baseline: the folder of a run, which may be one of `folders`; None: the first of them.
        test: a test set, or VALIDATION_TEST_NAME; None: the main one.
        group_runs: groups the runs that share a row.

    Raises:
        DataError: a folder, which is named, holds no model.
        RecipeError: no run has the figure or test set.
    """
    paths = [path for path in folders if path.name != LEDGER] or list(folders)  # as runs/* has it
    if baseline is not None and _real_path(baseline) not in map(_real_path, paths):
        paths = [baseline, *paths]
    first_named = {_real_path(path): path for path in reversed(paths)}  # a run that is named twice is one
    paths = [path for path in dict.fromkeys(paths) if first_named[_real_path(path)] == path]
    names = [run_name(path) for path in paths]
    runs = [
        read_run(path, name if names.count(name) == 1 else str(path), test)
        for path, name in zip(paths, names, strict=True)
    ]
    if test is not None and not any(name.startswith("test.") for run in runs for name in run.figures):
        notes = "; ".join(f"{run.name} {note}" for run in runs for note in run.notes)
        raise RecipeError(f"--test {test}: no run was scored on it" + (f": {notes}" if notes else ""))
    base = next(
        run
        for run, path in zip(runs, paths, strict=True)
        if baseline is None or _real_path(baseline) == _real_path(path)
    )
    differs = {run.name: _differences_from(base.config, run.config) for run in runs}
    rows, order = group_runs(runs), None
    base_row = next(row for row in rows if base in row.runs)
    if sort is not None:
        order = match_metric_name(sort, list(dict.fromkeys(name for run in runs for name in run.figures)))
        rows = sort_rows(rows, order)
    reference_runs: dict[str, RunSummary] = {}
    for run in (base, *base_row.runs, *(run for row in rows for run in row.runs)):
        for figure in run.figures:
            reference_runs.setdefault(figure, run)
    return Comparison(rows, base_row, reference_runs, differs, order, test)


def _differences_from(base: Mapping[str, object], config: Mapping[str, object]) -> dict[str, object]:
    """The settings of a run, by dotted key, that are not as in another's.

    A key that one of them lacks is another version's, or of a stage that has not run; but none in place of a table, or
    a table in place of none, is a difference.
    """
    tables = {table for key in base for table in _tables_of(key)}

    def differs(key: str, value: object) -> bool:
        return base[key] != value if key in base else key in tables or any(table in base for table in _tables_of(key))

    return {key: value for key, value in config.items() if differs(key, value)}


def _tables_of(key: str) -> Iterator[str]:
    """The keys of the tables that a dotted key stands in."""
    parts = key.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def _real_path(folder: Path) -> str:
    """The real path of a run's model, which identifies the run; the folder is that of the run or the model's own."""
    return os.path.realpath(folder if (folder / "manifest.json").exists() else folder / "model")


def match_metric_name(text: str, names: Sequence[str]) -> str:
    """The figure of a name: its whole name or, without the part before the dot, one of validation first."""
    for name in (text, f"valid.{text}", f"test.{text}"):
        if name in names:
            return name
    raise RecipeError(f"--sort {text}: these runs have {', '.join(names)}")


def is_lower_better(name: str, runs: Sequence[RunSummary]) -> bool:
    """Whether the lower figure of a name is the better one; the signature of an external metric decides."""
    signatures = [run.figures[name].signature for run in runs if name in run.figures]
    return name in COST_FIGURES or any(lower_is_better(name.partition(".")[2], signature) for signature in signatures)


def sort_rows(rows: Sequence[ComparisonRow], name: str) -> list[ComparisonRow]:
    """Sort rows by (the mean of) a figure, best first; the sort is stable.

    Rows with a run without the figure are last, whatever the reason.
    """
    sign = 1 if is_lower_better(name, [run for row in rows for run in row.runs]) else -1

    def sort_key(row: ComparisonRow) -> tuple[bool, float]:
        value = row.mean(name)
        return (True, 0.0) if value is None or row.runs_without(name) else (False, sign * value)

    return sorted(rows, key=sort_key)


def _comparable_signature(name: str, run: RunSummary) -> tuple[str, ...]:
    return comparable_parts(name.partition(".")[2], run.figures[name].signature)
