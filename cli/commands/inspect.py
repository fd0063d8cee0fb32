"""`tfm inspect`: verify an artifact, and show its kind and how it was made."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tfm.cli.streams import print_data, print_json

FINGERPRINT_CHARACTERS_SHOWN = 12
MAX_CHARACTERS_SHOWN = 60


def inspect(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="An artifact, or the folder of a run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Verify an artifact, and print its lineage back to the raw text.

    For the folder of a run: every artifact in it, verified, its training, trainings that were set aside, and sizes.
    """
    from tfm.pipeline.artifacts.artifact import inspect_artifact as inspect_artifact
    from tfm.pipeline.reports.run_folder import is_run_folder

    if is_run_folder(folder):
        _inspect_run(folder, as_json)
        return
    report = inspect_artifact(folder)
    if as_json:
        _print_json(report)
    else:
        _print_lines(describe_artifact(report))


def _inspect_run(folder: Path, as_json: bool) -> None:
    """Print the contents of a run. A damaged artifact in it is an error, raised after everything is printed."""
    from tfm.pipeline.errors import DataError
    from tfm.pipeline.reports import run_folder

    parts = run_folder.describe_run(folder)
    report = run_folder.run_parts_as_json(folder, parts)
    if as_json:
        _print_json(report)
    else:
        _print_lines(_describe_run(report))
    damaged_parts = [each.name for each in parts if each.kind == run_folder.DAMAGED_STATUS]
    if damaged_parts:
        raise DataError(f"damaged: {', '.join(damaged_parts)}; make them again", file=folder)


def _describe_run(report: Mapping[str, Any]) -> Iterator[str]:
    """A run as text: one row for each folder, with its problem or the process that is writing it."""
    from tfm.cli.console import table_lines
    from tfm.pipeline.errors import format_count

    yield f"{report['path']}: {format_count(report['bytes'], 'byte')}"
    rows = []
    for part in report["parts"]:
        steps = f"checkpoints {', '.join(map(str, part['steps']))}" if part["steps"] else ""
        state = "; ".join(filter(None, (part["state"], steps, part["writer"] and f"{part['writer']} is writing it")))
        rows.append((part["name"], part["bytes"], part["made"] or "", state))
    yield from (f"  {line}" for line in table_lines(("part", "bytes", "made", "state"), rows))
    for part in report["parts"]:
        yield from (f"  {part['name']} would run: {command}" for command in part["commands"])
    for name, num_bytes in report["left_over"].items():
        size = format_count(num_bytes, "byte")
        yield f"  {name}: {size} of a draft or a replaced version, which the next run of its stage removes"


def _print_json(report: Mapping[str, Any]) -> None:
    print_json(report, indent=2)


def _print_lines(lines: Iterator[str]) -> None:
    from tfm.pipeline.errors import escape_unprintable

    print_data("\n".join(escape_unprintable(line) for line in lines))


def describe_artifact(report: Mapping[str, Any]) -> Iterator[str]:
    """The report as text: what was made and how, what it would run, its files, and the tree of its inputs."""
    from tfm.pipeline.errors import format_count
    from tfm.pipeline.scoring.evaluation.allowlist import external_metric_commands

    size = sum(entry["size"] for entry in report["files"].values())
    num_files = len(report["files"])
    seed = "" if report["seed"] is None else f", seed {report['seed']}"
    yield f"{report['path']}: whole; {format_count(num_files, 'file')}, {format_count(size, 'byte')}"
    yield f"  stage        {report['stage']}"
    yield f"  fingerprint  {report['fingerprint']}"
    yield f"  command      {shlex.join(report['command'])}"
    yield from (f"  would run    {command}" for command in external_metric_commands(report["config"]))
    yield f"  made         {report['created']}, in {report['duration_seconds']} s{seed}"
    yield f"  commit       {report['git_commit'] or 'unknown'}"
    for label in ("versions", "hardware", "figures"):
        yield from _labelled_value_lines(label, report[label])
    yield "lineage"
    yield f"  {report['stage']} {report['fingerprint'][:FINGERPRINT_CHARACTERS_SHOWN]}  {report['path']}"
    yield from _lineage_tree(report["inputs"], "  ", set())


def _labelled_value_lines(label: str, value: object) -> Iterator[str]:
    from tfm.pipeline.artifacts.canonical_json import flatten_keys

    if not isinstance(value, Mapping):
        yield f"  {label:<11}  {value}"
        return
    for number, (key, item) in enumerate(flatten_keys(value)):
        yield f"  {'' if number else label:<11}  {key} {f'{item:.6g}' if isinstance(item, float) else item}"


def _lineage_tree(inputs: Mapping[str, Any], indent: str, shown_fingerprints: set[str]) -> Iterator[str]:
    """The tree of inputs; an artifact already in the tree (`shown_fingerprints`) is not expanded again."""
    for number, (label, item) in enumerate(inputs.items(), 1):
        last = number == len(inputs)
        fingerprint, inputs_of_item = item["fingerprint"], item["lineage"].get("inputs", {})
        made_by = item["lineage"].get("stage")
        description = (
            f"{made_by} {fingerprint[:FINGERPRINT_CHARACTERS_SHOWN]}" if made_by else _short_fingerprint(fingerprint)
        )
        is_repeated = bool(inputs_of_item) and fingerprint in shown_fingerprints
        end = "  (as above)" if is_repeated else ""
        yield f"{indent}{'└─' if last else '├─'} {label}: {description}  {item['path'] or ''}".rstrip() + end
        if not is_repeated:
            shown_fingerprints.add(fingerprint)
            yield from _lineage_tree(inputs_of_item, f"{indent}{'   ' if last else '│  '}", shown_fingerprints)


def _short_fingerprint(fingerprint: str) -> str:
    """The fingerprint of an input that no stage made: a file's sha256, or a text that describes it."""
    if re.fullmatch("[0-9a-f]{64}", fingerprint):
        return f"sha256 {fingerprint[:FINGERPRINT_CHARACTERS_SHOWN]}"
    return fingerprint if len(fingerprint) <= MAX_CHARACTERS_SHOWN else f"{fingerprint[:MAX_CHARACTERS_SHOWN]}…"
