"""`python -m bench memory`: the peak memory of each stage of each task, by the lines of its text."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.options import Json

if TYPE_CHECKING:
    from bench.memory.stages import Stage

SIZES = (10_000, 100_000, 1_000_000)


def memory(
    lines: Annotated[
        list[int] | None, typer.Option("--lines", metavar="N", min=20, help="Lines of the text; may be repeated.")
    ] = None,
    tasks: Annotated[
        list[str] | None, typer.Option("--task", metavar="NAME", help="Only this task; may be repeated.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="STAGE", help="End each task with this stage: preprocess.")
    ] = None,
    updates: Annotated[int, typer.Option("--updates", metavar="N", min=1, help="Updates of each training.")] = 20,
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="Where to write; default: a temporary folder.")
    ] = None,
    json: Json = None,
) -> None:
    """Peak memory of each stage and task, by lines of text.

    The text has as many different words as real text, the networks one layer of width 32. Each command is a process of
    its own, whose peak the system tells: what was resident, mapped files with it. The last columns are what each
    further line adds, between the two largest sizes, and how much of that is no mapped file.
    """
    from bench.memory.recipes import RECIPES
    from bench.memory.stages import stages_of
    from bench.report import table_reporter, write_json

    for task in tasks or ():
        if task not in RECIPES:
            raise typer.BadParameter(f"{task}: one of {', '.join(RECIPES)}", param_hint="--task")
    chains = {task: list(chain_until(stages_of(task), until)) for task in tasks or RECIPES}
    if until is not None and not any(chain[-1].name == until for chain in chains.values()):
        names = dict.fromkeys(stage.name for task in chains for stage in stages_of(task))
        raise typer.BadParameter(f"{until}: one of {', '.join(names)}", param_hint="--until")
    sizes = sorted(lines or SIZES)
    results: list[dict[str, Any]] = []
    for size in sizes:
        with TemporaryDirectory(dir=folder) as temporary:
            results += measure_size(Path(temporary).resolve(), size, chains, updates)
    table_reporter().table("peak memory, MiB", columns(sizes), list(table_rows(results, sizes)))
    write_json(json, "memory", {"lines": sizes, "updates": updates, "tasks": list(chains)}, results)


def chain_until(stages: "Sequence[Stage]", until: str | None) -> "Iterator[Stage]":
    """The stages up to the one of this name."""
    for stage in stages:
        yield stage
        if stage.name == until:
            return


def measure_size(folder: Path, size: int, chains: "dict[str, list[Stage]]", updates: int) -> Iterator[dict[str, Any]]:
    """Measure the peak memory of each stage of each task for a text of so many lines."""
    from bench.memory.stages import measure_stage, write_recipes
    from bench.processes import MIB, run_module
    from bench.report import table_reporter

    run_module("bench.memory.text", {"folder": str(folder), "lines": size})
    write_recipes(folder, updates)
    for task, chain in chains.items():
        for stage in chain:
            figures = measure_stage(stage, folder)
            message = (
                f"{size:,} lines, {task}, {stage.name}: {figures['peak'] // MIB:,} MiB, {figures['seconds']:.0f} s"
            )
            table_reporter().line(message)
            yield {"task": task, "stage": stage.name, "lines": size, **figures}


def columns(sizes: Sequence[int]) -> list[str]:
    """The columns of the table."""
    growth = ["bytes a line", "not mapped"] if len(sizes) > 1 else []
    return ["stage", "task", *(f"{size:,} lines" for size in sizes), *growth]


def table_rows(results: Iterable[dict[str, Any]], sizes: Sequence[int]) -> Iterator[list[str]]:
    """A row for each stage of each task: its peak at each size, and what a further line adds."""
    from bench.processes import MIB

    by_stage: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for result in results:
        by_stage.setdefault((result["stage"], result["task"]), []).append(result)
    for (stage, task), figures in by_stage.items():
        growth = [f"{bytes_a_line(figures, key):,.0f}" for key in ("peak", "anonymous") if len(sizes) > 1]
        yield [stage, task.replace("_", " "), *(f"{each['peak'] / MIB:,.0f}" for each in figures), *growth]


def bytes_a_line(figures: Sequence[dict[str, Any]], key: str) -> float:
    """The memory that each line adds, between the two largest sizes."""
    previous, last = figures[-2:]
    return float((last[key] - previous[key]) / (last["lines"] - previous["lines"]))
