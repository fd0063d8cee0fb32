"""`python -m bench plan`: the costs of a training that `tfm plan` predicts, and its real costs."""

import json as jsons
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from bench.options import Json


@dataclass(frozen=True)
class PlannedTraining:
    """A training as it was planned, and as it was.

    Args:
        recipe: its file.
        planned_seconds: from the start to the end of the command.
        seconds: the same, measured.
        planned_bytes: the most memory that is resident, of all its processes.
        peak: the same, measured.
        planned_updates: the number of updates.
        updates: the same, counted.
    """

    recipe: str
    planned_seconds: float
    seconds: float
    planned_bytes: float
    peak: float
    planned_updates: int
    updates: int


def plan(
    recipes: Annotated[list[Path], typer.Argument(metavar="RECIPE...", help="Recipes (TOML), as for tfm run.")],
    updates: Annotated[int, typer.Option("--updates", metavar="N", min=1, help="Updates of each training.")] = 300,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one value of all recipes.")
    ] = None,
    json: Json = None,
) -> None:
    """Time and memory of trainings, as `tfm plan` predicts them.

    Each recipe's vocabulary and dataset are made in runs/NAME as `tfm run` makes them; then its training is planned,
    and done in a temporary folder.
    """
    from bench.report import table_reporter, write_json

    words = [word for each in (*(sets or ()), f"training.max_steps={updates}") for word in ("--set", each)]
    trainings = [plan_and_train(recipe, words) for recipe in recipes]
    table_reporter().table(
        "planned and measured", ["recipe", "seconds", "", "", "MB", "", "", "updates", ""], rows(trainings)
    )
    write_json(json, "plan", {"updates": updates, "set": sets}, [asdict(each) for each in trainings])


def plan_and_train(recipe: Path, words: Sequence[str]) -> PlannedTraining:
    """Plan a training, and do it."""
    from bench.processes import TFM, run, run_tfm
    from tfm.pipeline.runtime.process_memory import TreeMemoryWatch

    for stage in ("tokenize", "preprocess"):
        run_tfm(stage, "--recipe", recipe)
    plan = jsons.loads(run_tfm("plan", recipe, "--json", *words).out)
    with TemporaryDirectory() as folder:
        watches: list[TreeMemoryWatch] = []

        def watch(process_id: int) -> None:
            watches.append(TreeMemoryWatch(process_id))
            watches[0].start()

        process = run([*TFM, "train", "--recipe", recipe, *words, "--out", folder], on_start=watch)
        lines = (Path(folder) / "training" / "metrics.jsonl").read_text("utf-8").splitlines()
    steps = [each["step"] for each in map(jsons.loads, lines) if "step" in each]
    return PlannedTraining(
        str(recipe),
        plan["total_seconds"],
        process.seconds,
        plan["total_memory"],
        max(process.peak, watches[0].stop()),
        plan["corpus"]["updates"],
        max(steps),
    )


def rows(trainings: Sequence[PlannedTraining]) -> list[list[str]]:
    """Rows of the table: planned, measured and their ratio."""
    return [
        [
            Path(training.recipe).stem,
            *(
                f"{training.planned_seconds:.1f}",
                f"{training.seconds:.1f}",
                f"{training.planned_seconds / training.seconds:.2f}",
            ),
            *(
                f"{training.planned_bytes / 1e6:.0f}",
                f"{training.peak / 1e6:.0f}",
                f"{training.planned_bytes / training.peak:.2f}",
            ),
            *(f"{training.planned_updates:,}", f"{training.updates:,}"),
        ]
        for training in trainings
    ]
