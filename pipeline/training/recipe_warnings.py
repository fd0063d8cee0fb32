"""Warnings about settings that probably miss their purpose, with values to set instead, before the first update."""

import math
from collections.abc import Iterator

from tfm.data.errors import format_count
from tfm.pipeline.update_config import BatchGrowthConfig, ScheduleConfig

MAX_PARAMETERS_PER_TOKEN = 1000
"""More parameters than so many for each token of an epoch, and a model knows its corpus by heart before it learns from
it."""


def recipe_warnings(
    schedule: ScheduleConfig,
    growth: BatchGrowthConfig | None = None,
    *,
    total_steps: int,
    parameters: int,
    tokens: int,
) -> Iterator[str]:
    """Yield warnings as messages.

    Args:
        schedule: the [training.schedule] part of a recipe.
        growth: the [training.batch_growth] part of a recipe; None for none.
        total_steps: the most updates of the training.
        parameters: number of the model's parameters.
        tokens: tokens of an epoch, of the longer side of each example.
    """
    warmup, decay, tenth = schedule.warmup_steps, schedule.decay_steps, max(total_steps // 10, 1)
    if warmup > total_steps:
        yield (
            f"training.schedule.warmup_steps = {warmup:,}, and there are at most "
            f"{format_count(total_steps, 'update')}: the learning rate only reaches {total_steps / warmup:.1%} of its "
            f"peak; set it to {tenth:,}, or train longer"
        )
    elif schedule.name == "warmup_stable_decay" and warmup + decay > total_steps:
        yield (
            f"training.schedule.warmup_steps = {warmup:,} and decay_steps = {decay:,} are more than the "
            f"{format_count(total_steps, 'update')}: the learning rate never reaches its peak; set them to {tenth:,} "
            f"and {2 * tenth:,}, or train longer"
        )
    if growth is not None and growth.steps[-1] >= total_steps:
        yield (
            f"training.batch_growth.steps: step {growth.steps[-1]:,} is never followed by an update (at most "
            f"{total_steps:,}). Lower it, or train longer"
        )
    if parameters > MAX_PARAMETERS_PER_TOKEN * tokens:
        yield (
            f"the model has {parameters:,} parameters and an epoch {tokens:,} tokens, {parameters // tokens:,} a "
            "token: it will probably memorise the training data; make model.encoder and model.decoder smaller (layers, "
            "dim, feed_forward_dim), or train on more text"
        )


def divergence_problem(loss: float, num_outputs: int) -> str | None:
    """Why a model with this validation loss in nats should not be used; None if nothing is wrong with it.

    num_outputs: V. A model that knows nothing and says so has the loss ln V.
    """
    uniform = math.log(max(num_outputs, 2))
    if loss <= 2 * uniform + 5:  # less is seen before the first updates, too
        return None
    return (
        f"its validation loss is {loss:.4g}, far above that of uniform probabilities (ln {num_outputs:,} = "
        f"{uniform:.2f}): the training diverged "
        "(lower training.schedule.peak, or raise training.schedule.warmup_steps) or has hardly begun"
    )
