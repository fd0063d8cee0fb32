"""Validation as the recipe asks for it: of all validation data, or of each direction of translation."""

from collections.abc import Sequence

from tfm.data.dataset.directions import rows_by_direction
from tfm.data.dataset.split import Split
from tfm.pipeline.errors import DataError
from tfm.pipeline.scoring.validation import DirectionsValidator, Translator, Validator
from tfm.pipeline.tasks.abilities import ABILITIES
from tfm.pipeline.tasks.task import Task
from tfm.pipeline.training.assembly.parts import Session
from tfm.pipeline.training.early_stopping import Validation, ValidationMetrics
from tfm.tokenizer.tokenizer import Tokenizer


def make_validator(
    session: Session, task: Task, target_tokenizer: Tokenizer, earlier: Sequence[Validation]
) -> Validator | DirectionsValidator:
    """Validation as the recipe asks for it, and as the earlier ones of the training were.

    Raises DataError where it is to be judged by BLEU, and there is none of these references.
    """
    valid, last = session.data.valid, earlier[-1] if earlier else None
    directions = rows_by_direction(session.data.directions.get("valid", ()))

    def of(split: Split, before: ValidationMetrics | None, name: str = "validation") -> Validator:
        ordered = task.ordered(split, session.data.batch_tokens)
        signature = None if before is None else before.bleu_signature
        return Validator(task, split, ordered, make_translator(session, split, target_tokenizer, signature, name))

    if len(directions) < 2:
        return of(valid, last)
    each_before = {} if last is None else last.directions
    return DirectionsValidator(
        {name: of(valid.select_rows(rows), each_before.get(name), name) for name, rows in directions.items()}
    )


def make_translator(
    session: Session, split: Split, target_tokenizer: Tokenizer, before: str | None, name: str
) -> Translator | None:
    """What gives the BLEU of validation data, where it has one and the recipe asks for it."""
    wanted = session.config.validation
    if not wanted.bleu or not ABILITIES[session.model.task].translates:
        return None
    decoding = session.decoding.model_copy(update={"strategy": "search", "beam": wanted.beam, "n_best": 1})
    translator = Translator(split, target_tokenizer, decoding, session.evaluation, before=before)
    if translator.no_bleu_reason is None:
        return translator
    without = f"{name} has no BLEU: {translator.no_bleu_reason}"
    if session.config.early_stopping.metric == "bleu":
        raise DataError(f'{without}; set evaluation.bleu_tokenize, or early_stopping.metric = "loss"')
    session.reporter.warn(without)
    return None
