"""Resuming a training: from the newest checkpoint of the same plan, with the settings it began with."""

import os
from pathlib import Path
from typing import Any, Literal

import torch

from tfm.data.errors import format_count
from tfm.model.config import ModelConfig
from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.artifacts.canonical_json import find_differences, to_jsonable
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.devices import PRECISIONS, resolve_precision
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.runtime.threads import choose_num_threads as choose_threads
from tfm.pipeline.training.checkpoints.checkpoint import Checkpoint
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints
from tfm.pipeline.training.checkpoints.train_state import (
    NUM_PROCESSES_KEY,
    ExecutionSettings,
    Progress,
    SettingChange,
    TrainState,
    read_progress,
)
from tfm.pipeline.training.helpers import are_workers_faster, parallel_training_unsupported_reason
from tfm.pipeline.training_config import TrainingConfig

# A training may be given more time; anything else would make it another one.
KEYS_CHANGEABLE_ON_RESUME = frozenset(
    {"config.training.max_steps", "config.training.max_epochs", "config.training.early_stopping.patience"}
)


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return the document by which two trainings are compared: config, inputs and seed."""
    inputs = {label: each.fingerprint for label, each in plan.inputs.items()}
    return {"config": to_jsonable(plan.config), "inputs": inputs, "seed": plan.seed}


def find_resume_step(checkpoints: Checkpoints, plan: Plan, config: TrainingConfig, reporter: Reporter) -> int | None:
    """Return the step to resume from, or None to begin; the folder of another training is renamed, with a message.

    Args:
        checkpoints: the folder of checkpoints.
        plan: the plan of the training.
        config: the [training] part of a recipe.
        reporter: receives messages.

    Raises:
        DataError: there are checkpoints and none can be read.
    """
    checkpoints.remove_leftovers()
    newest = checkpoints.newest_verified(reporter)
    if newest is None:
        return None
    progress = read_progress(newest)
    changes = find_differences(progress.plan, plan_document(plan))
    words = "; ".join(f"{_plan_key_to_recipe_key(key)} {old} -> {new}" for key, (old, new) in sorted(changes.items()))
    if changes.keys() <= KEYS_CHANGEABLE_ON_RESUME and not is_past_end(progress, config):
        return progress.step
    folder = checkpoints.folder.parent
    backup_folder = _unused_old_folder(folder)
    folder.rename(backup_folder)
    progress_words = (
        f"; it has done {format_count(progress.step, 'update')} already"
        if changes.keys() <= KEYS_CHANGEABLE_ON_RESUME
        else ""
    )
    reporter.line(
        f"training: the recipe changed ({words}){progress_words}, so training starts from scratch. The previous one "
        f"was moved to {backup_folder}"
    )
    return None


def restore_progress(
    state: TrainState, checkpoint: Checkpoint, next_plan: Plan, settings: ExecutionSettings, num_processes: int
) -> dict[str, Any]:
    """Restore the saved state, and record the changes of the plan.

    Args:
        state: overwritten by the checkpoint's state.
        checkpoint: the checkpoint.
        next_plan: the plan from now on.
        settings: the settings from now on.
        num_processes: the number of processes from now on.

    Returns:
        The plan up to the checkpoint.
    """
    state.restore(checkpoint)
    progress, plan = state.progress, plan_document(next_plan)
    previous_plan = progress.plan
    changes = sorted(find_differences(previous_plan, plan).items())
    setting_changes = [
        SettingChange(step=progress.step, key=_plan_key_to_recipe_key(key), old=old, new=new)
        for key, (old, new) in changes
    ]
    if (saved_num_processes := progress.num_processes) != num_processes:
        setting_changes.append(
            SettingChange(step=progress.step, key=NUM_PROCESSES_KEY, old=saved_num_processes, new=num_processes)
        )
    progress.changes, progress.plan, progress.settings = [*progress.changes, *setting_changes], plan, settings
    return previous_plan


def resume_message(progress: Progress) -> str:
    """The message for a resumed training, with the settings that were changed."""
    changes = [f"{each.key} {each.old} -> {each.new}" for each in progress.changes if each.step == progress.step]
    changed = f"; changed: {'; '.join(changes)}" if changes else ""
    return f"training: resuming after step {progress.step:,}{changed}"


def _plan_key_to_recipe_key(key: str) -> str:
    """A key of a plan as it stands in a recipe."""
    return key.removeprefix("config.")


def is_past_end(progress: Progress, config: TrainingConfig) -> bool:
    """Return whether the training has gone beyond the end that is now asked for."""
    steps, epochs = config.max_steps, config.max_epochs
    passes = progress.epoch + (progress.batch > 0)
    return (steps is not None and progress.step > steps) or (epochs is not None and passes > epochs)


def _unused_old_folder(folder: Path) -> Path:
    """`<folder>.old-N` with the first N that is free."""
    number = 1
    while os.path.lexists(backup_folder := folder.with_name(f"{folder.name}.old-{number}")):
        number += 1
    return backup_folder


def resolve_execution_settings(
    config: TrainingConfig,
    model: ModelConfig,
    batch_tokens: int,
    world: World,
    checkpoint: Checkpoint | None,
    reporter: Reporter,
) -> ExecutionSettings:
    """Return the decisions that depend on the machine: made at the first start, restored from the checkpoint of a
    resumed run.

    Args:
        config: the [training] part of a recipe.
        model: the [model] part of a recipe.
        batch_tokens: tokens a batch of the dataset.
        world: the processes of the training.
        checkpoint: the checkpoint of a resumed run; None for the first start.
        reporter: receives messages.

    Raises:
        RecipeError: the number of processes is another one, or processes are asked for that cannot be.
    """
    dtype = resolve_precision(config.precision, world.device)
    precision = next(name for name, each in PRECISIONS.items() if each == dtype)
    threads = _choose_num_threads(config, world, checkpoint)
    size = config.batch_tokens if isinstance(config.batch_tokens, int) else batch_tokens
    current = ExecutionSettings(
        device=world.device.type,
        precision=world.all_gather_object(precision)[0],  # each process has measured; the first one's word counts
        threads=threads,
        parallel=_choose_parallel(config, model, world, threads, size),
        world_size=world.size,
        batch_tokens=size,
    )
    if checkpoint is None:
        return current
    saved_settings = read_progress(checkpoint).settings
    if saved_settings.world_size != current.world_size and not config.elastic:
        raise RecipeError(
            f"training began with {saved_settings.world_size} processes, not {current.world_size}; resume it with "
            f"torchrun --nproc-per-node {saved_settings.world_size}, set training.elastic = true to go on with "
            f"{current.world_size}, or move {checkpoint.folder.parent.parent} away to start over"
        )
    restored_settings = {
        setting_name: getattr(saved_settings, setting_name)
        for setting_name in ("threads", "parallel")
        if getattr(config, setting_name) == "auto"
    }
    if parallel_training_unsupported_reason(model, world) is not None:  # of another machine
        restored_settings["parallel"] = "threads"
    current = current.model_copy(update=restored_settings)
    for setting_name in ("device", "torch", "threads", "parallel"):
        earlier_value, current_value = getattr(saved_settings, setting_name), getattr(current, setting_name)
        if earlier_value != current_value:
            difference = "last digits may differ"
            if setting_name == "parallel" or (
                setting_name == "threads" and "processes" in (saved_settings.parallel, current.parallel)
            ):
                difference = "dropout draws other numbers for other shares, so losses differ by more than rounding"
            reporter.warn(
                f"training began with {setting_name} {earlier_value} and continues with {current_value}: {difference}"
            )
    return saved_settings.model_copy(update=current.model_dump(include={"device", "torch", "threads", "parallel"}))


def _choose_num_threads(config: TrainingConfig, world: World, checkpoint: Checkpoint | None) -> int:
    """Return the number of threads of this process; of several processes each has its own, as torchrun sets them."""
    if config.threads != "auto":
        return config.threads
    is_measured = world.size == 1 and checkpoint is None
    return choose_threads(world.device) if is_measured else torch.get_num_threads()


def _choose_parallel(
    config: TrainingConfig, model: ModelConfig, world: World, threads: int, batch_tokens: int
) -> Literal["threads", "processes"]:
    """Return the way in which a CPU computes an update: by threads, or by as many processes."""
    reason = parallel_training_unsupported_reason(model, world)
    if config.parallel == "auto":
        is_faster = are_workers_faster(model, threads, batch_tokens * config.accumulate)
        return "processes" if reason is None and is_faster else "threads"
    if config.parallel == "processes" and reason is not None:
        raise RecipeError(f'training.parallel = "processes": {reason}; write "threads", or remove it')
    return config.parallel
