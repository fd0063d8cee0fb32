"""Learning-rate schedules: each a pure function of the step (from 1), so that a resumed run needs no state for them.

All begin with a linear warm-up over `warmup_steps` (noam has its own).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tfm.pipeline.update_config import ScheduleConfig


@dataclass(frozen=True)
class ScheduleContext:
    """The facts of a training on which a schedule may depend besides the step."""

    total_steps: int
    width: int = 512
    losses: Sequence[float] = field(default=())  # of the validations so far


Schedule = Callable[[int, ScheduleConfig, ScheduleContext], float]


def warmup(step: int, config: ScheduleConfig) -> float:
    """Share of the peak: linear up to 1 at `warmup_steps`."""
    return min(1.0, step / config.warmup_steps) if config.warmup_steps else 1.0


def constant(step: int, config: ScheduleConfig, context: ScheduleContext) -> float:
    """Return the peak, after the warm-up.

    Args:
        step: number of the update, from 1.
        config: the [training.schedule] part of a recipe.
        context: the facts of the training besides the step.

    Returns:
        The learning rate.
    """
    return config.peak * warmup(step, config)


def noam(step: int, config: ScheduleConfig, context: ScheduleContext) -> float:
    """Return peak * D^-0.5 * min(step^-0.5, step * warmup^-1.5): Vaswani et al. 2017, eq. 3, with a factor.

    Args:
        step: number of the update, from 1.
        config: the [training.schedule] part of a recipe.
        context: the facts of the training besides the step.

    Returns:
        The learning rate.
    """
    rise = step * math.pow(config.warmup_steps, -1.5) if config.warmup_steps else math.inf
    return config.peak / math.sqrt(context.width) * min(1 / math.sqrt(step), rise)


def inverse_sqrt(step: int, config: ScheduleConfig, context: ScheduleContext) -> float:
    """Return peak * sqrt(warmup / step) after the warm-up: noam scaled so that its top is the peak.

    Args:
        step: number of the update, from 1.
        config: the [training.schedule] part of a recipe.
        context: the facts of the training besides the step.

    Returns:
        The learning rate.
    """
    return config.peak * min(warmup(step, config), math.sqrt(max(config.warmup_steps, 1) / step))


def cosine(step: int, config: ScheduleConfig, context: ScheduleContext) -> float:
    """Return half a cosine from the peak down to `final` at the last step.

    Args:
        step: number of the update, from 1.
        config: the [training.schedule] part of a recipe.
        context: the facts of the training besides the step.

    Returns:
        The learning rate.
    """
    share = (1 + math.cos(math.pi * _decay_progress(step, config, context))) / 2
    return warmup(step, config) * (config.final + (config.peak - config.final) * share)


def linear(step: int, config: ScheduleConfig, context: ScheduleContext) -> float:
    """Return a straight line from the peak down to `final` at the last step.

    Args:
        step: number of the update, from 1.
        config: the [training.schedule] part of a recipe.
        context: the facts of the training besides the step.

    Returns:
        The learning rate.
    """
    decay_progress = _decay_progress(step, config, context)
    return warmup(step, config) * (config.peak + (config.final - config.peak) * decay_progress)


def step_decay(step: int, config: ScheduleConfig, context: ScheduleContext) -> float:
    """Return the peak times `factor` once more every `decay_steps` after the warm-up and `hold_steps` at the peak.

    With SGD, factor 0.5 and half an epoch that is the halving of Sutskever et al. 2014, sec. 3.4.

    Args:
        step: number of the update, from 1.
        config: the [training.schedule] part of a recipe.
        context: the facts of the training besides the step.

    Returns:
        The learning rate.
    """
    cuts = max(step - config.warmup_steps - config.hold_steps, 0) // config.decay_steps
    return config.peak * warmup(step, config) * math.pow(config.factor, cuts)


def warmup_stable_decay(step: int, config: ScheduleConfig, context: ScheduleContext) -> float:
    """Return the peak until the last `decay_steps`, then a straight line down to `final` (Hu et al. 2024).

    Args:
        step: number of the update, from 1.
        config: the [training.schedule] part of a recipe.
        context: the facts of the training besides the step.

    Returns:
        The learning rate.
    """
    begin = context.total_steps - config.decay_steps
    decay_progress = min(max((step - begin) / config.decay_steps, 0.0), 1.0)
    return warmup(step, config) * (config.peak + (config.final - config.peak) * decay_progress)


def plateau(step: int, config: ScheduleConfig, context: ScheduleContext) -> float:
    """Return the peak times `factor` once more whenever the validation loss has not become lower for too long.

    A cut comes at validation `patience` + 1 without a new lowest loss, as torch's ReduceLROnPlateau has it with
    threshold 0; the rate never goes below `final`.

    Args:
        step: number of the update, from 1.
        config: the [training.schedule] part of a recipe.
        context: the facts of the training besides the step.

    Returns:
        The learning rate.
    """
    lowest, num_bad, cuts = math.inf, 0, 0
    for loss in context.losses:
        if loss < lowest:
            lowest, num_bad = loss, 0
        else:
            num_bad += 1
        if num_bad > config.patience:
            cuts, num_bad = cuts + 1, 0
    return warmup(step, config) * max(config.peak * config.factor**cuts, config.final)


def _decay_progress(step: int, config: ScheduleConfig, context: ScheduleContext) -> float:
    """Share of the way from the end of the warm-up to the last step."""
    return min(max((step - config.warmup_steps) / max(context.total_steps - config.warmup_steps, 1), 0.0), 1.0)


SCHEDULES: dict[str, Schedule] = {
    "constant": constant,
    "noam": noam,
    "inverse_sqrt": inverse_sqrt,
    "cosine": cosine,
    "linear": linear,
    "step": step_decay,
    "warmup_stable_decay": warmup_stable_decay,
    "plateau": plateau,
}

TOTAL_STEPS_SCHEDULES = frozenset({"cosine", "linear", "warmup_stable_decay"})
"""Schedules that decay towards the last update: with more updates, each but the warm-up's has another rate."""
