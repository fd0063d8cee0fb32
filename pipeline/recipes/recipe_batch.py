"""Several recipes, or several seeds of one, in turn: all are read before the first starts; shared artifacts are made
once.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tfm.pipeline.artifacts.artifact import Manifest, Plan, open_artifact, publish, read_artifact, stale_reason
from tfm.pipeline.cluster.processes import choose_resources, run_jobs
from tfm.pipeline.cluster.session import connect_to_cluster
from tfm.pipeline.errors import DataError, RecipeError, StoppedError, TfmError
from tfm.pipeline.recipes import chain
from tfm.pipeline.recipes.recipe import Recipe, load_recipe
from tfm.pipeline.recipes.run_paths import RunPaths, cleaned_data_folder, run_folder
from tfm.pipeline.runtime.progress import Reporter

RUNS_FOLDER = Path("runs")


MAX_SEED = 2**32 - 1


def load_recipes(
    files: Sequence[Path],
    overrides: Sequence[str] = (),
    flags: Mapping[str, object | None] | None = None,
    seeds: Sequence[int] = (),
) -> list[Recipe]:
    """Return the recipes in some files, as `load_recipe` reads each.

    Args:
        files: the files.
        overrides: `--set` texts.
        flags: values by dotted key, None if not given.
        seeds: seeds, for each of which every file gives a recipe, called NAME-SEED; none: one recipe a file.

    Raises:
        RecipeError: two recipes have one name, or a seed is set beside `seeds`.
    """
    if seeds and (seed_settings := [each for each in overrides if each.partition("=")[0].strip() == "seed"]):
        raise RecipeError(f"--set {seed_settings[0]}: --seeds sets the seed of each run; use one of the two")
    recipes_by_name: dict[str, tuple[Path, Recipe]] = {}
    for file in files:
        recipe = load_recipe(file, overrides, flags)
        seed_flags = [{"seed": seed, "name": f"{recipe.name}-{seed}"} for seed in seeds]
        for variant in [load_recipe(file, overrides, {**(flags or {}), **each}) for each in seed_flags] or [recipe]:
            if variant.name in recipes_by_name:
                other_file = recipes_by_name[variant.name][0]
                raise RecipeError(
                    f'{other_file} and {file} have the same name, "{variant.name}": their runs would share one folder'
                )
            recipes_by_name[variant.name] = file, variant
    return [recipe for _, recipe in recipes_by_name.values()]


def parse_seeds(text: str) -> list[int]:
    """The seeds in a text such as "1,2,3". Raises RecipeError if it is no list of different seeds."""
    seeds = []
    for word in (each.strip() for each in text.split(",")):
        if not (word.isascii() and word.isdigit() and len(word) <= 10 and int(word) <= MAX_SEED):
            raise RecipeError(f"--seeds {text:.60}: {word!r:.20} is no whole number from 0 to {MAX_SEED}; write 1,2,3")
        if int(word) in seeds:
            raise RecipeError(f"--seeds {text:.60}: {int(word)} occurs twice, and both runs would be the same")
        seeds.append(int(word))
    return seeds


def run_recipes(
    recipes: Sequence[Recipe],
    *,
    keep_going: bool = False,
    root: Path = RUNS_FOLDER,
    command: Sequence[str],
    reporter: Reporter,
    only: Sequence[str] = tuple(chain.STAGES_BY_NAME),
    scores: Reporter | None = None,
) -> dict[str, Exception]:
    """Run each recipe as `chain.run` does, under its name.

    A tokenizer or dataset that an earlier run has, made by the same plan, is copied from there.

    Args:
        recipes: the recipes.
        keep_going: whether further recipes run after an error; else the first error is raised.
        root: the folder of all runs.
        command: the command line, for the manifests.
        reporter: receives messages.
        only: the stages that are run.
        scores: receives the scores of evaluation, if that is not `reporter`.

    Returns:
        The errors, by the name of the recipe that had them.

    Raises:
        StoppedError: in any case where the user stops a run.
    """
    errors: dict[str, Exception] = {}
    previous_runs: list[RunPaths] = []
    for number, recipe in enumerate(recipes, 1):
        if len(recipes) > 1:
            reporter.line(f"== {recipe.name} ({number} of {len(recipes)})")
        run_paths = RunPaths(run_folder(recipe, root))

        def copy_from_siblings(stage: str, recipe: Recipe = recipe, paths: RunPaths = run_paths) -> None:
            if previous_runs and (plan := plan_stage(recipe, stage, paths)) is not None:
                copy_same_artifact_of_other_run(
                    plan, [run.folder / plan.folder.name for run in previous_runs], command, reporter
                )

        try:
            chain.run_recipe_stages(
                recipe,
                root=root,
                command=command,
                reporter=reporter,
                on_stage=copy_from_siblings,
                only=only,
                scores=scores,
            )
        except (StoppedError, BrokenPipeError):
            raise
        except (TfmError, OSError) as error:
            if not keep_going:
                raise
            reporter.warn(f"{recipe.name} failed: {error_text(error)}")
            errors[recipe.name] = error
        previous_runs.append(run_paths)
    return errors


def run_recipes_on_cluster(
    recipes: Sequence[Recipe],
    address: str,
    *,
    keep_going: bool = False,
    root: Path = RUNS_FOLDER,
    command: Sequence[str],
    reporter: Reporter,
    only: Sequence[str] = tuple(chain.STAGES_BY_NAME),
    scores: Reporter | None = None,
) -> dict[str, Exception]:
    """Run each recipe as `run_recipes` does; this process makes what they share, and shows the scores.

    Args:
        recipes: the recipes.
        address: of the cluster, whose nodes have the folder of all runs under the same path.
        keep_going: whether further recipes run after an error; else the first error is raised.
        root: the folder of all runs.
        command: the command line, for the manifests.
        reporter: receives messages.
        only: the stages that are run.
        scores: receives the scores of evaluation, if that is not `reporter`.

    Returns:
        The errors, by the name of the recipe that had them.

    Raises:
        StoppedError: where the user stops the runs.
    """
    shared_stages = [stage for stage in only if stage in chain.SHARED_STAGES]
    recipe_errors = run_recipes(
        recipes, keep_going=keep_going, root=root, command=command, reporter=reporter, only=shared_stages
    )
    pieces = {
        recipe.name: partial(
            chain.run_recipe_stages,
            recipe,
            root=root,
            command=command,
            only=[each for each in only if each not in shared_stages],
        )
        for recipe in recipes
        if recipe.name not in recipe_errors
    }
    devices = {recipe.training.device for recipe in recipes}
    device = "cuda" if "cuda" in devices else "auto" if "auto" in devices else "cpu"
    with connect_to_cluster(address) as cluster, reporter.bar("runs", len(pieces), "runs") as bar:
        num_running = len(pieces)

        def show_running_recipes(running_names: list[str]) -> None:
            nonlocal num_running
            bar.advance(num_running - len(running_names), f"{', '.join(running_names[:8])}")
            num_running = len(running_names)

        resources = choose_resources(cluster, device)
        errors = run_jobs(
            cluster, pieces, resources, reporter=reporter, keep_going=keep_going, on_poll=show_running_recipes
        )
    for name, error in errors.items():
        if not keep_going or not isinstance(error, (TfmError, OSError)):
            raise error
        reporter.warn(f"{name} failed: {error_text(error)}")
    recipe_errors |= errors
    remaining = [recipe for recipe in recipes if recipe.name not in recipe_errors]
    run_recipes(remaining, root=root, command=command, reporter=reporter, only=only, scores=scores)
    return recipe_errors


def error_text(error: TfmError | OSError) -> str:
    """The text of an error that is caught here instead of at the end of the command."""
    if isinstance(error, OSError):
        return f"{error.filename2 or error.filename or 'a stream'}: {error.strerror or error}"
    return str(error)


def plan_stage(recipe: Recipe, stage: str, paths: RunPaths) -> Plan | None:
    """Return the plan of a stage with a result that runs can share; None if its inputs do not exist yet.

    Args:
        recipe: the recipe.
        stage: name of the stage.
        paths: the paths of the run.
    """
    clean_data = cleaned_data_folder(recipe, paths)
    if stage == "clean" and recipe.clean is not None:
        from tfm.pipeline.stages import clean

        return clean.plan_clean(recipe.clean, recipe.data, paths.clean)
    if stage == "tokenize":
        from tfm.pipeline.stages import tokenize

        return tokenize.plan_tokenizer(recipe.tokenizer, recipe.data, paths.tokenizer, clean_data)
    if stage == "preprocess":
        from tfm.pipeline.stages import preprocess

        return preprocess.plan_dataset(recipe.data, paths.tokenizer, paths.dataset, clean_data)
    return None


def copy_same_artifact_of_other_run(
    plan: Plan,
    folders: Sequence[Path],
    command: Sequence[str],
    reporter: Reporter,
    copy: Callable[[Path, Path], object] = shutil.copyfile,
) -> None:
    """Publish a copy of the first artifact of just this plan, unless it is made already.

    Args:
        plan: the plan.
        folders: in which the artifact may be.
        command: the command line, for the manifest.
        reporter: receives messages.
        copy: (from, to) copies a file.
    """
    if stale_reason(plan) is None:
        return
    for folder in folders:
        try:
            manifest = open_artifact(folder)
        except DataError:
            continue  # not made, or damaged
        if stale_reason(replace(plan, folder=folder)) is None:
            with publish(plan, command=command) as draft:
                read_artifact(folder, partial(copy_files, into=draft.folder, copy=copy), must_match=manifest.as_input())
                draft.figures.update(manifest.figures)
            reporter.line(f"{plan.folder.name}: copied from {folder}, which has the same settings and inputs")
            return


def copy_files(manifest: Manifest, into: Path, copy: Callable[[Path, Path], object]) -> None:
    """Copy the files of an artifact into a draft.

    Args:
        manifest: the manifest of the artifact.
        into: the folder of the draft.
        copy: (from, to) copies a file.
    """
    for name in manifest.files:
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        copy(manifest.folder / name, into / name)
