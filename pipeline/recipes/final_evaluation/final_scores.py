"""`tfm evaluate --final`: of some runs the one that validation chooses is scored on its test sets, once; of runs that
differ in their seed alone all are, if the mean of their validation is the best.

The data that choose a model must not be those that judge it. Runs of `evaluation.tests = "final"` therefore have
scores of their validation split alone, in scores-valid/; they choose, and the ledger knows whether the tests were used
before.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfm.pipeline.artifacts.artifact import stale_reason
from tfm.pipeline.config import Device, EvaluationConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.recipes.chain import run_stage, stages_of_recipe
from tfm.pipeline.recipes.final_evaluation.candidates import CandidateRun, choose_run, read_candidates
from tfm.pipeline.recipes.final_evaluation.seed_scores import (
    joint_fingerprint,
    record_joint_test_use,
    show_seed_scores,
    test_fingerprints,
)
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.recipes.run_paths import RunPaths, run_folder
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring import ledger
from tfm.pipeline.scoring.evaluation.allowlist import check_commands_allowed
from tfm.pipeline.stages import evaluate, translate


def score_tests_once(
    folders: Sequence[Path],
    *,
    figure: str | None = None,
    reason: str | None = None,
    again: bool = False,
    named_evaluation: EvaluationConfig | None = None,
    allow_external: bool = False,
    command: Sequence[str],
    reporter: Reporter,
    device: Device = "auto",
) -> dict[str, Any]:
    """Translate and score the test sets of the run, or of all seeds of the recipe, that validation chooses.

    Args:
        folders: the runs.
        figure: the validation figure that chooses, if it is not the task's main one.
        reason: how a search has chosen the only run; it stands in the ledger in place of `figure`.
        again: whether tests that were used so before are scored again.
        named_evaluation: the evaluation of the recipe that the user named in this call, if any; its commands may run.
        allow_external: whether commands and folders that only the run names may be used too.
        command: the user's command line.
        reporter: shows progress and scores.
        device: of the model.

    Returns:
        The content of scores.json; of several seeds that of each, with mean and deviation.

    Raises:
        DataError: a run has no scores of its validation split.
        RecipeError: the scores of several runs do not compare, the tests were used so before, or the chosen run names
            a command or folder that the user did not.
    """
    choice = choose_run(read_candidates(distinct_runs(folders)), figure)
    reason = reason or choice.description
    reporter.line(f"{choice.name}: chosen by {reason}")
    for run in choice.runs:
        check_commands_allowed(run.scores, run.evaluation, named_evaluation, allow=allow_external, reporter=reporter)
    selection, seed_folders = f"{ledger.FINAL_EVALUATION}: {reason}", [each.folder for each in choice.runs]
    if not all(is_already_evaluated(each, RunPaths(each.folder)) for each in choice.runs):
        # the entry of a scoring of these seeds that was stopped is no earlier use of the tests
        joint_model = joint_fingerprint(seed_folders) if len(seed_folders) > 1 else None
        check_tests_unused(RunPaths(seed_folders[0]), again=again, fingerprint=joint_model)
        if len(seed_folders) > 1:
            settings = [each and each.model_dump(mode="json") for each in (choice.run.decoding, choice.run.evaluation)]
            record_joint_test_use(seed_folders, settings, selection, reporter)
    options: dict[str, Any] = {"command": command, "reporter": reporter, "device": device}
    contents = {
        run.folder.name: _score_tests(run, chosen=selection if len(seed_folders) == 1 else None, **options)
        for run in choice.runs
    }
    return (
        show_seed_scores(choice.name, contents, reporter) if len(seed_folders) > 1 else contents[seed_folders[0].name]
    )


def _score_tests(candidate: CandidateRun, chosen: str | None, **stage_arguments: Any) -> dict[str, Any]:
    """Translate and score the test sets of one run; the content of scores.json."""
    run, stage_arguments = RunPaths(candidate.folder), {**stage_arguments, "seed": candidate.seed}
    if candidate.decoding is not None:
        translate.translate_tests(run.model, run.dataset, candidate.decoding, run.translations, **stage_arguments)
    translations = None if candidate.decoding is None else run.translations
    texts = run.model, run.dataset, translations, run.training
    return evaluate.evaluate_tests(*texts, candidate.evaluation, run.scores, chosen=chosen, **stage_arguments)


def distinct_runs(folders: Sequence[Path]) -> list[Path]:
    """The folders, each once, by whatever names it was given."""
    first_named = {os.path.realpath(folder): folder for folder in reversed(folders)}
    return [folder for folder in dict.fromkeys(folders) if first_named[os.path.realpath(folder)] == folder]


def run_validation(recipe: Recipe, *, command: Sequence[str], reporter: Reporter) -> Path:
    """Translate and score the validation split of a recipe's run where that is not done yet; return the folder of the
    run.

    Args:
        recipe: the recipe.
        command: the command line, for the manifests.
        reporter: receives messages.
    """
    for stage in ("translate", "evaluate"):
        if stage in stages_of_recipe(recipe):
            run_stage(recipe, stage, command=command, reporter=reporter)
    return run_folder(recipe)


def is_already_evaluated(candidate: CandidateRun, run: RunPaths) -> bool:
    """Return whether the scores of the tests are there, made from just this model with these settings."""
    try:
        if candidate.decoding is not None:
            plan = translate.plan_test_translation(
                run.model, run.dataset, candidate.decoding, run.translations, seed=candidate.seed
            )
            if stale_reason(plan) is not None:
                return False
        translations = None if candidate.decoding is None else run.translations
        texts = run.model, run.dataset, translations
        return stale_reason(evaluate.plan_scores(*texts, candidate.evaluation, run.scores, seed=candidate.seed)) is None
    except DataError:
        return False  # of another model, or damaged: it has to be made


def check_tests_unused(run: RunPaths, *, again: bool, fingerprint: str | None = None) -> None:
    """Raise RecipeError if a test set of the run's dataset was scored by --final before.

    Args:
        run: the paths of the run.
        again: whether it may be scored again.
        fingerprint: the fingerprint of the models together, whose look may have been entered before they were stopped.
    """
    evaluated_model = ledger.read_evaluated_model(run.model, "", ledger.FINAL_EVALUATION)
    entries = [] if evaluated_model is None else ledger.read_ledger(evaluated_model.root)
    for name, texts in test_fingerprints(run).items():
        final_entries = (
            each for each in ledger.select_entries(entries, texts) if each.chosen.startswith(ledger.FINAL_EVALUATION)
        )
        uses = [each for each in final_entries if each.model != fingerprint]
        if uses and not again:
            times = "once" if len(uses) == 1 else f"{len(uses)} times"
            raise RecipeError(
                f"{name} was already scored {times} with --final (last: run {uses[-1].run}, {uses[-1].when[:10]}). "
                "A test set should be used only once;\nadd --again to score it anyway"
            )
