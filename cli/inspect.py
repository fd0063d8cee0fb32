"""`tfm inspect`: is an artifact whole, what is it, and where does it come from?"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

SHOWN_OF_FINGERPRINT = 12
MOST_SHOWN = 60


def inspect(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="An artifact: the folder that a stage made.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print all that is known, as JSON.")] = False,
) -> None:
    """Verify an artifact, and print its lineage back to the raw text."""
    from pipeline.artifact import inspect as inspect_artifact
    from pipeline.errors import printable

    report = inspect_artifact(folder)
    if as_json:
        text = json.dumps(report, ensure_ascii=False, indent=2)
        print(text.encode(errors="backslashreplace").decode())  # JSON spells what is no character in the same way
    else:
        print("\n".join(printable(line) for line in lines(report)))


def lines(report: Mapping[str, Any]) -> Iterator[str]:
    """The report for people: what was made and how, its files, and the tree of what it was made from."""
    size = sum(entry["size"] for entry in report["files"].values())
    num_files = len(report["files"])
    seed = "" if report["seed"] is None else f", seed {report['seed']}"
    yield f"{report['path']}: whole; {num_files} file{'s' if num_files != 1 else ''}, {size:,} bytes"
    yield f"  stage        {report['stage']}"
    yield f"  fingerprint  {report['fingerprint']}"
    yield f"  command      {shlex.join(report['command'])}"
    yield f"  made         {report['created']}, in {report['duration_seconds']} s{seed}"
    yield f"  commit       {report['git_commit'] or 'unknown'}"
    for label in ("versions", "hardware", "figures"):
        yield from _named_values(label, report[label])
    yield "lineage"
    yield f"  {report['stage']} {report['fingerprint'][:SHOWN_OF_FINGERPRINT]}  {report['path']}"
    yield from _tree(report["inputs"], "  ", set())


def _named_values(label: str, value: object) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"  {label:<11}  {value}"
        return
    for number, line in enumerate(_flat(value)):
        yield f"  {'' if number else label:<11}  {line}"


def _flat(value: Mapping[str, Any], key: str = "") -> Iterator[str]:
    for name, each in value.items():
        if isinstance(each, Mapping):
            yield from _flat(each, f"{key}{name}.")
        else:
            yield f"{key}{name} {f'{each:.6g}' if isinstance(each, float) else each}"


def _tree(inputs: Mapping[str, Any], indent: str, shown: set[str]) -> Iterator[str]:
    """What something was made from; what stands in the tree already (`shown`) is not unfolded again."""
    for number, (label, each) in enumerate(inputs.items(), 1):
        last = number == len(inputs)
        fingerprint, below = each["fingerprint"], each["lineage"].get("inputs", {})
        made_by = each["lineage"].get("stage")
        what = f"{made_by} {fingerprint[:SHOWN_OF_FINGERPRINT]}" if made_by else _given(fingerprint)
        again = bool(below) and fingerprint in shown
        end = "  (as above)" if again else ""
        yield f"{indent}{'└─' if last else '├─'} {label}: {what}  {each['path'] or ''}".rstrip() + end
        if not again:
            shown.add(fingerprint)
            yield from _tree(below, f"{indent}{'   ' if last else '│  '}", shown)


def _given(fingerprint: str) -> str:
    """The fingerprint of what no stage made: a file's sha256, or a text that says all about it."""
    if re.fullmatch("[0-9a-f]{64}", fingerprint):
        return f"sha256 {fingerprint[:SHOWN_OF_FINGERPRINT]}"
    return fingerprint if len(fingerprint) <= MOST_SHOWN else f"{fingerprint[:MOST_SHOWN]}…"
