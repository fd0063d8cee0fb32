"""Several recipes, one after another: all are read before the first starts; shared artifacts are made once."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tfm.pipeline.artifacts.artifact import Manifest, Plan, open_artifact, publish, read_artifact, stale
from tfm.pipeline.errors import DataError, RecipeError, Stopped, TfmError
from tfm.pipeline.recipes import chain
from tfm.pipeline.recipes.chain import Run
from tfm.pipeline.recipes.recipe import Recipe, load_recipe, run_folder
from tfm.pipeline.runtime.progress import Reporter

ROOT = Path("runs")


def load_recipes(
    files: Sequence[Path], overrides: Sequence[str] = (), flags: Mapping[str, object | None] | None = None
) -> list[Recipe]:
    """The recipes in some files, as `load_recipe` reads each. Raises RecipeError where two have one name."""
    found: dict[str, tuple[Path, Recipe]] = {}
    for file in files:
        recipe = load_recipe(file, overrides, flags)
        if recipe.name in found:
            other = found[recipe.name][0]
            raise RecipeError(
                f'{other} and {file} have the same name, "{recipe.name}": their runs would share one folder'
            )
        found[recipe.name] = file, recipe
    return [recipe for _, recipe in found.values()]


def run_recipes(
    recipes: Sequence[Recipe],
    *,
    keep_going: bool = False,
    root: Path = ROOT,
    command: Sequence[str],
    reporter: Reporter,
) -> dict[str, Exception]:
    """Run each recipe as `chain.run` does, under its name; the errors, by the name of the recipe that had them.

    A tokenizer or dataset that an earlier run has, made by the same plan, is copied from there. Without keep_going the
    first error is raised. Raises Stopped in any case.
    """
    failed: dict[str, Exception] = {}
    earlier: list[Run] = []
    for number, recipe in enumerate(recipes, 1):
        if len(recipes) > 1:
            reporter.line(f"== {recipe.name} ({number} of {len(recipes)})")
        place = Run(run_folder(recipe, root))

        def share(stage: str, recipe: Recipe = recipe, place: Run = place) -> None:
            if earlier and (todo := plan_of(recipe, stage, place)) is not None:
                take_over(todo, [run.folder / todo.folder.name for run in earlier], command, reporter)

        try:
            chain.run(recipe, root=root, command=command, reporter=reporter, before=share)
        except (Stopped, BrokenPipeError):
            raise
        except (TfmError, OSError) as error:
            if not keep_going:
                raise
            reporter.warn(f"{recipe.name} failed: {in_words(error)}")
            failed[recipe.name] = error
        earlier.append(place)
    return failed


def in_words(error: TfmError | OSError) -> str:
    """The text of an error that is caught here and not where a command ends."""
    if isinstance(error, OSError):
        return f"{error.filename2 or error.filename or 'a stream'}: {error.strerror or error}"
    return str(error)


def plan_of(recipe: Recipe, stage: str, place: Run) -> Plan | None:
    """What a stage will make, where runs may share it and its inputs are there; else None."""
    if stage == "tokenize":
        from tfm.pipeline.stages import tokenize

        return tokenize.plan(recipe.tokenizer, recipe.data, place.tokenizer)
    if stage == "preprocess":
        from tfm.pipeline.stages import preprocess

        return preprocess.plan(recipe.data, place.tokenizer, place.dataset)
    return None


def take_over(todo: Plan, others: Sequence[Path], command: Sequence[str], reporter: Reporter) -> None:
    """Publish a copy of the first artifact of just this plan, where that is not made and one of `others` is it."""
    if stale(todo) is None:
        return
    for other in others:
        try:
            made = open_artifact(other)
        except DataError:
            continue  # not made, or damaged
        if stale(replace(todo, folder=other)) is None:
            with publish(todo, command=command) as draft:
                read_artifact(other, partial(copy_files, into=draft.folder), known=made.as_input())
                draft.figures.update(made.figures)
            reporter.line(f"{todo.folder.name}: copied from {other}, which has the same settings and inputs")
            return


def copy_files(made: Manifest, into: Path) -> None:
    """Copy the files of an artifact into a draft."""
    for name in made.files:
        copy = into / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made.folder / name, copy)
