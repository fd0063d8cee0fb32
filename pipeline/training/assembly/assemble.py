"""Assembly of a training, each part from those before it.

settings -> context of the task -> state (drawn, or of a checkpoint) -> task, batches, number of updates -> trainer
"""

from dataclasses import replace
from pathlib import Path

import torch

from tfm.data.batching.augmented_images import ImageAugmenter
from tfm.data.errors import format_count
from tfm.model.build import num_parameters
from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.artifacts.canonical_json import flatten_keys
from tfm.pipeline.runtime.threads import CpuLoadWatch
from tfm.pipeline.training.assembly.parts import StartingPoint, TrainingSession, TrainingSetup
from tfm.pipeline.training.assembly.setup import build_setup
from tfm.pipeline.training.assembly.starting_point import (
    check_trainable,
    fresh_start,
    initial_state,
    make_task_context,
    resumed_start,
    shard_state,
)
from tfm.pipeline.training.assembly.validators import make_validator
from tfm.pipeline.training.assembly.word2vec import (
    Word2vecGradientComputer,
    no_online_updates_reason,
    trains_like_word2vec,
    uses_online_updates,
)
from tfm.pipeline.training.checkpoints.checkpoint import Checkpoint
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints
from tfm.pipeline.training.checkpoints.resume import (
    KEYS_CHANGEABLE_ON_RESUME,
    plan_document,
    resolve_execution_settings,
    resume_message,
)
from tfm.pipeline.training.checkpoints.train_state import Progress, TrainState
from tfm.pipeline.training.loop import Trainer
from tfm.pipeline.training.metrics_log import CurvesSink, MetricsLog
from tfm.pipeline.training.recipe_warnings import recipe_warnings
from tfm.pipeline.training.trackers.services import open_sinks
from tfm.pipeline.training.trackers.tracker import TrackedRun
from tfm.pipeline.training.update import GradientComputer
from tfm.tokenizer.tokenizer import Tokenizer


def assemble_trainer(session: TrainingSession, checkpoints: Checkpoints, checkpoint: Checkpoint | None) -> Trainer:
    """Return the trainer of a session, at the checkpoint's state or at the beginning.

    Args:
        session: the settings and data of the training.
        checkpoints: the folder of its checkpoints.
        checkpoint: the checkpoint to resume from; None to begin.
    """
    config, data, world = session.config, session.data, session.world
    settings = resolve_execution_settings(config, session.model, data.batch_tokens, world, checkpoint, session.reporter)
    torch.set_num_threads(settings.threads)  # of all that is computed from here on
    context = make_task_context(session, settings)
    check_trainable(session, context)
    state = initial_state(session, settings, context)
    if checkpoint is None:
        start = fresh_start(session, state, context)
        start = replace(start, state=shard_state(session, start.state, settings, context))
    else:
        start = resumed_start(session, shard_state(session, state, settings, context), settings, checkpoint)
    setup = build_setup(session, start, context)
    report_training_setup(session, start, setup)
    return make_trainer(session, start.state, setup, context.target, checkpoints)


def report_training_setup(session: TrainingSession, start: StartingPoint, setup: TrainingSetup) -> None:
    """Report the size of the training and, before the first update, warnings about settings of the recipe.

    Args:
        session: the settings and data of the training.
        start: the starting point; warnings are given where it is new.
        setup: batches and number of updates.
    """
    state, data, reporter = start.state, session.data, session.reporter
    if not start.is_new:
        reporter.line(resume_message(state.progress))
    reporter.line(
        f"training: {num_parameters(state.model):,} parameters, {format_count(len(data.train), 'example')} in "
        f"{format_count(setup.batches.num_batches(0), 'batch', 'batches')}, at most "
        f"{format_count(setup.total_steps, 'update')}; "
        f"{state.progress.settings.describe()}"
    )
    if trains_like_word2vec(session.model, session.config):
        reason = no_online_updates_reason(session.model, session.config, state.progress.settings)
        if reason is not None:
            reporter.warn(
                "word vectors take one step an update, along its mean gradient; word2vec, which is far faster, takes "
                f"one for each prediction: {reason}"
            )
    if start.is_new:
        # a model that has learned already may be a large one
        parameters = num_parameters(state.model) if session.config.init_from is None else 0
        tokens = setup.batches.num_tokens
        config = session.config
        for warning in recipe_warnings(
            config.schedule, config.batch_growth, total_steps=setup.total_steps, parameters=parameters, tokens=tokens
        ):
            reporter.warn(warning)


def make_trainer(
    session: TrainingSession, state: TrainState, setup: TrainingSetup, target: Tokenizer, checkpoints: Checkpoints
) -> Trainer:
    """Return the trainer that takes a state along its course.

    Args:
        session: the settings and data of the training.
        state: the state to train.
        setup: task, batches and number of updates.
        target: the tokenizer of the target.
        checkpoints: the folder of checkpoints.
    """
    config, world, progress = session.config, session.world, state.progress
    validator = make_validator(session, setup.task, target, progress.validations)
    log = open_log(session, progress)
    settings = progress.settings
    wait = world.size == 1 and world.device.type == "cpu" and not settings.num_gradient_workers  # for each other
    return Trainer(
        config=config,
        state=state,
        gradients=make_gradients(session, state, setup),
        batches=setup.batches,
        validator=validator,
        checkpoints=checkpoints,
        log=log,
        reporter=session.reporter,
        total_steps=setup.total_steps,
        width=session.model.width,
        world=world,
        redraw=CurvesSink(log, session.folder / "curves.svg"),
        on_update=CpuLoadWatch(settings.threads if wait else 1, session.reporter.warn),
        on_validation=session.on_validation,
    )


def make_gradients(session: TrainingSession, state: TrainState, setup: TrainingSetup) -> GradientComputer:
    """Return the object that computes the gradients of updates, or that takes a step for each prediction; images are
    augmented in it, where the recipe asks for that.

    Args:
        session: the settings and data of the training.
        state: the state to train.
        setup: task, batches and number of updates.

    Raises:
        RecipeError: the steps need a package that is not installed.
    """
    data, seed, config, world = session.data, session.seed, session.config, session.world
    if uses_online_updates(session.model, config, state.progress.settings):
        return Word2vecGradientComputer(state.model, setup.task, data.train, config, seed, world, state.optimizer)
    gradients = GradientComputer(state.model, setup.task, data.train, config, seed, world, setup.resegmentation)
    return (
        gradients if data.augmentation is None else replace(gradients, at_step=ImageAugmenter(data.augmentation, seed))
    )


def open_log(session: TrainingSession, progress: Progress) -> MetricsLog:
    """Open metrics.jsonl, cut back to the step at which training goes on, and the trackers; only the first process
    opens them.
    """
    log = MetricsLog(session.folder / "metrics.jsonl")
    if session.world.is_main_process:
        document = plan_document(session.plan)
        log.truncate(step=progress.step, last_validation_step=progress.last_validated_step)
        log.mirrors = open_sinks(
            session.config.all_trackers,
            make_tracked_run(session.run_folder, session.plan, progress),
            {key: value for key, value in flatten_keys(document) if key not in KEYS_CHANGEABLE_ON_RESUME},
            log.lines,
            step=progress.step,
            reporter=session.reporter,
        )
    return log


def make_tracked_run(folder: Path, plan: Plan, progress: Progress) -> TrackedRun:
    """Return the run as trackers show it: the settings of its plan, those resolved, and its inputs' fingerprints.

    Args:
        folder: the folder of the run.
        plan: the plan of the model.
        progress: the progress of the training, which has the settings that were resolved.
    """
    resolved = {f"settings.{key}": value for key, value in progress.settings.model_dump(mode="json").items()}
    config = {**dict(flatten_keys(plan.config)), **resolved, "seed": plan.seed}
    return TrackedRun(folder, config, {label: each.fingerprint for label, each in plan.inputs.items()})
