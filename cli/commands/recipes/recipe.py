"""`tfm recipe`: a recipe with all its defaults, or the JSON schema of all recipes."""

from pathlib import Path
from typing import Annotated

import typer

from tfm.cli.options import RecipeOverrides, reject_flags
from tfm.cli.streams import print_json


def recipe(
    file: Annotated[Path | None, typer.Argument(metavar="[RECIPE]", help="The recipe (TOML).")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of recipes.")] = False,
    sets: RecipeOverrides = None,
) -> None:
    """Print a recipe with all defaults filled in, as JSON."""
    if schema:
        reject_flags({"RECIPE": file, "--set": sets}, "not allowed with --schema, which is the same for all recipes")
    elif file is None:
        raise typer.BadParameter("give a recipe, or --schema", param_hint="RECIPE")
    from tfm.pipeline.recipes.recipe import load_recipe
    from tfm.pipeline.recipes.recipe import recipe_schema as recipe_schema

    content = recipe_schema() if file is None else load_recipe(file, sets or ()).model_dump(mode="json")
    print_json(content, indent=2)
