"""The runs that validation chooses among, by the scores of their validation splits, and its choice."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from tfm.data.json_documents import read_json
from tfm.pipeline.artifacts.artifact import Manifest, open_artifact, read_artifact
from tfm.pipeline.artifacts.compatibility import check_same_inputs, trained_task
from tfm.pipeline.comparison.seeds import group_by_seed
from tfm.pipeline.comparison.signatures import comparable_parts
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.recipes.run_paths import RunPaths
from tfm.pipeline.reports.evaluation_report import metric_label
from tfm.pipeline.reports.run_summary import VALIDATION_TEST_NAME, read_run
from tfm.pipeline.scoring import ledger
from tfm.pipeline.scoring.evaluation.evaluation import LIKELIHOOD_METRICS, Evaluation
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_from_json, raise_scores_file_errors
from tfm.pipeline.scoring.metrics.score import Score, lower_is_better, mean_of_directions
from tfm.pipeline.stages import evaluate
from tfm.pipeline.tasks.abilities import TASK_SPECS

GET_SCORES_ADVICE = 'run `tfm run` with evaluation.tests = "final"'


@dataclass(frozen=True)
class CandidateRun:
    """A run that may be chosen: its settings, and the scores of its model on its validation split.

    recipe: the name of the group of runs that differ in their seed alone; empty if there are none.
    """

    folder: Path
    task: str
    decoding: DecodingConfig | None  # None: of a model that has nothing to translate
    evaluation: EvaluationConfig
    seed: int
    validation: Evaluation
    scores: Manifest  # of the validation split: the settings of the evaluation are its own
    recipe: str = ""


@dataclass(frozen=True)
class ValidationSelection:
    """The choice of validation: a run, or all seeds of a recipe; the figure, its (mean) value, and of how many such."""

    runs: tuple[CandidateRun, ...]
    figure: str
    score: Score
    count: int

    @property
    def run(self) -> CandidateRun:
        return self.runs[0]

    @property
    def name(self) -> str:
        return self.run.recipe or str(self.run.folder)

    @property
    def description(self) -> str:
        seeds = f", the mean of {len(self.runs)} seeds" if len(self.runs) > 1 else ""
        rivals = f", the best of {self.count} {'recipes' if seeds else 'runs'}" if self.count > 1 else ""
        return f"{metric_label(self.figure, self.score.signature)} {self.score.score:.4g} of validation{seeds}{rivals}"


def read_candidate(folder: Path) -> CandidateRun:
    """The run in a folder. Raises DataError if its model has no scores of its validation split."""
    run = RunPaths(folder, "valid")
    if not folder.is_dir():
        raise DataError("there is no such folder", file=folder)
    if not run.scores.exists():
        raise DataError(f"there are no scores of the validation split here: {GET_SCORES_ADVICE}", file=run.scores)
    model, scores = open_artifact(run.model, "train"), open_artifact(run.scores, "evaluate")
    check_same_inputs(scores, model=model)
    task = trained_task(model)
    decoding = None
    if TASK_SPECS[task].gives_hypotheses:
        translations = open_artifact(run.translations, "translate")
        check_same_inputs(translations, model=model)
        check_same_inputs(scores, **{evaluate.translations_input_name("valid"): translations})
        decoding = decoding_without_defaults(translations.config["decoding"])
    evaluation = EvaluationConfig.model_validate_json(json.dumps(scores.config["evaluation"]))
    validation = read_artifact(run.scores, _validation_scores, must_match=scores.as_input())
    return CandidateRun(folder, task, decoding, evaluation, scores.seed or 0, validation, scores)


def decoding_without_defaults(settings: object) -> DecodingConfig:
    """The [decoding] of a manifest without its written-out defaults, since a labelling model accepts no other keys."""
    decoding = DecodingConfig.model_validate_json(json.dumps(settings))
    return DecodingConfig.model_validate(decoding.model_dump(exclude_defaults=True))


def read_candidates(folders: Sequence[Path]) -> list[CandidateRun]:
    """The runs in some folders; those of them that differ in their seed alone have their recipe's name.

    Raises DataError if a model has no scores of its validation split.
    """
    candidates = [read_candidate(folder) for folder in folders]
    candidates_by_name = {str(each.folder): each for each in candidates}
    for row in group_by_seed(
        [read_run(each.folder, name, VALIDATION_TEST_NAME) for name, each in candidates_by_name.items()]
    ):
        if len(row.runs) > 1:
            candidates_by_name |= {run.name: replace(candidates_by_name[run.name], recipe=row.name) for run in row.runs}
    return list(candidates_by_name.values())


def choose_run(candidates: Sequence[CandidateRun], figure: str | None = None) -> ValidationSelection:
    """The candidate with the best figure of validation, the first of those that are equal; of candidates of one recipe
    the mean counts, and all are chosen.

    figure: what chooses; else the first of the task's that compares over all candidates. Raises RecipeError if
    none does.
    """
    tasks = {each.task for each in candidates}
    if len(tasks) > 1:
        raise RecipeError(f"validation cannot choose between {' and '.join(sorted(tasks))}: give runs of one task")
    problems = []
    for name in [figure] if figure is not None else TASK_SPECS[candidates[0].task].figures:
        if problem := comparability_problem(name, candidates):
            problems.append(problem)
            continue
        signature = candidates[0].validation.scores[name].signature
        groups = group_seeds(candidates)
        means = [fmean(each.validation.scores[name].score for each in group) for group in groups]
        best = (min if lower_is_better(name, signature) else max)(means)
        runs = groups[means.index(best)]
        signature = runs[0].validation.scores[name].signature
        return ValidationSelection(runs, name, Score(best, signature), len(groups))
    raise RecipeError(f"validation cannot choose: {problems[0]}")


def group_seeds(candidates: Sequence[CandidateRun]) -> list[tuple[CandidateRun, ...]]:
    """The candidates of each recipe, in the order of the first of them."""
    groups: dict[str, tuple[CandidateRun, ...]] = {}
    for candidate in candidates:
        name = candidate.recipe or str(candidate.folder)
        groups[name] = (*groups.get(name, ()), candidate)
    return list(groups.values())


def comparability_problem(figure: str, candidates: Sequence[CandidateRun]) -> str | None:
    """Why a figure of validation does not compare over all candidates; None if it does."""
    first = candidates[0]
    for run in candidates:
        if figure not in run.validation.scores:
            return f"{run.folder} has no {figure} of its validation split; it has {', '.join(run.validation.scores)}"
        definition, first_definition = (
            comparable_parts(figure, one.validation.scores[figure].signature) for one in (run, first)
        )
        if not ledger.are_same_texts(run.validation.texts, first.validation.texts):
            return f"{first.folder} and {run.folder} have other validation texts"
        if definition != first_definition:
            return (
                f"{figure} of {first.folder} is {'|'.join(first_definition)}, "
                f"that of {run.folder} is {'|'.join(definition)}"
            )
    return None


def _validation_scores(manifest: Manifest) -> Evaluation:
    displayed_path = manifest.path / "scores.json"
    with raise_scores_file_errors(displayed_path, remedy="score again"):
        return average_directions(
            evaluations_from_json(read_json(manifest.folder / "scores.json", displayed_path=displayed_path))
        )


def average_directions(evaluations: Sequence[Evaluation]) -> Evaluation:
    """The evaluation of a validation split; with several directions each score is the mean over the directions, if all
    have it.
    """
    evaluation, *parts = evaluations
    if not parts:
        return evaluation
    parts_by_direction = {"-".join(each.direction): each for each in parts if each.direction is not None}
    common_metrics = [metric for metric in evaluation.scores if all(metric in each.scores for each in parts)]
    means = {
        metric: mean_of_directions({name: each.scores[metric] for name, each in parts_by_direction.items()})
        for metric in common_metrics
        if metric not in LIKELIHOOD_METRICS
    }
    return replace(
        evaluation,
        scores={name: each for name, each in evaluation.scores.items() if name in LIKELIHOOD_METRICS} | means,
    )
