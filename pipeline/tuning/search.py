"""A search from its file to its results: opened, worked on, published as an artifact, and its best trial finished."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfm.data.errors import format_count
from tfm.pipeline.artifacts.artifact import Input, Plan, open_artifact, publish, stale_reason
from tfm.pipeline.artifacts.canonical_json import to_jsonable
from tfm.pipeline.artifacts.files import convert_os_errors
from tfm.pipeline.artifacts.no_symlinks import check_tree_has_no_symlinks, remove_path_below
from tfm.pipeline.errors import DataError, RecipeError, WriteError
from tfm.pipeline.recipes import chain
from tfm.pipeline.recipes.cross_validation import bleu_tokenizers_problem, empty_fold_problem
from tfm.pipeline.recipes.final_evaluation.candidates import read_candidate
from tfm.pipeline.recipes.final_evaluation.final_scores import (
    check_tests_unused,
    is_already_evaluated,
    score_tests_once,
)
from tfm.pipeline.recipes.final_evaluation.seed_scores import joint_fingerprint
from tfm.pipeline.recipes.recipe import Recipe, load_recipe
from tfm.pipeline.recipes.recipe_batch import plan_stage
from tfm.pipeline.recipes.run_paths import RunPaths
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.stages import train
from tfm.pipeline.tuning.checks.inputs import check_inputs_unchanged
from tfm.pipeline.tuning.checks.keys import check_keys
from tfm.pipeline.tuning.config import SearchConfig, load_search
from tfm.pipeline.tuning.journal import hold_lock
from tfm.pipeline.tuning.report import search_page
from tfm.pipeline.tuning.results import SearchResults, summarize_trials
from tfm.pipeline.tuning.samplers.registry import check_method
from tfm.pipeline.tuning.space import make_parameters
from tfm.pipeline.tuning.study import Trials
from tfm.pipeline.tuning.study_opening import open_trials
from tfm.pipeline.tuning.trial import make_run_recipes, make_trial_recipe


@dataclass(frozen=True)
class Search:
    """A search that is open: its trials, the recipe that they vary, and the settings over it on the command line."""

    config: SearchConfig
    trials: Trials
    base: Path
    sets: Sequence[str]
    about: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        return self.trials.folder


def open_search(
    file: Path,
    sets: Sequence[str] = (),
    url: str | None = None,
    root: Path = Path("runs"),
    folds: int | None = None,
    *,
    create: bool = True,
) -> Search:
    """The search that a file describes, begun or gone on with.

    Args:
        file: has [search].
        sets: `--set` texts for the base recipe.
        url: the database of the trials; None: a journal in the folder of the search.
        root: where that folder lies.
        folds: in place of the file's, if given.
        create: whether a search that is not begun is; else it has no trials, and nothing is written.

    Raises:
        RecipeError: the file describes a space that cannot be searched.
        DataError: the folder holds another search.
    """
    config = load_search(file)
    config = config if folds is None else config.model_copy(update={"folds": folds})
    base = file.parent / config.base
    recipe = load_recipe(base, sets)
    if config.metric == "bleu" and not recipe.training.validation.bleu:
        raise RecipeError(f'{file}: search.metric = "bleu" needs training.validation.bleu = true in {base}')
    load_recipe(base, sets, {"training.early_stopping.metric": config.metric})  # its task may not have such a figure
    parameters = make_parameters(config.space)
    check_keys(parameters, config, file, recipe)
    check_method(config, parameters)
    if config.folds is not None and recipe.data.fold is not None:
        raise RecipeError(f"{file}: search.folds = {config.folds} sets data.fold, which {base} has too: remove one")
    _check_folder_has_no_run(root / config.name)
    if create and config.folds is not None:
        _check_folds(recipe, config)
    settings = {
        **config.model_dump(mode="json", exclude={"name", "base", "trials", "hours", "updates", "keep"}),
        "recipe": recipe.model_dump(mode="json", exclude={"name"}),
    }
    trials = open_trials(config, settings, parameters, root / config.name, url, create=create)
    return Search(config, trials, base, sets, settings)


def _check_folds(recipe: Recipe, config: SearchConfig) -> None:
    """Raise DataError if a fold would be empty, or BLEU without a mean over folds; texts that cannot be read are
    left to the stage that reads them.
    """
    problem = None
    assert config.folds is not None
    with suppress(DataError, OSError):
        problem = empty_fold_problem(recipe.data, config.folds)
        if problem is None and config.metric == "bleu":
            problem = bleu_tokenizers_problem(recipe, config.folds)
    if problem is not None:
        raise DataError(problem)


def _check_folder_has_no_run(folder: Path) -> None:
    """Raise WriteError if the folder of a search already has a run with its artifacts."""
    artifacts = [each.makes for each in chain.STAGES_BY_NAME.values() if (folder / each.makes).exists()]
    if artifacts and not (folder / "trials").exists():
        raise WriteError(f"{folder}: holds a run ({', '.join(artifacts)}); give the search another name (search.name)")


def publish_results(search: Search, command: Sequence[str], reporter: Reporter) -> SearchResults:
    """Publish the results so far as the artifact search/: trials.json and report.html.

    Nothing is published of a search without a trial, or in a folder that is read-only.

    Args:
        search: the search.
        command: the command line, for the manifest.
        reporter: receives messages.
    """
    results = summarize_trials(search.trials)
    if not results.trials or not _is_writable(search.folder):
        reason = "is read-only" if results.trials else "has no trial yet"
        reporter.line(f"{search.folder}: {reason}, so that no report is written")
        return results
    plan = Plan(
        stage="search",
        folder=search.folder / "search",
        config=dict(search.about),
        inputs={"recipe": Input.from_file(search.base)},
        seed=search.config.seed,
    )
    with hold_lock(search.folder / ".publish.lock"):  # workers that end together
        results = summarize_trials(search.trials)
        with publish(plan, command=command) as draft:
            text = json.dumps(results.as_json(), ensure_ascii=False, indent=1)
            (draft.folder / "trials.json").write_text(text + "\n", encoding="utf-8")
            (draft.folder / "report.html").write_text(
                search_page(search.config, make_parameters(search.config.space), results), encoding="utf-8"
            )
            draft.figures.update(trials=len(results.trials), best=None if results.best is None else results.best.value)
    reporter.line(f"report: {plan.folder / 'report.html'}")
    return results


def _is_writable(folder: Path) -> bool:
    """Return whether a folder is meant to be written: root may write one whose owner took away the permission."""
    return os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)


def _is_run_of_other_recipe(recipe: Recipe, run: RunPaths) -> bool:
    """Return whether a run is there, whole, and of other settings than a recipe."""
    try:
        manifest = open_artifact(run.model, "train")
        shared = [plan for stage in chain.SHARED_STAGES if (plan := plan_stage(recipe, stage, run)) is not None]
        settings = recipe.training, recipe.model, recipe.decoding
        plan = train.plan_model(*settings, run.dataset, run.folder, seed=recipe.seed, evaluation=recipe.evaluation)
    except DataError:
        return False
    return any(map(stale_reason, shared)) or (manifest.config, manifest.seed) != (to_jsonable(plan.config), plan.seed)


def describe_averaged_runs(config: SearchConfig) -> str:
    """Name the runs over which a trial's figure is the mean, in words; "" for a single run."""
    sizes = [(config.folds or 1, "fold"), (config.repeats, "seed")]
    counts = " and ".join(format_count(number, name) for number, name in sizes if number > 1)
    return f", the mean of {counts}" if counts else ""


def train_best(
    search: Search, command: Sequence[str], reporter: Reporter, *, allow_rescoring: bool = False
) -> list[Path]:
    """Make the best trial a whole run, NAME-final, beside the search, and score its tests; return the folders of the
    runs: with several seeds a configuration, NAME-final-SEED for each, whose tests are one look.

    Args:
        search: the search.
        command: the command line, for the manifests.
        reporter: receives messages.
        allow_rescoring: whether tests may be scored that were scored by --final before.

    Raises:
        DataError: no trial is finished.
        RecipeError: a ledger says that these tests were scored by --final before, and `allow_rescoring` is false.
    """
    results = summarize_trials(search.trials)
    if results.best is None:
        raise DataError("no trial is finished: there is no best one", file=search.folder)
    best = results.best
    mean = describe_averaged_runs(search.config)
    trial_count = format_count(results.num_trained, "trial")
    reason = f"{search.config.metric} {best.value:.4g} of validation{mean}, the best of {trial_count}"
    reporter.line(f"final: trial {best.number}, {search.config.metric} {best.value:.4f} of validation{mean}")
    sets = [*search.sets, 'evaluation.tests="final"']
    recipe = make_trial_recipe(search.trials, search.base, sets, best.configuration, f"{search.config.name}-final")
    check_inputs_unchanged(search.trials, recipe, best.configuration, search.base, search.sets)
    trial_folder = search.trials.trial_folder(best.number)
    recipes = make_run_recipes(recipe, None, search.config.repeats)
    root = search.folder.parent
    for run_recipe in recipes:
        suffix = run_recipe.name.removeprefix(recipe.name)  # the seed, where there are several
        if search.config.folds is None:  # else trained on all folds
            _copy_trial(trial_folder.with_name(f"{trial_folder.name}{suffix}"), root / run_recipe.name)
    if not allow_rescoring:
        _check_tests_before_training(recipes, root, command, reporter)
    for run_recipe in recipes:
        chain.run_recipe_stages(run_recipe, root=root, command=command, reporter=reporter)
    targets = [root / each.name for each in recipes]
    score_tests_once(
        targets,
        reason=reason,
        again=allow_rescoring,
        named_evaluation=recipe.evaluation,
        command=command,
        reporter=reporter,
        device=recipe.training.device,
    )
    return targets


def _check_tests_before_training(
    recipes: Sequence[Recipe], root: Path, command: Sequence[str], reporter: Reporter
) -> None:
    """Raise RecipeError if the tests of runs were scored by --final before, unless just these runs' were.

    Datasets, whose tests the ledger knows, are made for that; models, which may take hours, are not.
    """
    runs = [RunPaths(root / each.name) for each in recipes]
    has_other_model = any(map(_is_run_of_other_recipe, recipes, runs))
    for run in runs if has_other_model else ():  # before a model with scores in use is removed
        if run.model.exists():
            check_tests_unused(run, again=False)
    for recipe in recipes:
        chain.run_recipe_stages(recipe, root=root, command=command, reporter=reporter, only=chain.SHARED_STAGES)
    is_trained = not has_other_model and all(run.model.exists() for run in runs)
    if is_trained and _are_tests_scored(runs):
        return
    # a look that was entered before a scoring of all seeds was stopped is their own
    fingerprint = joint_fingerprint([run.folder for run in runs]) if is_trained and len(runs) > 1 else None
    check_tests_unused(runs[0], again=False, fingerprint=fingerprint)


def _are_tests_scored(runs: Sequence[RunPaths]) -> bool:
    """Return whether all runs have the scores of their tests, by their models of now."""
    try:
        return all(is_already_evaluated(read_candidate(run.folder), run) for run in runs)
    except DataError:
        return False  # of the validation split there are no scores, so of the tests none


def _copy_trial(trial: Path, target: Path) -> None:
    """Copy the artifacts of a trial to the folder of a run, where it has a model and the folder is not there yet."""
    if target.exists() or not (trial / "model").exists():
        return
    draft = target.with_name(f".{target.name}.draft")
    check_tree_has_no_symlinks(trial)
    with convert_os_errors(target):
        remove_path_below(draft.parent, draft)
        shutil.copytree(trial, draft)
        draft.rename(target)
