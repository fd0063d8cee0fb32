"""A whole recipe: its stages in order; stages that are up to date are skipped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.external_metric import missing_command_warnings
from tfm.pipeline.model_io.shortlist_folder import shortlist_inputs
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.recipes.run_paths import RunPaths, cleaned_data_folder, get_run_paths
from tfm.pipeline.recipes.unused_keys.stale_artifacts import stale_artifact_problem
from tfm.pipeline.runtime.process_memory import trim_heap
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.runtime.torchrun import run_with_shared_outcome
from tfm.pipeline.scoring.metrics.wordnet import check_wordnet_folder, wordnet_folder
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.training.trackers.tracker import TrackedRun


@dataclass(frozen=True)
class StageJob:
    """One stage to be run: its recipe, the paths of the run, the folder of the result, and the command.

    cluster: the address of a cluster that does the work of clean, preprocess and translate; None for this process
        alone.
    """

    recipe: Recipe
    run: RunPaths
    out: Path
    command: Sequence[str]
    reporter: Reporter
    cluster: str | None = None


def _run_clean(job: StageJob) -> None:
    from tfm.pipeline.stages.clean import clean

    recipe = job.recipe
    assert recipe.clean is not None  # ensured by `stages_of_recipe`
    clean(
        recipe.clean,
        recipe.data,
        job.out,
        command=job.command,
        reporter=job.reporter,
        device=recipe.training.device,
        cluster=job.cluster,
    )


def _run_tokenize(job: StageJob) -> None:
    from tfm.pipeline.stages.tokenize import tokenize

    recipe, clean = job.recipe, cleaned_data_folder(job.recipe, job.run)
    tokenize(recipe.tokenizer, recipe.data, job.out, clean=clean, command=job.command, reporter=job.reporter)


def _run_preprocess(job: StageJob) -> None:
    from tfm.pipeline.stages.preprocess import preprocess

    preprocess(
        job.recipe.data,
        job.run.tokenizer,
        job.out,
        clean=cleaned_data_folder(job.recipe, job.run),
        command=job.command,
        reporter=job.reporter,
        cluster=job.cluster,
    )


def _run_train(job: StageJob) -> None:
    from tfm.pipeline.stages.train import train

    train(
        job.recipe.training,
        job.recipe.model,
        job.recipe.decoding,
        job.run.dataset,
        job.out,
        seed=job.recipe.seed,
        evaluation=job.recipe.evaluation,
        command=job.command,
        reporter=job.reporter,
    )


def _run_translate(job: StageJob) -> None:
    from tfm.pipeline.stages.translate import translate_tests

    translate_tests(
        job.run.model,
        job.run.dataset,
        job.recipe.decoding,
        job.out,
        seed=job.recipe.seed,
        command=job.command,
        reporter=job.reporter,
        device=job.recipe.training.device,
        eval_split=job.run.eval_split,
        cluster=job.cluster,
    )


def _run_evaluate(job: StageJob) -> None:
    from tfm.pipeline.stages.evaluate import evaluate_tests

    evaluate_tests(
        job.run.model,
        job.run.dataset,
        job.run.translations if "translate" in stages_of_recipe(job.recipe) else None,
        job.run.training,
        job.recipe.evaluation,
        job.out,
        seed=job.recipe.seed,
        command=job.command,
        reporter=job.reporter,
        device=job.recipe.training.device,
        eval_split=job.run.eval_split,
    )
    if names := job.recipe.training.trackers:
        from tfm.pipeline.training.trackers.services import track_scores  # here, as few recipes name one

        run = TrackedRun(job.run.folder, {}, {})
        track_scores(names, run, open_artifact(job.out, "evaluate"), job.reporter)


def _run_synthesize(job: StageJob) -> None:
    from tfm.pipeline.stages.synthesize import synthesize

    recipe = job.recipe
    assert recipe.synthesis is not None  # ensured by `stages_of_recipe`
    synthesize(
        recipe.synthesis,
        job.run.model,
        job.out,
        command=job.command,
        reporter=job.reporter,
        device=recipe.training.device,
        cluster=job.cluster,
    )


@dataclass(frozen=True)
class Stage:
    """A stage: the function that runs it, the folder of a `RunPaths` it makes, and those it reads with the stage that
    makes each.
    """

    work: Callable[[StageJob], None]
    makes: str
    reads: dict[str, str]


# Each stage is imported when it is run: those before it need not wait for torch.
STAGES_BY_NAME = {
    "clean": Stage(_run_clean, "clean", {}),
    "tokenize": Stage(_run_tokenize, "tokenizer", {"clean": "clean"}),
    "preprocess": Stage(_run_preprocess, "dataset", {"clean": "clean", "tokenizer": "tokenize"}),
    "train": Stage(_run_train, "model", {"dataset": "preprocess"}),
    "translate": Stage(_run_translate, "translations", {"model": "train", "dataset": "preprocess"}),
    "evaluate": Stage(
        _run_evaluate, "scores", {"model": "train", "dataset": "preprocess", "translations": "translate"}
    ),
    "synthesize": Stage(_run_synthesize, "synthetic", {"model": "train"}),
}


SHARED_STAGES = ("clean", "tokenize", "preprocess")
"""Stages without the recipe's seed, whose results runs may share."""


def stages_of_recipe(recipe: Recipe) -> list[str]:
    """The stages of a recipe, in order. A task without hypotheses has nothing to translate; [clean] and [synthesis] may
    be missing.
    """
    absent_stages = set() if TASK_SPECS[recipe.model.task].gives_hypotheses else {"translate"}
    absent_stages |= {"clean"} if recipe.clean is None else set()
    absent_stages |= {"synthesize"} if recipe.synthesis is None else set()
    return [stage for stage in STAGES_BY_NAME if stage not in absent_stages]


def run_recipe_stages(
    recipe: Recipe,
    *,
    root: Path = Path("runs"),
    command: Sequence[str],
    reporter: Reporter,
    on_stage: Callable[[str], None] = lambda stage: None,
    only: Sequence[str] = tuple(STAGES_BY_NAME),
    scores: Reporter | None = None,
) -> RunPaths:
    """Run the recipe's stages, in order, in root/NAME; each reports whether it is fresh or why it runs.

    If torchrun started several processes, all train, and the first alone does all else.

    Args:
        recipe: the recipe.
        root: the folder of all runs.
        command: the command line, for the manifests.
        reporter: receives messages.
        on_stage: called with the name of each stage before it runs.
        only: the stages that are run.
        scores: receives the scores of evaluation, if that is not `reporter`.
    """
    if folder := wordnet_folder(recipe.evaluation):
        check_wordnet_folder(folder)  # evaluation needs it, hours later
    if "translate" in only:
        shortlist_inputs(recipe.decoding)  # translation needs it, hours later
        if recipe.decoding.precision == "int8" and not get_run_paths(recipe, root).translations.exists():
            from tfm.pipeline.runtime.devices import decoding_precision, resolve_device  # here, as it loads torch

            decoding_precision(recipe.decoding.precision, resolve_device(recipe.training.device))
    if "train" in only and recipe.training.init_from is not None:
        from tfm.pipeline.training.init_from import check_starting_model  # here, as few recipes start from a model

        check_starting_model(recipe.training.init_from, recipe.model, recipe.data.images)
    if "synthesize" in only and recipe.synthesis is not None:
        from tfm.pipeline.synthesis.recipe_check import check_synthesis_inputs  # here, as few recipes have it

        check_synthesis_inputs(recipe.synthesis, get_run_paths(recipe, root).folder)
    if "evaluate" in only:
        for warning in missing_command_warnings(recipe.evaluation.external):
            reporter.warn(warning)
    for number, stage in enumerate(plan := [each for each in stages_of_recipe(recipe) if each in only], start=1):
        reporter.line(f"[{number}/{len(plan)}] {stage}")

        def run_one_stage(stage: str = stage) -> None:
            on_stage(stage)
            stage_reporter = scores if stage == "evaluate" and scores is not None else reporter
            run_stage(recipe, stage, root=root, command=command, reporter=stage_reporter)
            trim_heap()  # what models of [clean] scored with is not the training's

        run_with_shared_outcome(run_one_stage, on_all_ranks=stage == "train")
    return get_run_paths(recipe, root)


def run_stage(
    recipe: Recipe,
    stage: str,
    *,
    root: Path = Path("runs"),
    out: Path | None = None,
    command: Sequence[str],
    reporter: Reporter,
    cluster: str | None = None,
) -> None:
    """Run one stage of the recipe on the artifacts in root/NAME.

    Args:
        recipe: the recipe.
        stage: name of the stage.
        root: the folder of all runs.
        out: the folder of its own artifact, instead of the run's (train: the folder that gets training/ and model/).
        command: the command line, for the manifest.
        reporter: receives messages.
        cluster: the address of a cluster that does the work of clean, preprocess and translate; None for this process
            alone.

    Raises:
        DataError: a stage before it has not been run.
        RecipeError: the task of the model has no such stage.
    """
    run = get_run_paths(recipe, root)
    if stage == "clean" and recipe.clean is None:
        raise RecipeError("the recipe has no [clean]: add it, with the rules that training pairs must pass")
    if stage == "synthesize" and recipe.synthesis is None:
        raise RecipeError("the recipe has no [synthesis]: add it, with the text that is translated")
    if stage not in stages_of_recipe(recipe):
        raise RecipeError(f'model.task = "{recipe.model.task}" has no stage `tfm {stage}`')
    for name, maker in STAGES_BY_NAME[stage].reads.items():
        folder: Path = getattr(run, name)
        if maker in stages_of_recipe(recipe) and not folder.exists():
            raise DataError(f"not made yet: run `tfm {maker}` with the same recipe", file=folder)
        if (problem := stale_artifact_problem(recipe, folder, maker)) is not None:
            reporter.warn(problem)
    if out is None:
        out = run.folder if stage == "train" else getattr(run, STAGES_BY_NAME[stage].makes)
    STAGES_BY_NAME[stage].work(StageJob(recipe, run, out, command, reporter, cluster))
