"""What a training does from its start on: the task, its batches, the number of updates."""

from dataclasses import replace

from tfm.data.batching.resegmentation import Resegmentation
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.tasks.abilities import ABILITIES
from tfm.pipeline.tasks.registry import task_of
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.training.assembly.parts import Session, StartingPoint, TrainingSetup
from tfm.pipeline.training.num_updates import resolve_total_steps

NOT_RESEGMENTED = "tags and word vectors belong to words, and windows (model.block) to one text, of given pieces"


def build_setup(session: Session, start: StartingPoint, about: TaskContext) -> TrainingSetup:
    """The course from a start on, with batches as large as its settings say; its progress gets to know the end.

    Raises RecipeError where a training that goes on cannot end there.
    """
    progress = start.state.progress
    about = replace(about, batch_tokens=progress.settings.batch_tokens)
    task = task_of(about)
    batches = task.epochs(session.data.train, about.batch_tokens, session.seed)
    total_steps = resolve_total_steps(
        progress, session.config, batches.num_batches, before=start.before, folder=session.folder
    )
    return TrainingSetup(task, batches, total_steps, resegmentation_of(about, session.seed))


def resegmentation_of(about: TaskContext, seed: int) -> Resegmentation | None:
    """How texts get other pieces at each update, where that is asked for; labels never do.

    Raises RecipeError where neither side's tokenizer can give other pieces.
    """
    wanted = {"bpe_dropout": about.config.bpe_dropout, "unigram_alpha": about.config.unigram_alpha}
    given = {name: value for name, value in wanted.items() if value is not None}
    for name, value in given.items():
        if ABILITIES[about.model.task].of_words or about.model.block is not None:
            raise RecipeError(f"training.{name}: {NOT_RESEGMENTED}: omit it")
        if not any(side.sampler(**{name: value}) for side in (about.source, about.target)):
            kind = name.partition("_")[0]
            raise RecipeError(f"training.{name} = {value}: neither side has a tokenizer of kind {kind}: omit it")
    if not given:
        return None
    source = about.source.sampler(**given)
    target = source if about.target is about.source else about.target.sampler(**given)
    return Resegmentation(source, target, seed, min(about.model.max_length, about.batch_tokens), about.batch_tokens)
