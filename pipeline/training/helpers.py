"""The gradient of an update, computed by several processes of one CPU, each from its share of every batch.

The threads of one process wait for each other at the end of every product; processes meet once an update. The helping
processes are forked from the one that trains. The weights lie in memory that all of them see, and so do the gradients
of each, which the first process adds up.
"""

import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from tfm.model.config import ModelConfig
from tfm.model.layers.derived_weights import invalidate_derived_weights
from tfm.model.word_vectors import PREDICTION_RULES
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.worker_process import (
    WorkerConnection,
    can_fork,
    fork_worker,
    receive_from_worker,
    send_to_worker,
)
from tfm.pipeline.tasks.task import Rows

MEMORY_ALIGNMENT_BYTES = 64
MIN_TOKENS_PER_WORKER = 384
"""A share of fewer tokens takes more time than it saves."""
MAX_WIDTH_FOR_WORKERS = 512
"""Layers of this width make products that threads share well."""
HELPER_KILLED_MESSAGE = (
    "training: a process that computed a part of the gradient was killed; if memory ran out, lower data.batch_tokens. "
    "Checkpoints are intact: the same command resumes"
)


def parallel_training_unsupported_reason(model: ModelConfig, world: World) -> str | None:
    """Why several processes cannot share an update of this model; None if they can."""
    if world.device.type != "cpu":
        return f"they share updates on the CPU, not on {world.device.type}"
    if world.size > 1:
        return "torchrun has started several processes already"
    if model.batch_norm_key is not None:
        return f'each would have other statistics of its batches, with {model.batch_norm_key} = "batch"'
    if not can_fork():
        return "processes are forked on Linux alone, and not by a process that was forked itself"
    if torch.accelerator.is_available():
        return "torch computes no gradients in a process that is forked beside a GPU (CUDA_VISIBLE_DEVICES= hides it)"
    return None


def are_workers_faster(model: ModelConfig, threads: int, update_tokens: int) -> bool:
    """Return whether this number of processes is faster than the same number of threads.

    Processes are slower where their shares are small, and hardly faster where products are large, which threads do as
    fast and in less memory. The gradient of word vectors is mostly zeros, and all of it would be added up.

    Args:
        model: the [model] part of a recipe.
        threads: number of threads or processes.
        update_tokens: tokens of an update.
    """
    has_enough_tokens = update_tokens >= MIN_TOKENS_PER_WORKER * threads
    return (
        threads > 1
        and has_enough_tokens
        and model.width < MAX_WIDTH_FOR_WORKERS
        and model.architecture not in PREDICTION_RULES
    )


@dataclass(frozen=True)
class BatchShard:
    """The share of a batch that one process computes: share `number` of `count` of batch `batch_index` of an update.

    repeats: how often each row occurred before in the update; None: never.
    """

    batch_index: int
    rows: Rows
    number: int = 0
    count: int = 1
    repeats: Rows | None = None


def shard_batches(
    batches: Sequence[tuple[int, Rows]], count: int, repeats: Sequence[Rows] | None = None
) -> list[list[BatchShard]]:
    """Return for each of `count` processes its shares of the batches, as equal as can be; a row is in one of them.

    Rows of a batch are sorted by length, so every count-th of them makes shares of equal lengths.

    Args:
        batches: The row numbers of each batch, with its place in the update.
        count: The number of processes.
        repeats: For each place how often its rows occurred before in the update; None: never.
    """

    def make_shard(batch_index: int, rows: Rows, rank: int) -> BatchShard:
        shard_repeats = None if repeats is None else repeats[batch_index][rank::count]
        return BatchShard(batch_index, rows[rank::count], rank, count, shard_repeats)

    return [
        [make_shard(batch_index, rows, number) for batch_index, rows in batches if len(rows) > number]
        for number in range(count)
    ]


class GradientSource(Protocol):
    """Interface of an object that computes gradients, as helping processes need it."""

    model: Any
    parameters: list[nn.Parameter]

    def zero_grad(self) -> None: ...
    def accumulate_shards(self, shares: Sequence[BatchShard], step: int, sums: Tensor) -> str | None:
        """Add the gradients and losses of some shares.

        Args:
            shares: the shares.
            step: number of the update.
            sums: sums of losses and counts, added to in place.

        Returns:
            The message about a share that did not fit in memory; None if all fitted.
        """


class GradientWorkers:
    """Processes that each compute a part of the gradients; without pipes there are none and it does nothing.

    gradients: of each process those of all parameters, in memory that is shared with it.
    """

    def __init__(self, lines: Sequence[WorkerConnection] = (), gradients: Sequence[Sequence[Tensor]] = ()) -> None:
        self._lines, self._gradients = lines, gradients

    def __len__(self) -> int:
        return len(self._lines)

    def dispatch(self, shares: Sequence[Sequence[BatchShard]], step: int) -> None:
        """Let each begin with its shares of an update."""
        for line, shards in zip(self._lines, shares, strict=True):
            send_to_worker(line, (shards, step), HELPER_KILLED_MESSAGE)

    def wait(self, sums: Tensor) -> str | None:
        """Wait for all of them, and add up their sums; return the message about a share that did not fit in memory.

        Raises DataError if a process was killed.
        """
        problem = None
        for line in self._lines:
            worker_sums, failed = receive_from_worker(line, HELPER_KILLED_MESSAGE)[0]
            sums += torch.tensor(worker_sums, dtype=sums.dtype)
            problem = problem or failed
        return problem

    def add_gradients_to(self, parameters: Sequence[nn.Parameter]) -> None:
        """Add up their gradients, always in the same order."""
        for gradients in self._gradients:
            for parameter, gradient in zip(parameters, gradients, strict=True):
                # it is none of a part that this process's shares left out
                parameter.grad = gradient.clone() if parameter.grad is None else parameter.grad.add_(gradient)

    @contextmanager
    def use_all_threads(self) -> Iterator[None]:
        """Give this process the threads of all while the body runs, in which no helper is asked."""
        threads = torch.get_num_threads()
        torch.set_num_threads(threads + len(self))
        try:
            yield
        finally:
            torch.set_num_threads(threads)


@contextmanager
def start_gradient_workers(gradients: GradientSource, count: int) -> Iterator[GradientWorkers]:
    """Start `count` processes that help to compute these gradients; each process has one thread while the body runs.

    The parameters of `gradients` move to memory that is shared.
    """
    if count == 0:
        yield GradientWorkers()
        return
    threads = torch.get_num_threads()
    parameters = gradients.parameters
    for parameter, buffer in zip(parameters, shared_zeros_like(parameters), strict=True):
        parameter.data = buffer.copy_(parameter.data)
    shared = [shared_zeros_like(parameters) for _ in range(count)]
    with ExitStack() as stack:
        try:
            torch.set_num_threads(1)
            lines = [stack.enter_context(fork_worker(_make_gradient_work(gradients, each))) for each in shared]
            yield GradientWorkers(lines, shared)
        finally:
            torch.set_num_threads(threads)


def shared_zeros_like(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return zeros of the shapes and types of these, in memory that forked processes share."""
    sizes = [-(-tensor.nbytes // MEMORY_ALIGNMENT_BYTES) * MEMORY_ALIGNMENT_BYTES for tensor in tensors]
    memory = mmap.mmap(-1, sum(sizes))
    return [
        torch.frombuffer(memory, dtype=tensor.dtype, count=tensor.numel(), offset=start).view(tensor.shape)
        for tensor, start in zip(tensors, accumulate(sizes, initial=0), strict=False)
    ]


def _make_gradient_work(gradients: GradientSource, gradient_buffers: Sequence[Tensor]) -> Callable[[Any, object], Any]:
    """Return the work of a helper: the gradient of its shares, with the weights as they are now, written to its
    places.
    """

    def work(question: tuple[Sequence[BatchShard], int], _: object) -> tuple[list[float], str | None]:
        invalidate_derived_weights()
        gradients.model.train()
        gradients.zero_grad()
        sums = torch.zeros(5, dtype=torch.float64)
        problem = gradients.accumulate_shards(*question, sums)
        for parameter, buffer in zip(gradients.parameters, gradient_buffers, strict=True):
            if parameter.grad is None:
                buffer.zero_()
            else:
                buffer.copy_(parameter.grad)
        return sums.tolist(), problem

    return work
