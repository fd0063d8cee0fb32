"""`tfm run`: the five stages of one or several recipes, or seeds of one, in one command."""

from pathlib import Path
from typing import Annotated

import typer

from tfm.cli.options import IO_ERROR, Device, Sets, argv
from tfm.pipeline.errors import TfmError


def run(
    recipes: Annotated[
        list[Path], typer.Argument(metavar="RECIPE...", help="The recipe (TOML); several are run one after another.")
    ],
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going", help="If a recipe fails, continue with the next; the exit code is that of the first error."
        ),
    ] = False,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", metavar="N,N,...", help="Run each recipe with each of these seeds, as NAME-N."),
    ] = None,
    device: Device = None,
    sets: Sets = None,
) -> None:
    """Run the five stages of a recipe; stages that are up to date are skipped."""
    from tfm.cli.console import reporter
    from tfm.pipeline.recipes.several_recipes import load_recipes, run_recipes, seeds_of

    several = () if seeds is None else seeds_of(seeds)
    loaded = load_recipes(recipes, sets or (), {"training.device": device}, several)
    failed = run_recipes(loaded, keep_going=keep_going, command=argv(), reporter=reporter())
    if failed:
        error = TfmError(f"{len(failed)} of {len(loaded)} recipes failed: {', '.join(failed)}")
        error.exit_code = getattr(next(iter(failed.values())), "exit_code", IO_ERROR)
        raise error
