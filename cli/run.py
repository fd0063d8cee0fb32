"""`tfm run`: a recipe's five stages in one command."""

from pathlib import Path
from typing import Annotated

import typer

from cli.options import Device, Sets, argv


def run(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="The recipe (TOML).")],
    device: Device = None,
    sets: Sets = None,
) -> None:
    """Run the five stages of a recipe; those that are fresh are skipped."""
    from cli.console import reporter
    from pipeline.chain import run as run_stages
    from pipeline.recipe import load_recipe

    run_stages(
        load_recipe(recipe, sets or (), {"training.device": device}),
        command=argv(),
        reporter=reporter(),
    )
