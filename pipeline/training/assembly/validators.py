"""Validation as the recipe asks for it: of all validation data, or of each direction of translation."""

from collections.abc import Sequence

from tfm.data.dataset.directions import rows_by_direction
from tfm.data.dataset.split import Split
from tfm.pipeline.errors import DataError
from tfm.pipeline.reports.evaluation_report import metric_label
from tfm.pipeline.scoring.validation import DirectionsValidator, LabelScorer, ValidationTranslator, Validator
from tfm.pipeline.tasks.abilities import TASK_SPECS, task_evaluation_config
from tfm.pipeline.tasks.task import Task
from tfm.pipeline.training.assembly.parts import TrainingSession
from tfm.pipeline.training.early_stopping import Validation, ValidationMetrics
from tfm.tokenizer.tokenizer import Tokenizer


def make_validator(
    session: TrainingSession, task: Task, target_tokenizer: Tokenizer, previous_validations: Sequence[Validation]
) -> Validator | DirectionsValidator:
    """Return validation as the recipe asks for it, and as the earlier ones of the training were.

    Args:
        session: the settings and data of the training.
        task: the task.
        target_tokenizer: the tokenizer of the target.
        previous_validations: the validations so far.

    Raises:
        DataError: validation is to be judged by BLEU, and there is none of these references.
    """
    valid, last = session.data.valid, previous_validations[-1] if previous_validations else None
    directions = rows_by_direction(session.data.directions.get("valid", ()))

    def make_split_validator(
        split: Split, previous_metrics: ValidationMetrics | None, name: str = "validation"
    ) -> Validator:
        batches = task.ordered_batches(split, session.data.batch_tokens)
        signature = None if previous_metrics is None else previous_metrics.bleu_signature
        return Validator(task, split, batches, make_scorer(session, task, split, target_tokenizer, signature, name))

    if len(directions) < 2:
        return make_split_validator(valid, last)
    previous_directions = {} if last is None else last.directions
    return DirectionsValidator(
        {
            name: make_split_validator(valid.select_rows(rows), previous_directions.get(name), name)
            for name, rows in directions.items()
        }
    )


def make_scorer(
    session: TrainingSession,
    task: Task,
    split: Split,
    target_tokenizer: Tokenizer,
    previous_signature: str | None,
    name: str,
) -> ValidationTranslator | LabelScorer | None:
    """Return the scorer of a model's hypotheses of validation data, by the metrics that the recipe asks for and the
    data have.

    Args:
        session: the settings and data of the training.
        task: the task.
        split: the validation data.
        target_tokenizer: the tokenizer of the target.
        previous_signature: the BLEU signature of earlier validations; None if there is none.
        name: name of the data in messages.

    Returns:
        The scorer; None if no metric remains.

    Raises:
        DataError: the metric of early stopping cannot be computed of these data.
    """
    abilities, stopping = TASK_SPECS[session.model.task], session.config.early_stopping.metric
    metrics = (
        session.config.select_validation_scores(labels=abilities.labels is not None)
        if abilities.gives_hypotheses
        else ()
    )
    if not metrics:
        return None
    scorer: ValidationTranslator | LabelScorer
    if abilities.labels is not None:
        evaluation = task_evaluation_config(session.model.task, session.evaluation)
        batches = task.ordered_batches(split, session.data.batch_tokens)
        scorer = LabelScorer(split, target_tokenizer, task, batches, evaluation, metrics)
    else:
        beam = session.config.validation.beam
        decoding = session.decoding.model_copy(update={"strategy": "search", "beam": beam, "n_best": 1})
        scorer = ValidationTranslator(
            split, target_tokenizer, decoding, session.evaluation, metrics, previous_signature=previous_signature
        )
    for metric, reason in scorer.missing.items():
        problem = f"{name} has no {metric_label(metric)}: {reason}"
        if stopping == metric:
            remedy = "set evaluation.bleu_tokenize, or" if metric == "bleu" else "set"
            raise DataError(f'{problem}; {remedy} early_stopping.metric = "loss"')
        session.reporter.warn(problem)
    return scorer if scorer.metrics else None
