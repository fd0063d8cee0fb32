"""The output of a bench: tables on stdout, progress on stderr, JSON into a file if asked."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench import compare
from bench.compare import Contestant, Figures
from tfm.cli.console import reporter
from tfm.pipeline.artifacts.provenance import git_commit, hardware, versions
from tfm.pipeline.runtime.progress import Reporter

Extra = Mapping[str, Mapping[str, object]]


def talk() -> Reporter:
    """Where a bench prints."""
    return reporter(tables_on_stdout=True)


def contest(
    title: str,
    contestants: Sequence[Contestant],
    *,
    rounds: int,
    unit: str,
    extra: Callable[[Mapping[str, Sequence[Figures]]], Extra] = lambda found: {},
    say_ratios: bool = True,
) -> list[dict[str, object]]:
    """Run the contestants in turn and print their table; what was found, as JSON.

    extra: further columns of the table, from the figures of all rounds.
    """
    out = talk()
    found = compare.alternate(contestants, rounds, out.line)
    summaries = compare.summaries(contestants, found)
    out.table(title, *compare.table(summaries, unit, extra(found)))
    if say_ratios:
        for sentence in compare.verdicts(summaries, unit):
            print(sentence)
    return compare.as_json(summaries, found)


def write_json(file: Path | None, bench: str, options: Mapping[str, object], found: object) -> None:
    """What a bench was asked and found, and on which machine, where a file was asked for."""
    if file is None:
        return
    where = {"hardware": hardware(), "versions": versions(), "commit": git_commit()}
    content = {"bench": bench, "options": dict(options), **where, "found": found}
    file.write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")
