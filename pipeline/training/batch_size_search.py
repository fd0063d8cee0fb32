"""The largest batch that fits in a GPU's memory, found before the first update (`training.batch_tokens = "auto"`)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from tfm.data.dataset.split import Split
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.out_of_memory import is_out_of_memory
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.tasks.task import Rows, Task
from tfm.pipeline.training.update import GradientComputer
from tfm.pipeline.training_config import TrainingConfig

SEARCHABLE_DEVICES = ("cuda",)
"""Devices that say when their memory is full. A computer's own would slow down first, or kill the training."""
MEMORY_MARGIN = 0.05
"""The share of memory that is left free, for other allocations: fragments, validation, other batches' shapes."""
LAUNCH_ERROR_MESSAGE = "invalid configuration argument"
"""The error message of a GPU for more rows than a kernel can be started with."""
OPTIMIZER_STATE_COPIES = 3
"""Copies of the weights that an optimizer and an average may keep."""


def search_largest_batch_tokens(
    model: nn.Module,
    make_task: Callable[[int], Task],
    split: Split,
    config: TrainingConfig,
    *,
    seed: int,
    world: World,
    minimum: int,
    reporter: Reporter,
) -> int:
    """Return the most tokens a side of a batch, to an eighth, with which an update fits in every process.

    The model is left as it was. The result is hardly more than holds the whole split at once.

    Args:
        model: the network.
        make_task: (tokens) -> the task with batches of so many tokens.
        split: the training data.
        config: the [training] part of a recipe.
        seed: the seed of the training.
        world: the processes of the training.
        minimum: tokens that are assumed to fit; the result on devices whose memory is not searched.
        reporter: receives messages.
    """
    if world.device.type not in SEARCHABLE_DEVICES:
        reporter.line(f"training: batches of {minimum:,} tokens, the dataset's: only a GPU's memory is searched")
        return minimum

    def fits(budget: int) -> bool:
        reporter.line(f"training: do batches of {budget:,} tokens fit?")
        task = make_task(budget)
        fullest_batch = max(task.ordered_batches(split, budget), key=lambda rows: int(task.num_tokens(split, rows)))
        gradients = GradientComputer(model, task, split, config, seed, world)
        return _fits_memory(gradients, [fullest_batch, task.largest_batch(split, budget)])

    def holds_whole_split(budget: int) -> bool:
        return len(make_task(budget).ordered_batches(split, budget)) == 1

    with _preserve_state(model):
        largest: int = min(world.all_gather_object(search_maximum(fits, minimum, holds_whole_split)))
    reporter.line(f"training: batches of {largest:,} tokens fit")
    return largest


def search_maximum(fits: Callable[[int], bool], minimum: int, is_enough: Callable[[int], bool]) -> int:
    """Return the largest number that fits, to an eighth: `minimum` doubled until one does not fit, then bisected.

    Args:
        fits: whether a number fits; not called of `minimum`, nor of numbers beyond the first that is enough.
        minimum: a number that is assumed to fit.
        is_enough: whether nothing larger is needed.
    """
    low, high = minimum, None
    while high is None and not is_enough(low):
        if fits(2 * low):
            low *= 2
        else:
            high = 2 * low
    while high is not None and high - low > max(1, low // 8):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _fits_memory(gradients: GradientComputer, largest_batches: Sequence[Rows]) -> bool:
    """Return whether updates fit into memory beside all else, for the batch with most tokens and that with the longest
    examples.
    """
    try:
        _simulate_update(gradients, largest_batches)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error) and LAUNCH_ERROR_MESSAGE not in str(error):
            raise
        return False
    finally:
        if gradients.world.device.type == "cuda":
            torch.cuda.empty_cache()
    return True


def _simulate_update(gradients: GradientComputer, batches: Sequence[Rows]) -> None:
    """Take as much memory as an optimizer and an average, the margin, and gradients of these batches."""
    device = gradients.world.device
    buffers = [torch.empty_like(parameter) for parameter in gradients.parameters for _ in range(OPTIMIZER_STATE_COPIES)]
    if device.type == "cuda":
        total = torch.cuda.get_device_properties(device).total_memory
        buffers.append(torch.empty(int(MEMORY_MARGIN * total), dtype=torch.uint8, device=device))
    gradients.dry_run(batches)
    del buffers  # until here


@contextmanager
def _preserve_state(model: nn.Module) -> Iterator[None]:
    """Put the model in training mode while the body runs, and restore its mode and buffers afterwards."""
    was_training, saved_buffers = model.training, {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.train()
    try:
        yield
    finally:
        model.train(was_training)
        for name, buffer in model.named_buffers():
            buffer.copy_(saved_buffers[name])
