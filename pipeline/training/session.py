"""A training from start to published model: what it is put together from."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tfm.data.artifact_tokenizers import load_pair
from tfm.data.dataset.split import Dataset
from tfm.data.dataset.store import TOKENIZER_FOLDER, check_ids, load_dataset
from tfm.model.build import Model, build, num_parameters
from tfm.model.config import ModelConfig
from tfm.pipeline.artifacts.artifact import Manifest, Plan, check_place, lock, publish, read_artifact
from tfm.pipeline.artifacts.files import beginning, replace_bytes
from tfm.pipeline.config import DecodingConfig, EvaluationConfig, TrainingConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.loaded_model import TOKENIZER_FILES, load_weights, save_model
from tfm.pipeline.reports.training_curves import draw
from tfm.pipeline.runtime.devices import PRECISIONS, resolve_device
from tfm.pipeline.runtime.distributed import World, join
from tfm.pipeline.runtime.out_of_memory import fits
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.runtime.stop_signal import listen
from tfm.pipeline.runtime.threads import LoadWatch
from tfm.pipeline.scoring.validation import Translator, Validator
from tfm.pipeline.tasks.abilities import ABILITIES
from tfm.pipeline.tasks.registry import TASKS
from tfm.pipeline.tasks.task import Task, TaskContext
from tfm.pipeline.training.batch_size_search import largest_budget
from tfm.pipeline.training.checkpoints.checkpoint import Checkpoint, Checkpoints
from tfm.pipeline.training.checkpoints.resume import choose, continues, go_on, plan_document, resolve_settings
from tfm.pipeline.training.checkpoints.train_state import Progress, Settings, TrainState, published_weights
from tfm.pipeline.training.checkpoints.weight_averaging import Ema, mean_weights
from tfm.pipeline.training.checks import check_adaptive, check_batch_norm, check_one_vocabulary, check_room
from tfm.pipeline.training.early_stopping import Validation, best_first
from tfm.pipeline.training.initialization import begin, start_from
from tfm.pipeline.training.loop import Trainer
from tfm.pipeline.training.metrics_log import MetricsLog, TensorBoard
from tfm.pipeline.training.num_updates import agree_on_end
from tfm.pipeline.training.optimizers import make_optimizer
from tfm.pipeline.training.recipe_warnings import doubts
from tfm.pipeline.training.update import Gradients
from tfm.tokenizer.tokenizer import Tokenizer

SECONDS_BETWEEN_CURVES = 30.0
SECONDS_OF_ECHO = 2.0


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

    @property
    def folder(self) -> Path:
        """Where the work in progress lies."""
        return self.todo.folder.parent / "training"

    @property
    def seed(self) -> int:
        """The recipe's, which a training always has."""
        assert self.todo.seed is not None
        return self.todo.seed


def make_model(
    todo: Plan,
    config: TrainingConfig,
    model: ModelConfig,
    decoding: DecodingConfig,
    evaluation: EvaluationConfig,
    dataset: Path,
    *,
    command: Sequence[str],
    reporter: Reporter,
) -> None:
    """Train, from the newest checkpoint where there is one, and publish the model."""
    with join(resolve_device(config.device)) as world, ExitStack() as held:
        data = read_artifact(dataset, lambda _: read_data(dataset), known=todo.inputs["dataset"])
        session = Session(todo, config, model, decoding, evaluation, data, reporter, world)
        checkpoints = Checkpoints(session.folder / "checkpoints")
        world.lead(lambda: held.enter_context(lock(session.folder)))
        world.lead(lambda: check_place(todo))
        step = world.lead(lambda: choose(checkpoints, todo, config, reporter))
        world.lead(lambda: keep_tokenizer(session, dataset))
        session = replace(session, data=replace(data, tokenizer_folder=session.folder / TOKENIZER_FOLDER))
        with fits(lambda: "the model and its optimiser do not fit in memory; make the model smaller ([model])"):
            trainer = assemble(session, checkpoints, None if step is None else checkpoints.read(step))
            echo = SECONDS_OF_ECHO if world.size > 1 else 0.0
            with listen(echo=echo, talk=world.leads) as trainer.stop:
                trainer.run()
        if world.leads:
            draw(trainer.log.lines, session.folder / "curves.svg")
            publish_model(session, trainer, command)


def read_data(dataset: Path) -> Dataset:
    """The dataset in a folder, whose ids are those of its tokenizers."""
    data = load_dataset(dataset)
    check_ids(data, *(each.vocab_size for each in load_pair(data.tokenizer_folder)))
    return data


def keep_tokenizer(session: Session, dataset: Path) -> None:
    """Copy the dataset's tokenizer to the work in progress: the model gets this one, whatever becomes of the dataset
    meanwhile, and a checkpoint can be asked for translations."""
    source, kept = session.data.tokenizer_folder, session.folder / TOKENIZER_FOLDER

    def copy(_: Manifest) -> None:
        for name in TOKENIZER_FILES:
            wanted, there = ((each / name).read_bytes() if (each / name).exists() else None for each in (source, kept))
            if wanted is None:
                (kept / name).unlink(missing_ok=True)
            elif wanted != there:
                replace_bytes(kept / name, wanted)

    with beginning(session.folder):
        kept.mkdir(parents=True, exist_ok=True)
    read_artifact(dataset, copy, known=session.todo.inputs["dataset"])


def assemble(session: Session, checkpoints: Checkpoints, checkpoint: Checkpoint | None) -> Trainer:
    """The trainer of a session, at the checkpoint's state or at the beginning."""
    config, data, world, seed = session.config, session.data, session.world, session.seed
    settings = resolve_settings(config, data.batch_tokens, world, checkpoint, session.reporter)
    torch.set_num_threads(settings.threads)
    about = TaskContext(config, session.model, *load_pair(data.tokenizer_folder), settings.batch_tokens)
    task = TASKS[session.model.task](about)
    task.check(data, session.model)
    check_batch_norm(session.model.normalization, config, world.size)
    check_adaptive(session.model.has_tails, config)
    state = initial_state(session, settings, about)
    if checkpoint is None:
        before = state.progress.plan
        about = start(state, session, task, about)
        task = TASKS[session.model.task](about)
    else:
        before = go_on(state, checkpoint, session.todo, settings)
    epochs = task.epochs(data.train, about.batch_tokens, seed)
    total_steps = agree_on_end(state.progress, config, epochs.num_batches, before=before, folder=session.folder)
    if checkpoint is not None:
        session.reporter.line(continues(state.progress))
    session.reporter.line(
        f"training: {num_parameters(state.model):,} parameters, {len(data.train):,} examples in "
        f"{epochs.num_batches(0):,} batches, at most {total_steps:,} updates; {state.progress.settings.in_words()}"
    )
    if checkpoint is None:
        warn_of_doubts(session, task, state, total_steps)
    log = open_log(session, state.progress)
    return Trainer(
        config=config,
        state=state,
        gradients=Gradients(state.model, task, data.train, config, seed, world),
        batches=epochs,
        validator=make_validator(session, task, about.target, state.progress.validations),
        checkpoints=checkpoints,
        log=log,
        reporter=session.reporter,
        total_steps=total_steps,
        width=(session.model.encoder if session.model.architecture == "encoder_only" else session.model.decoder).dim,
        world=world,
        redraw=Curves(log, session.folder / "curves.svg"),
        watch=LoadWatch(
            settings.threads if world.size == 1 and world.device.type == "cpu" else 1, session.reporter.warn
        ),
    )


def warn_of_doubts(session: Session, task: Task, state: TrainState, total_steps: int) -> None:
    """Say what of the recipe will hardly do what is hoped for. A model that has learned already may be a large one."""
    parameters = num_parameters(state.model) if session.config.init_from is None else 0
    tokens = int(np.maximum(*task.lengths(session.data.train)).sum())
    schedule = session.config.schedule
    for doubt in doubts(schedule, total_steps=total_steps, parameters=parameters, tokens=tokens):
        session.reporter.warn(doubt)


def start(state: TrainState, session: Session, task: Task, about: TaskContext) -> TaskContext:
    """Give a training that begins what it begins with; what its task is about, its batches as large as they are now."""
    config = session.config
    if config.init_from is not None:
        start_from(state, session.model, Path(config.init_from), session.reporter)
    begin(state, task, about, session.data, session.reporter)
    if config.batch_tokens == "auto":
        about = replace(about, batch_tokens=searched_budget(session, state.model, about))
        state.progress.settings = state.progress.settings.model_copy(update={"batch_tokens": about.batch_tokens})
    return about


def searched_budget(session: Session, model: nn.Module, about: TaskContext) -> int:
    """The tokens a batch that fit in memory."""
    return largest_budget(
        model,
        lambda budget: TASKS[session.model.task](replace(about, batch_tokens=budget)),
        session.data.train,
        session.config,
        seed=session.seed,
        world=session.world,
        least=about.batch_tokens,
        reporter=session.reporter,
    )


def initial_model(session: Session, settings: Settings, source: Tokenizer, target: Tokenizer) -> Model:
    """The network with its first weights, a pure function of the seed, on the device.

    Raises RecipeError where it needs one vocabulary and the tokenizers of source and target are two.
    """
    check_one_vocabulary(session.model, shared=source is target)
    sizes = {"source_vocab": source.vocab_size, "target_vocab": target.vocab_size}
    try:
        model = build(session.model, **sizes, seed=session.seed, compute_dtype=PRECISIONS[settings.precision])
    except ValueError as error:  # of what only the vocabularies show
        raise RecipeError(str(error)) from error
    return model.to(session.world.device)


def initial_state(session: Session, settings: Settings, about: TaskContext) -> TrainState:
    """The state before the first update. Raises CannotWrite where the disk has no room for its checkpoints."""
    model, config = initial_model(session, settings, about.source, about.target), session.config
    check_room(session.folder, num_parameters(model), config.keep, ema=config.ema is not None)
    ema = None if config.ema is None else Ema(model, config.ema)
    progress = Progress(settings=settings, plan=plan_document(session.todo))
    return TrainState(model, make_optimizer(model, config.optimizer), ema, progress)


def make_validator(
    session: Session, task: Task, target_tokenizer: Tokenizer, earlier: Sequence[Validation]
) -> Validator:
    """Validation as the recipe asks for it, and as the earlier ones of the training were.

    Raises DataError where it is to be judged by BLEU, and there is none of these references.
    """
    valid, wanted = session.data.valid, session.config.validation
    ordered = task.ordered(valid, session.data.batch_tokens)
    translator = None
    if wanted.bleu and ABILITIES[session.model.task].translates:
        decoding = session.decoding.model_copy(update={"strategy": "search", "beam": wanted.beam, "n_best": 1})
        before = earlier[-1].bleu_signature if earlier else None
        translator = Translator(valid, target_tokenizer, decoding, session.evaluation, before=before)
        if translator.why_not is not None:
            without = f"validation has no BLEU: {translator.why_not}"
            if session.config.early_stopping.metric == "bleu":
                raise DataError(f'{without}; set evaluation.bleu_tokenize, or early_stopping.metric = "loss"')
            session.reporter.warn(without)
            translator = None
    return Validator(task, valid, ordered, translator)


def open_log(session: Session, progress: Progress) -> MetricsLog:
    """metrics.jsonl, cut back to where training goes on; only the first process opens it."""
    mirrors = []
    if session.world.leads and session.config.tensorboard:
        mirrors.append(TensorBoard(session.folder / "tensorboard", step=progress.step))
    log = MetricsLog(session.folder / "metrics.jsonl", mirrors)
    if session.world.leads:
        log.begin(step=progress.step, validated=progress.validated)
    return log


class Curves:
    """Draws curves.svg anew, but not so often that it costs time."""

    def __init__(self, log: MetricsLog, file: Path) -> None:
        self.log, self.file = log, file
        self._drawn = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._drawn >= SECONDS_BETWEEN_CURVES:
            draw(self.log.lines, self.file)
            self._drawn = time.monotonic()


def publish_model(session: Session, trainer: Trainer, command: Sequence[str]) -> None:
    """Publish the best checkpoint, or the mean of the kept last or best ones, which is validated once more."""
    progress, keep, metric = trainer.state.progress, session.config.keep, session.config.early_stopping.metric
    best = best_first(progress.validations, metric)
    steps = {
        "none": [best[0].step],
        "last": progress.saved,
        "best": sorted(each.step for each in best[: keep.best]),
    }[keep.average]
    figures: Mapping[str, Any] = best[0].model_dump()
    with publish(session.todo, command=command, seconds_before=progress.seconds) as draft:
        read = (published_weights(trainer.checkpoints.read(step)) for step in steps)
        weights = next(read) if len(steps) == 1 else mean_weights(read)
        if steps != [best[0].step]:
            load_weights(trainer.state.model, weights, session.folder)
            found = trainer.validator.figures(trainer.state.model, World(device=session.world.device), lambda: None)
            figures = {**figures, **found}
        save_model(draft.folder, session.model, weights, session.data.tokenizer_folder)
        draft.figures.update(
            steps=steps,
            validation={key: figures[key] for key in ("loss", "perplexity", "accuracy", "bleu", "bleu_signature")},
            updates=progress.step,
            epochs=progress.epoch,
            training_seconds=round(progress.seconds, 3),
            parameters=num_parameters(trainer.state.model),
            settings=progress.settings.model_dump(),
            metrics_sha256=trainer.log.sha256(),  # by which `tfm compare` knows that the curve is this training's
        )
        if progress.changes:
            draft.figures["changed_during_training"] = [each.in_words() for each in progress.changes]
    of = f"step {steps[0]:,}" if len(steps) == 1 else f"the mean of steps {', '.join(f'{step:,}' for step in steps)}"
    bleu = "" if figures["bleu"] is None else f", BLEU {figures['bleu']:.2f}"
    session.reporter.line(
        f"model: {of}, validation loss {figures['loss']:.4f}{bleu}; published as {session.todo.folder}"
    )
