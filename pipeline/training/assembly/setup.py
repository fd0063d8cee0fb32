"""The setup of a training from its start on: the task, its batches, the number of updates."""

from dataclasses import replace

from tfm.data.batching.resegmentation import Resegmenter
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.tasks.registry import make_task
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.training.assembly.num_updates import resolve_total_steps
from tfm.pipeline.training.assembly.parts import StartingPoint, TrainingSession, TrainingSetup

NO_RESEGMENTATION_REASON = (
    "tags and word vectors belong to words, and windows (model.block) to one text, of given pieces"
)


def build_setup(session: TrainingSession, start: StartingPoint, context: TaskContext) -> TrainingSetup:
    """Return the setup from a start on, with batches as large as its settings say; its progress receives the last
    update.

    Args:
        session: the settings and data of the training.
        start: the starting point.
        context: the facts from which the task is made; its batch size is replaced by that of the start.

    Raises:
        RecipeError: a training that goes on cannot end there.
    """
    progress = start.state.progress
    context = replace(context, batch_tokens=progress.settings.batch_tokens)
    task = make_task(context)
    batches = task.epochs(session.data.train, context.batch_tokens, session.seed)
    total_steps = resolve_total_steps(
        progress, session.config, batches.num_batches, previous_plan=start.previous_plan, folder=session.folder
    )
    return TrainingSetup(task, batches, total_steps, make_resegmentation(context, session.seed))


def make_resegmentation(context: TaskContext, seed: int) -> Resegmenter | None:
    """Return the resegmentation that samples other pieces at each update; None if it is not enabled. Labels never
    change.

    Raises RecipeError if neither side's tokenizer can give other pieces.
    """
    requested_settings = {"bpe_dropout": context.config.bpe_dropout, "unigram_alpha": context.config.unigram_alpha}
    settings = {name: value for name, value in requested_settings.items() if value is not None}
    for name, value in settings.items():
        if TASK_SPECS[context.model.task].predicts_per_word or context.model.block is not None:
            raise RecipeError(f"training.{name}: {NO_RESEGMENTATION_REASON}: remove it")
        if not any(side.sampler(**{name: value}) for side in (context.source, context.target)):
            kind = name.partition("_")[0]
            raise RecipeError(f"training.{name} = {value}: neither side has a tokenizer of kind {kind}: remove it")
    if not settings:
        return None
    source = context.source.sampler(**settings)
    target = source if context.target is context.source else context.target.sampler(**settings)
    return Resegmenter(source, target, seed, min(context.model.max_length, context.batch_tokens), context.batch_tokens)
