"""The number of updates of a training, computed before the first one, and whether it may be changed later."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.training.checkpoints.train_state import Progress
from tfm.pipeline.training.schedules import TOTAL_STEPS_SCHEDULES
from tfm.pipeline.training_config import TrainingConfig

NumBatches = Callable[[int], int]
"""(number of an epoch) -> the number of its batches. Epochs may differ, so each is counted."""


def last_step(config: TrainingConfig, num_batches: NumBatches, world_size: int) -> int:
    """Return the step at which training ends unless it stops early, towards which decaying schedules count.

    Args:
        config: the [training] part of a recipe.
        num_batches: (number of an epoch) -> the number of its batches.
        world_size: number of processes.
    """
    if config.max_epochs is None:
        assert config.max_steps is not None, "a training ends"
        return config.max_steps
    step = 0
    for epoch in range(config.max_epochs):
        step = step_after_epoch(num_batches(epoch), step, config, world_size)
        if config.max_steps is not None and step >= config.max_steps:
            return config.max_steps
    return step


def step_after_epoch(num_batches: int, step: int, config: TrainingConfig, world_size: int) -> int:
    """Return the number of updates done after an epoch; its last update takes the remaining batches.

    Args:
        num_batches: number of the epoch's batches.
        step: number of updates done before it.
        config: the [training] part of a recipe.
        world_size: number of processes.
    """
    growth = config.batch_growth
    for grows_at in () if growth is None else growth.steps:
        size = config.accumulation_steps_at(step + 1) * world_size
        num_updates = min(max(grows_at - step, 0), -(-num_batches // size))  # those before it grows
        step, num_batches = step + num_updates, max(num_batches - num_updates * size, 0)
    return step - (-num_batches // (config.accumulation_steps_at(step + 1) * world_size))


def resolve_total_steps(
    progress: Progress,
    config: TrainingConfig,
    num_batches: NumBatches,
    *,
    previous_plan: Mapping[str, Any],
    folder: Path,
) -> int:
    """Return the step at which a training that begins or goes on ends, and set the progress's schedule end.

    Args:
        progress: the progress of the training, changed in place.
        config: the [training] part of a recipe.
        num_batches: (number of an epoch) -> the number of its batches.
        previous_plan: the plan of the training up to here.
        folder: the folder of the training.

    Raises:
        RecipeError: the schedule decays towards another end: the rates of the updates done and of those to come would
            be of two trainings. To stop at the current step is possible.
    """
    world_size = progress.settings.world_size
    total_steps = last_step(config, num_batches, world_size)
    if progress.step and config.schedule.name in TOTAL_STEPS_SCHEDULES:
        agreed_total = progress.total_steps
        if not agreed_total:  # a checkpoint of a version that did not write it down
            agreed_total = last_step(_apply_planned_end(previous_plan, config), num_batches, world_size)
        if total_steps not in (agreed_total, progress.step):
            raise RecipeError(_changed_end_message(progress.step, agreed_total, total_steps, config, folder))
        progress.total_steps = agreed_total
    else:
        progress.total_steps = total_steps
    return total_steps


def _apply_planned_end(plan: Mapping[str, Any], config: TrainingConfig) -> TrainingConfig:
    """The config with the end that a plan has."""
    planned_end = {key: plan["config"]["training"][key] for key in ("max_steps", "max_epochs")}
    return TrainingConfig.model_validate({**config.model_dump(), **planned_end})


def _changed_end_message(
    step: int, planned_steps: int, configured_steps: int, config: TrainingConfig, folder: Path
) -> str:
    publish = f"publish it as it is (training.max_steps = {step}); " if step < planned_steps else ""
    return (
        f"{folder}: has done {step:,} of {planned_steps:,} updates of a {config.schedule.name} schedule, which decays "
        f"towards its last update: ending after {configured_steps:,} instead would be another training.\n"
        f"Choose: {publish}start a new one from its model (training.init_from = {str(folder.parent / 'model')!r}) "
        "elsewhere; or move the folder away to start over. A constant or inverse_sqrt schedule could continue."
    )
