"""What a training is put together from: each part is made of those before it.

settings -> context of the task -> state (drawn, or of a checkpoint) -> task, batches, number of updates -> trainer
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tfm.data.artifact_tokenizers import load_pair
from tfm.data.batching.resegmentation import Resegmentation
from tfm.data.batching.varied_images import VariedImages
from tfm.data.dataset.directions import rows_of
from tfm.data.dataset.split import Dataset, Split
from tfm.model.build import Model, build, num_parameters
from tfm.model.config import ModelConfig
from tfm.model.layers.lora import adapt
from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.loaded_model import image_shape
from tfm.pipeline.runtime.devices import PRECISIONS
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.runtime.threads import LoadWatch
from tfm.pipeline.scoring.validation import DirectionsValidator, Translator, Validator
from tfm.pipeline.tasks.abilities import ABILITIES
from tfm.pipeline.tasks.registry import task_of
from tfm.pipeline.tasks.task import Epochs, Task, TaskContext
from tfm.pipeline.training.batch_size_search import largest_budget
from tfm.pipeline.training.checkpoints.checkpoint import Checkpoint, Checkpoints
from tfm.pipeline.training.checkpoints.resume import continues, go_on, plan_document, resolve_settings
from tfm.pipeline.training.checkpoints.train_state import Progress, Settings, TrainState
from tfm.pipeline.training.checkpoints.weight_averaging import Ema
from tfm.pipeline.training.checks import (
    check_adaptive,
    check_batch_norm,
    check_characters,
    check_lora,
    check_one_vocabulary,
    check_room,
    check_sources,
)
from tfm.pipeline.training.early_stopping import Figures, Heard, Validation
from tfm.pipeline.training.initialization import begin, start_from
from tfm.pipeline.training.loop import Trainer
from tfm.pipeline.training.metrics_log import Curves, MetricsLog, TensorBoard
from tfm.pipeline.training.num_updates import agree_on_end
from tfm.pipeline.training.optimizers import make_optimizer
from tfm.pipeline.training.recipe_warnings import doubts
from tfm.pipeline.training.update import Gradients
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.foreign.sentencepiece import numbered_alike
from tfm.tokenizer.tokenizer import Tokenizer

NOT_RESEGMENTED = "tags and word vectors belong to words, and windows (model.block) to one text, of given pieces"


@dataclass(frozen=True)
class Session:
    """What one training is about, and the process it runs in."""

    todo: Plan
    config: TrainingConfig
    model: ModelConfig
    decoding: DecodingConfig
    evaluation: EvaluationConfig
    data: Dataset
    reporter: Reporter
    world: World
    heard: Heard = lambda validation, is_last: None

    @property
    def folder(self) -> Path:
        """Where the work in progress lies."""
        return self.todo.folder.parent / "training"

    @property
    def seed(self) -> int:
        """The recipe's, which a training always has."""
        assert self.todo.seed is not None
        return self.todo.seed


@dataclass(frozen=True)
class Start:
    """The state that a training has when its first or next update is due, and the plan that it had up to here."""

    state: TrainState
    before: Mapping[str, Any]
    is_new: bool


@dataclass(frozen=True)
class Course:
    """What is done from a start on: the task, its batches epoch by epoch, and at which update training ends."""

    task: Task
    batches: Epochs
    total_steps: int
    resegmentation: Resegmentation | None


def assemble(session: Session, checkpoints: Checkpoints, checkpoint: Checkpoint | None) -> Trainer:
    """The trainer of a session, at the checkpoint's state or at the beginning."""
    config, data, world = session.config, session.data, session.world
    settings = resolve_settings(config, data.batch_tokens, world, checkpoint, session.reporter)
    torch.set_num_threads(settings.threads)  # of all that is computed from here on
    about = context_of(session, settings)
    check(session, about)
    drawn = initial_state(session, settings, about)
    start = begun(session, drawn, about) if checkpoint is None else continued(session, drawn, settings, checkpoint)
    course = course_from(session, start, about)
    announce(session, start, course)
    return trainer_of(session, start.state, course, about.target, checkpoints)


def context_of(session: Session, settings: Settings) -> TaskContext:
    """What the task is made from. Raises RecipeError where the model does not read what the data are."""
    image = image_shape(session.data.preparation)
    tokens = check_sources(image, session.model.vision, session.config)
    pair = load_pair(session.data.tokenizer_folder)
    return TaskContext(session.config, session.model, *pair, settings.batch_tokens, tokens)


def check(session: Session, about: TaskContext) -> None:
    """Raise DataError or RecipeError where this model cannot learn this task from this data so."""
    task_of(about).check(session.data, session.model)
    check_lora(session.config.lora, session.model)
    check_batch_norm(session.model.normalization, session.config, session.world.size)
    check_adaptive(session.model.has_tails, session.config)
    check_one_vocabulary(session.model, shared=numbered_alike(about.source, about.target))
    check_characters(session.model, about.source, about.target, flat=session.config.layout == "flat")


def initial_state(session: Session, settings: Settings, about: TaskContext) -> TrainState:
    """The state before the first update. Raises CannotWrite where the disk has no room for its checkpoints."""
    model, config = initial_model(session, settings, about.source, about.target), session.config
    check_room(session.folder, num_parameters(model), config.keep, ema=config.ema is not None)
    ema = None if config.ema is None else Ema(model, config.ema)
    progress = Progress(settings=settings, plan=plan_document(session.todo))
    return TrainState(model, make_optimizer(model, config.optimizer), ema, progress)


def initial_model(session: Session, settings: Settings, source: Tokenizer, target: Tokenizer) -> Model:
    """The network with its first weights, a pure function of the seed, on the device.

    Raises RecipeError for what of it does not fit these vocabularies, and for products to adapt that it does not have.
    """
    try:
        model = build(
            session.model,
            source_vocab=source.vocab_size,
            target_vocab=target.vocab_size,
            image=image_shape(session.data.preparation),
            seed=session.seed,
            compute_dtype=PRECISIONS[settings.precision],
        )
        if (lora := session.config.lora) is not None:
            adapt(model, lora.rank, lora.scale, lora.products, session.seed)
    except ValueError as error:  # of what only the vocabularies show, or the network
        raise RecipeError(str(error)) from error
    return model.to(session.world.device)


def begun(session: Session, state: TrainState, about: TaskContext) -> Start:
    """The start of a training that begins, from a state that was drawn: with what was learned before, where that is
    asked for, and batches as large as they are to be."""
    config, progress = session.config, state.progress
    if config.init_from is not None:
        start_from(state, session.model, Path(config.init_from), session.reporter)
    begin(state, task_of(about), about, session.data, session.reporter)
    if config.batch_tokens == "auto":
        found = searched_budget(session, state.model, about)
        progress.settings = progress.settings.model_copy(update={"batch_tokens": found})
    return Start(state, before=progress.plan, is_new=True)


def continued(session: Session, state: TrainState, settings: Settings, checkpoint: Checkpoint) -> Start:
    """The start of a training that goes on: the state, whatever it was, becomes that of the checkpoint."""
    return Start(state, before=go_on(state, checkpoint, session.todo, settings), is_new=False)


def searched_budget(session: Session, model: nn.Module, about: TaskContext) -> int:
    """The tokens a batch that fit in memory."""
    return largest_budget(
        model,
        lambda budget: task_of(replace(about, batch_tokens=budget)),
        session.data.train,
        session.config,
        seed=session.seed,
        world=session.world,
        least=about.batch_tokens,
        reporter=session.reporter,
    )


def course_from(session: Session, start: Start, about: TaskContext) -> Course:
    """The course from a start on, with batches as large as its settings say; its progress gets to know the end.

    Raises RecipeError where a training that goes on cannot end there.
    """
    progress = start.state.progress
    about = replace(about, batch_tokens=progress.settings.batch_tokens)
    task = task_of(about)
    batches = task.epochs(session.data.train, about.batch_tokens, session.seed)
    total_steps = agree_on_end(
        progress, session.config, batches.num_batches, before=start.before, folder=session.folder
    )
    return Course(task, batches, total_steps, resegmentation_of(about, session.seed))


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


def announce(session: Session, start: Start, course: Course) -> None:
    """Say what will be done and, before the first update, what of the recipe will hardly do what is hoped for."""
    state, data, tell = start.state, session.data, session.reporter
    if not start.is_new:
        tell.line(continues(state.progress))
    tell.line(
        f"training: {num_parameters(state.model):,} parameters, {len(data.train):,} examples in "
        f"{course.batches.num_batches(0):,} batches, at most {course.total_steps:,} updates; "
        f"{state.progress.settings.in_words()}"
    )
    if start.is_new:
        # a model that has learned already may be a large one
        parameters = num_parameters(state.model) if session.config.init_from is None else 0
        tokens = int(np.maximum(*course.task.lengths(data.train)).sum())
        schedule = session.config.schedule
        for doubt in doubts(schedule, total_steps=course.total_steps, parameters=parameters, tokens=tokens):
            tell.warn(doubt)


def trainer_of(
    session: Session, state: TrainState, course: Course, target: Tokenizer, checkpoints: Checkpoints
) -> Trainer:
    """What takes a state along its course."""
    config, model, world, progress = session.config, session.model, session.world, state.progress
    validator = make_validator(session, course.task, target, progress.validations)
    log = open_log(session, progress)
    threads = progress.settings.threads if world.size == 1 and world.device.type == "cpu" else 1
    return Trainer(
        config=config,
        state=state,
        gradients=gradients_of(session, state.model, course),
        batches=course.batches,
        validator=validator,
        checkpoints=checkpoints,
        log=log,
        reporter=session.reporter,
        total_steps=course.total_steps,
        width=(model.encoder if model.architecture == "encoder_only" else model.decoder).dim,
        world=world,
        redraw=Curves(log, session.folder / "curves.svg"),
        watch=LoadWatch(threads, session.reporter.warn),
        heard=session.heard,
    )


def gradients_of(session: Session, model: nn.Module, course: Course) -> Gradients:
    """What computes the gradients of the updates; images are varied in it, where they are to be."""
    data, seed = session.data, session.seed
    found = Gradients(model, course.task, data.train, session.config, seed, session.world, course.resegmentation)
    return found if data.augmentation is None else replace(found, at_step=VariedImages(data.augmentation, seed))


def make_validator(
    session: Session, task: Task, target_tokenizer: Tokenizer, earlier: Sequence[Validation]
) -> Validator | DirectionsValidator:
    """Validation as the recipe asks for it, and as the earlier ones of the training were.

    Raises DataError where it is to be judged by BLEU, and there is none of these references.
    """
    valid, last = session.data.valid, earlier[-1] if earlier else None
    directions = rows_of(session.data.directions.get("valid", ()))

    def of(split: Split, before: Figures | None, name: str = "validation") -> Validator:
        ordered = task.ordered(split, session.data.batch_tokens)
        signature = None if before is None else before.bleu_signature
        return Validator(task, split, ordered, make_translator(session, split, target_tokenizer, signature, name))

    if len(directions) < 2:
        return of(valid, last)
    each_before = {} if last is None else last.directions
    return DirectionsValidator(
        {name: of(valid.of_rows(rows), each_before.get(name), name) for name, rows in directions.items()}
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
    if translator.why_not is None:
        return translator
    without = f"{name} has no BLEU: {translator.why_not}"
    if session.config.early_stopping.metric == "bleu":
        raise DataError(f'{without}; set evaluation.bleu_tokenize, or early_stopping.metric = "loss"')
    session.reporter.warn(without)
    return None


def open_log(session: Session, progress: Progress) -> MetricsLog:
    """metrics.jsonl, cut back to where training goes on; only the first process opens it."""
    mirrors = []
    if session.world.leads and session.config.tensorboard:
        mirrors.append(TensorBoard(session.folder / "tensorboard", step=progress.step))
    log = MetricsLog(session.folder / "metrics.jsonl", mirrors)
    if session.world.leads:
        log.begin(step=progress.step, validated=progress.validated)
    return log
