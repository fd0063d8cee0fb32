"""`tfm plan`: the predicted costs of a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfm.cli.options import RecipeOverrides, reject_flags
from tfm.cli.streams import print_json

if TYPE_CHECKING:
    from tfm.pipeline.planning.run_plan import RunPlan

THIS_MACHINE = "this"
MAX_PAIRS, MAX_TOKENS, MAX_PRICE = 10**15, 1e9, 1e12


def plan(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="The recipe (TOML).")],
    on: Annotated[
        str,
        typer.Option("--on", metavar='this|"N x DEVICE"', help='Where: this machine (measured), or as in "8 x H100".'),
    ] = THIS_MACHINE,
    pairs: Annotated[
        int | None,
        typer.Option("--pairs", metavar="N", min=1, max=MAX_PAIRS, help="Rows of a corpus that is not here."),
    ] = None,
    tokens: Annotated[
        float | None,
        typer.Option(
            "--tokens", metavar="X", min=1, max=MAX_TOKENS, help="With --pairs: tokens of a side, on average."
        ),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option("--price", metavar="X", min=0, max=MAX_PRICE, help="Price of a device and hour."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
    sets: RecipeOverrides = None,
) -> None:
    """Say what a training will take: rows, updates, memory, operations, time, disk, energy and money.

    Rows and updates are counted from the run's dataset. On this machine time and memory are measured by a few updates;
    elsewhere they are computed from a table of devices.
    """
    if (pairs is None) != (tokens is None):
        raise typer.BadParameter("give both --pairs and --tokens, or none", param_hint="--pairs")
    if on == THIS_MACHINE:
        reject_flags({"--pairs": pairs}, "this machine measures updates of the run's own dataset: give --on")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.planning.corpus_size import (
        assume_corpus_and_vocabularies,
        count_corpus_and_vocabularies,
        mean_reference_length,
        stale_data_reason,
    )
    from tfm.pipeline.planning.devices import parse_devices
    from tfm.pipeline.planning.measurement import measure_short_training
    from tfm.pipeline.planning.run_plan import make_plan, with_starting_model
    from tfm.pipeline.recipes.recipe import load_recipe

    resolved = with_starting_model(load_recipe(recipe, sets or ()))
    devices = None if on == THIS_MACHINE else parse_devices(on)
    number, stale_data = 1 if devices is None else devices[0], None
    if pairs is not None and tokens is not None:
        corpus, *vocabularies = assume_corpus_and_vocabularies(resolved, pairs, tokens, number)
    else:
        corpus, *vocabularies = count_corpus_and_vocabularies(resolved, number)
        stale_data = stale_data_reason(resolved)
    if stale_data is not None:
        note = "the plan is that of the dataset on disk; `tfm tokenize` and `tfm preprocess` make it again"
        make_reporter().warn(f"{stale_data}: {note}")
    length = mean_reference_length(resolved) if devices is None else None
    measurement = None
    if devices is None:
        measurement = measure_short_training(recipe, sets or (), length, corpus.updates)
    vocabulary_pair = vocabularies[0], vocabularies[1]
    run_plan = make_plan(resolved, corpus, vocabulary_pair, devices, measurement, price=price, stale_data=stale_data)
    if as_json:
        print_json(run_plan.as_json(), indent=1)
        return
    reporter = make_reporter(tables_on_stdout=True)
    reporter.table(f"{run_plan.name} on {run_plan.on}", ["what", "figure"], plan_rows(run_plan))
    for assumption in run_plan.assumptions:
        make_reporter().line(f"assumed: {assumption}")
    for remedy in run_plan.remedies:
        make_reporter().warn(f"it does not fit: {remedy}")


def plan_rows(plan: "RunPlan") -> list[list[object]]:
    """The rows of the table of a plan."""
    corpus, giga = plan.corpus, 1e9
    rows: list[list[object]] = [
        ["rows an epoch", f"{corpus.rows:,}"],
        ["tokens an epoch, source", f"{corpus.source_tokens:,}"],
        ["tokens an epoch, target", f"{corpus.target_tokens:,}"],
        ["padding", f"{corpus.padding:.1%}"],
        ["updates, without early stopping", f"{corpus.updates:,}"],
        ["parameters", f"{plan.parameters:,}"],
        ["FLOP an update", f"{plan.flop_per_update:.3g}"],
    ]
    rows += [[f"memory, {name}", f"{size / giga:.2f} GB"] for name, size in plan.memory.items()]
    rows += [["memory of one device", f"{plan.total_memory / giga:.2f} of {plan.memory_limit / giga:.1f} GB"]]
    rows += [[f"time, {stage}", format_seconds(seconds)] for stage, seconds in plan.seconds.items()]
    rows += [[f"disk, {name}", f"{size / giga:.2f} GB"] for name, size in plan.disk.items()]
    rows += [] if plan.energy_kwh is None else [["energy of the devices, at most", f"{plan.energy_kwh:,.1f} kWh"]]
    return rows + ([] if plan.cost is None else [["price", f"{plan.cost:,.2f}"]])


def format_seconds(seconds: float) -> str:
    """Seconds as a reader takes them: 42 s, 5.1 min, 12.0 h, 3.5 days."""
    for size, unit in ((86400 * 2, "days"), (7200, "h"), (120, "min")):
        if seconds >= size:
            return f"{seconds / {'days': 86400, 'h': 3600, 'min': 60}[unit]:.1f} {unit}"
    return f"{seconds:.0f} s"
