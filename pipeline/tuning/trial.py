"""One trial of a search: an ordinary run of the base recipe with the trial's settings, up to its model.

The test sets are not touched. Whatever a configuration does in training is a result: that it diverges, does not fit in
memory, or cannot be built at all.
"""

import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from optuna.trial import TrialState

from tfm.data.errors import format_count
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.artifacts.files import convert_os_errors
from tfm.pipeline.artifacts.no_symlinks import make_folder_below, remove_path_below
from tfm.pipeline.errors import ComputationError, DataError, RecipeError
from tfm.pipeline.recipes.chain import SHARED_STAGES, run_stage, stages_of_recipe
from tfm.pipeline.recipes.cross_validation import leave_fold_out, no_mean_reason
from tfm.pipeline.recipes.recipe import Recipe, load_recipe
from tfm.pipeline.recipes.recipe_batch import copy_same_artifact_of_other_run, plan_stage
from tfm.pipeline.recipes.run_paths import RunPaths, run_folder
from tfm.pipeline.runtime.devices import resolve_device
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.stages.train import train
from tfm.pipeline.tuning.checks.inputs import check_base_recipe_unchanged, check_inputs_unchanged, varies_inputs
from tfm.pipeline.tuning.journal import hold_lock
from tfm.pipeline.tuning.space import Configuration, suggest_configuration
from tfm.pipeline.tuning.study import SEARCH_ATTR, ClaimedTrial, Trials, find_duplicate
from tfm.pipeline.tuning.trial_progress import TrialLog, TrialProgress, TrialPruned
from tfm.pipeline.tuning.trial_records import (
    CONFIGURATION_ATTR,
    DUPLICATE_OF_ATTR,
    WAITING_STATUS,
    WAITS_FOR_ATTR,
    describe_wait,
)

FINISHED_STATUS, PRUNED_STATUS, IMPOSSIBLE_STATUS, FAILED_STATUS = "finished", "pruned", "impossible", "failed"


TEXT_SIGNATURE_PARTS = ("nrefs", "count", "labels", "documents", "without-words", "blank")
"""Parts of signatures that say how many texts of which kind there are: they differ between folds, and between outputs,
and by all of them trials have the same folds."""


@dataclass(frozen=True)
class TrialOutcome:
    """The end of a trial: how it ended, the reason in words, and its figure of validation."""

    ended: str
    reason: str
    value: float | None

    @property
    def state(self) -> TrialState:
        return {FINISHED_STATUS: TrialState.COMPLETE, PRUNED_STATUS: TrialState.PRUNED}.get(self.ended, TrialState.FAIL)


def run_trial(
    trials: Trials,
    claimed_trial: ClaimedTrial,
    base: Path,
    sets: Sequence[str],
    *,
    command: Sequence[str],
    log: TrialLog,
) -> TrialOutcome:
    """Run a trial to its end and tell the study; of several seeds and folds the mean counts.

    A trial whose configuration another worker runs is left for when that has ended, as it then takes over its end.

    Args:
        trials: the trials of the search.
        claimed_trial: the trial.
        base: the base recipe.
        sets: `--set` texts.
        command: the command line, for the manifests.
        log: receives messages.

    Raises:
        StoppedError: the user stops the search; the trial then stays as it is, and the next worker goes on with it. The
            same holds for errors that have nothing to do with the configuration (no data, a full disk).
    """
    configuration = suggest_configuration(trials.parameters, claimed_trial.trial)
    claimed_trial.trial.set_user_attr(CONFIGURATION_ATTR, configuration)
    if (twin := trials.find_running_duplicate(claimed_trial.number, configuration)) is not None:
        claimed_trial.trial.set_user_attr(WAITS_FOR_ATTR, twin.number)
        return TrialOutcome(WAITING_STATUS, describe_wait(twin.number), None)
    if WAITS_FOR_ATTR in claimed_trial.earlier:
        claimed_trial.trial.set_user_attr(WAITS_FOR_ATTR, None)
    duplicate = find_duplicate(trials, claimed_trial.number, configuration)
    if duplicate is not None:
        claimed_trial.trial.set_user_attr(DUPLICATE_OF_ATTR, duplicate.number)
        status = str(duplicate.user_attrs.get("ended") or FINISHED_STATUS)
        outcome = TrialOutcome(status, f"the same configuration as trial {duplicate.number}", duplicate.value)
    else:
        outcome = _run_configuration(trials, claimed_trial, configuration, base, sets, command, log)
    claimed_trial.trial.set_user_attr("ended", outcome.ended)
    claimed_trial.trial.set_user_attr("reason", outcome.reason)
    trials.study.tell(
        claimed_trial.trial, outcome.value if outcome.ended == FINISHED_STATUS else None, state=outcome.state
    )
    remove_artifacts_of_worse_trials(trials)
    return outcome


def make_trial_recipe(
    trials: Trials, base: Path, sets: Sequence[str], configuration: Configuration, name: str, seed: int | None = None
) -> Recipe:
    """Return the base recipe with the settings of a configuration.

    Args:
        trials: the trials of the search.
        base: the base recipe.
        sets: `--set` texts.
        configuration: values of the keys that vary.
        name: name of the run.
        seed: the seed of the run; None for the recipe's own.

    Raises:
        DataError: the configuration, which the study keeps, sets a key that the search does not vary.
        RecipeError: the settings do not go together.
    """
    if unknown_keys := sorted(configuration.keys() - {parameter.key for parameter in trials.parameters}):
        raise DataError(f"a trial sets {unknown_keys[0]!r:.80}, which this search does not vary", file=trials.folder)
    flags: dict[str, object | None] = {**configuration, "name": name, "seed": seed}
    flags["training.early_stopping.metric"] = trials.config.metric
    return load_recipe(base, sets, flags)


def _run_configuration(
    trials: Trials,
    claimed_trial: ClaimedTrial,
    configuration: Configuration,
    base: Path,
    sets: Sequence[str],
    command: Sequence[str],
    log: TrialLog,
) -> TrialOutcome:
    """Train the configuration on each fold with each seed."""
    if SEARCH_ATTR in trials.study.user_attrs:
        check_base_recipe_unchanged(trials, base, sets)
    try:
        recipe = make_trial_recipe(trials, base, sets, configuration, claimed_trial.folder.name)
    except RecipeError as error:
        reason = str(error).splitlines()[0].removeprefix("flags: ")  # the configuration is given as those are
        return TrialOutcome(IMPOSSIBLE_STATUS, reason, None)
    check_inputs_unchanged(trials, recipe, configuration, base, sets)
    resolve_device(recipe.training.device)  # that it is not there is no fault of what is tried
    progress = TrialProgress(trials, claimed_trial)
    values: list[float] = []
    signatures: dict[str, str] = {}
    for number, run_recipe in enumerate(make_run_recipes(recipe, trials.config.folds, trials.config.repeats)):
        progress.start_run(run_recipe.name, is_first=number == 0)
        try:
            _prepare_dataset(trials, run_recipe, progress, command, log)
        except DataError as error:
            progress.record_cost(0)
            if varies_inputs(configuration):
                return TrialOutcome(IMPOSSIBLE_STATUS, str(error).splitlines()[0], None)
            raise  # no fault of what is tried
        try:
            value, signature = _train_trial(trials, run_recipe, progress, command, log)
            values.append(value)
            signatures[run_recipe.name] = signature_without_text_counts(signature)
        except TrialPruned:
            return TrialOutcome(
                PRUNED_STATUS, f"behind the others after {format_count(progress.updates, 'update')}", None
            )
        except RecipeError as error:  # what is seen only when the model is built
            return TrialOutcome(IMPOSSIBLE_STATUS, str(error).splitlines()[0], None)
        except ComputationError as error:
            return TrialOutcome(FAILED_STATUS, str(error).splitlines()[0], None)
        except DataError as error:
            if varies_inputs(configuration):
                return TrialOutcome(IMPOSSIBLE_STATUS, str(error).splitlines()[0], None)
            raise
        if (mean_problem := no_mean_reason(trials.config.metric, signatures)) is not None:
            raise DataError(mean_problem, file=trials.folder)  # no fault of what is tried
        if not math.isfinite(values[-1]):
            return TrialOutcome(FAILED_STATUS, f"its {trials.config.metric} of validation is {values[-1]}", None)
    claimed_trial.trial.set_user_attr("values", values)
    return TrialOutcome(FINISHED_STATUS, "", math.fsum(values) / len(values))


def signature_without_text_counts(signature: str) -> str:
    """A signature without what it counts of the texts of a fold."""
    return "|".join(part for part in signature.split("|") if part.partition(":")[0] not in TEXT_SIGNATURE_PARTS)


def make_run_recipes(recipe: Recipe, folds: int | None, repeats: int) -> list[Recipe]:
    """Return the recipes with which a configuration is trained: fold after fold, each with seed after seed.

    Args:
        recipe: the recipe of the configuration.
        folds: the number of folds; None for none.
        repeats: the number of seeds.
    """
    of_folds = [recipe] if folds is None else [leave_fold_out(recipe, number, folds) for number in range(1, folds + 1)]
    if repeats == 1:
        return of_folds
    seeds = range(recipe.seed, recipe.seed + repeats)
    return [
        fold_recipe.model_copy(update={"name": f"{fold_recipe.name}-{seed}", "seed": seed})
        for fold_recipe in of_folds
        for seed in seeds
    ]


def _prepare_dataset(
    trials: Trials, recipe: Recipe, progress: TrialProgress, command: Sequence[str], reporter: Reporter
) -> None:
    """Make the tokenizer and dataset of a trial, or copy those of another trial with the same settings."""
    root = trials.folder / "trials"
    run = RunPaths(run_folder(recipe, root))
    with convert_os_errors(run.folder):
        make_folder_below(trials.folder, run.folder)
    for stage in (each for each in stages_of_recipe(recipe) if each in SHARED_STAGES):
        with hold_lock(trials.folder / ".share.lock") as seconds_waited:
            progress.exclude_waiting_time(seconds_waited)
            plan = plan_stage(recipe, stage, run)
            assert plan is not None
            folders = (each for each in root.iterdir() if each.is_dir() and not each.is_symlink())
            other_folders = sorted(each for each in folders if each != run.folder)
            copy_same_artifact_of_other_run(
                plan, [each / plan.folder.name for each in other_folders], command, reporter, link_or_copy
            )
            # made while others wait: they are likely to need the same
            run_stage(recipe, stage, root=root, command=command, reporter=reporter)


def _train_trial(
    trials: Trials, recipe: Recipe, progress: TrialProgress, command: Sequence[str], log: TrialLog
) -> tuple[float, str]:
    """Train or resume one fold with one seed; return its validation figure and signature, "" if it has none."""
    run = RunPaths(run_folder(recipe, trials.folder / "trials"))
    progress.raise_if_pruned()
    log.updates = 0
    try:
        train(
            recipe.training,
            recipe.model,
            recipe.decoding,
            run.dataset,
            run.folder,
            seed=recipe.seed,
            evaluation=recipe.evaluation,
            command=command,
            reporter=log,
            on_validation=progress.on_validation,
        )
    except BaseException:
        progress.record_cost(log.updates)
        raise
    figures = open_artifact(run.model, "train").figures
    updates, validation = figures["updates"], figures["validation"]
    assert isinstance(updates, int)
    assert isinstance(validation, dict)
    progress.record_cost(updates)
    metric = trials.config.metric
    scores = validation.get("scores", {})
    if metric in scores:
        return float(scores[metric]["score"]), str(scores[metric]["signature"])
    return float(validation[metric]), str(validation.get(f"{metric}_signature") or "")  # infinity is a text there


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the file system cannot do that."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


BULKY_FOLDERS = ("tokenizer", "dataset", "model", "training/checkpoints", "training/tokenizer")


def remove_artifacts_of_worse_trials(trials: Trials) -> None:
    """Remove artifacts and checkpoints of trials that have ended and are not among the best; logs and curves stay."""
    with hold_lock(trials.folder / ".share.lock"):
        trained = [each.number for each in trials.finished_trials() if DUPLICATE_OF_ATTR not in each.user_attrs]
        for trial in trials.all_trials():
            if trial.state.is_finished() and trial.number not in trained[: trials.config.keep]:
                trial_folder = trials.trial_folder(trial.number)
                for folder in (trial_folder, *trial_folder.parent.glob(f"{trial_folder.name}-*")):
                    for name in BULKY_FOLDERS:
                        remove_path_below(trials.folder, folder / name)
