"""The texts to judge: outputs of systems for one test set, from runs or from files of any toolkit."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tfm.data.errors import format_count
from tfm.pipeline.comparison.systems import NO_TRANSLATIONS_REASON, System, read_system, text_mismatch_reason
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.reports.run_summary import run_name
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.aligned_files import read_given_files
from tfm.pipeline.scoring.evaluation.line_pairs import misplaced_lines_warning
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.evaluation.written_pieces import hypothesis_form_warnings


def read_systems(
    runs: Sequence[Path],
    files: Mapping[str, Path],
    *,
    test: str | None = None,
    source: Path | None = None,
    references: Sequence[Path] = (),
    reporter: Reporter,
) -> list[System]:
    """Runs and then files (by the name of their system), each with the one test set to judge.

    test: the test set of the runs; None: the main one of the first. source, references: the files' own, without runs.
    Raises DataError if a run has no translations of it, or where the texts are not the same for all.
    """
    paths = _distinct_runs(runs)
    names = [run_name(path) for path in paths]
    systems = [
        _read_run(path, name if names.count(name) == 1 else str(path), test)
        for path, name in zip(paths, names, strict=True)
    ]
    if systems:
        test_name = next(iter(systems[0].tests))
        systems = [systems[0], *(_select_test(system, test_name) for system in systems[1:])]
        first = systems[0].tests[test_name]
        systems += [
            System(name, {test_name: _read_other_system(first, file, reporter)}) for name, file in files.items()
        ]
    elif source is not None:
        systems = _read_files(files, source, references, reporter)
    names = [system.name for system in systems]
    for name in names:
        if names.count(name) > 1:
            raise RecipeError(f"two systems are called {name}; give one another name with --system NAME=FILE")
    for system in systems[1:]:
        reason = text_mismatch_reason(judged_test_set(systems[0]), judged_test_set(system))
        if reason is not None:
            raise DataError(f"{system.name} cannot be judged beside {systems[0].name}: {reason}")
    for system in systems:
        segments = judged_test_set(system)
        if system.name in files and segments.references:
            for warning in _output_warnings(segments.hypotheses, segments.references[0]):
                reporter.warn(f"{system.name}: {warning}")
    return systems


def _output_warnings(hypotheses: Sequence[str], references: Sequence[str]) -> list[str]:
    """Warnings that judges would read pieces, marks or names, or texts of other lines."""
    moved = misplaced_lines_warning(hypotheses, references)
    return [*hypothesis_form_warnings(hypotheses, references), *([] if moved is None else [moved])]


def judged_test_set(system: System) -> Segments:
    """The one test set that a system was read with."""
    return next(iter(system.tests.values()))


def image_source_warning(system: System) -> str | None:
    """The warning that judges of captions see the names of images alone; None if sources are texts."""
    if not judged_test_set(system).sources_are_names:
        return None
    return "the sources are images, and judges are shown their names alone: send the images along"


def _distinct_runs(runs: Sequence[Path]) -> list[Path]:
    """The runs, each once, under the first of its names: by its folder, its model's, or a link."""
    by_place: dict[str, Path] = {}
    for run in runs:
        by_place.setdefault(os.path.realpath(_translations_folder(run)), run)
    return list(by_place.values())


def _translations_folder(run: Path) -> Path:
    return run.parent if run.name == "model" else run


def _read_run(path: Path, name: str, test: str | None) -> System:
    system = read_system(_translations_folder(path), name)
    if not system.tests:
        raise DataError(f"{NO_TRANSLATIONS_REASON}; `tfm translate --recipe` makes them", file=path)
    return system if test is None else _select_test(system, test)


def _select_test(system: System, test: str) -> System:
    if test not in system.tests:
        raise DataError(f"has no translations of a test set {test}; it has {', '.join(system.tests)}", file=system.name)
    return replace(system, tests={test: system.tests[test]})


def _read_other_system(first: Segments, file: Path, reporter: Reporter) -> Segments:
    """Another system's translations of the same sources."""
    lines = read_given_files({"hypotheses": file}, reporter)["hypotheses"]
    if len(lines) != len(first.hypotheses):
        raise DataError(
            f"has {format_count(len(lines), 'line')}, but the test set {first.name} has {len(first.hypotheses):,}",
            file=file,
        )
    return replace(first, hypotheses=lines)


def _read_files(
    files: Mapping[str, Path], source: Path, references: Sequence[Path], reporter: Reporter
) -> list[System]:
    reference_files = {f"reference {number}": file for number, file in enumerate(references, 1)}
    lines = read_given_files(
        {**{f"system {name}": file for name, file in files.items()}, **reference_files, "source": source}, reporter
    )
    columns = [lines[name] for name in reference_files]
    test = source.name
    return [System(name, {test: Segments(test, lines["source"], lines[f"system {name}"], columns)}) for name in files]
