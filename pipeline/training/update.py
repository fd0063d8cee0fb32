"""One update: the gradient of the loss over the batches of all processes, divided by their tokens once.

A GPU computes while the program goes on. The result of an update can be read as soon as it is there, without waiting
for the work that the GPU was given since.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from tfm.data.batching.example_keys import count_earlier_occurrences
from tfm.data.batching.resegmentation import Resegmenter
from tfm.data.dataset.split import Split
from tfm.pipeline.errors import ComputationError
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.fully_sharded import (
    clip_factor,
    detect_lost_processes,
    is_sharded,
    local_shard,
    total_norm,
)
from tfm.pipeline.runtime.out_of_memory import is_out_of_memory, too_large_message
from tfm.pipeline.runtime.progress import Bar
from tfm.pipeline.tasks.task import Rows, Task
from tfm.pipeline.training.helpers import BatchShard, GradientWorkers, shard_batches
from tfm.pipeline.training_config import TrainingConfig


@dataclass(frozen=True)
class UpdateSums:
    """Sums over the predictions of an update's batches (target tokens, or the units that the task counts instead).

    norm: the gradient's before clipping; None if there was a step for each prediction.
    stop: whether any process was asked to stop.
    """

    loss: float
    nll: float
    tokens: int
    norm: float | None
    stop: bool

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.loss) and (self.norm is None or math.isfinite(self.norm))


def _async_copy_to_cpu(sums: Tensor) -> Callable[[], list[float]]:
    """Copy sums to the CPU as soon as they are computed; reading them waits for this copy, not for later work."""
    copy, is_there = sums.to("cpu", non_blocking=True), torch.cuda.Event()  # type: ignore[no-untyped-call]
    is_there.record()

    def read() -> list[float]:
        is_there.synchronize()
        values: list[float] = copy.tolist()
        return values

    return read


ASYNC_READERS: dict[str, Callable[[Tensor], Callable[[], list[float]]]] = {"cuda": _async_copy_to_cpu}
"""By kind of device, how sums are read that are computed there; elsewhere they are read when they are asked for."""


@dataclass(frozen=True)
class PendingGradient:
    """A gradient that a device may still be computing.

    sums: (6,) on the device: loss, -log p, tokens, stop, failures, norm; (5,) without a norm. read_sums: waits for
    them, and reads them. problem: the message about a failure in this process; None for none.
    """

    sums: Tensor
    read_sums: Callable[[], list[float]]
    problem: str | None
    world: World

    def should_skip(self) -> Tensor:
        """Return () float32 on the device: 1 where the loss or the norm is not finite, or a process failed; else 0."""
        loss, _, _, _, failures, norm = self.sums.unbind()
        return (~(loss.isfinite() & norm.isfinite()) | (failures > 0)).float()

    def wait_for_update_sums(self) -> UpdateSums:
        """Return the result, read by all processes together. Raises ComputationError if one of them failed."""
        loss, nll, tokens, stops, failures, *norm = self.read_sums()
        if failures:
            raise ComputationError(
                next(each for each in self.world.all_gather_object(self.problem) if each is not None)
            )
        return UpdateSums(loss, nll, int(tokens), norm[0] if norm else None, stops > 0)


@dataclass(frozen=True)
class PendingUpdate:
    """Update number `step`, at this rate, of these batches, of which nothing has been read yet.

    epoch, first: the epoch and the number in it of the first of the batches, both from 1.
    """

    gradient: PendingGradient
    group: Sequence[Rows]
    rate: float
    step: int
    epoch: int
    first: int
    bar: Bar

    def describe(self) -> str:
        """Return the number of the update and of its batches and rows, for messages."""
        last = self.first + len(self.group) - 1
        batches = f"batch {self.first}" if self.first == last else f"batches {self.first} to {last}"
        rows = ", ".join(map(str, self.group[0][:5]))
        return f"step {self.step} (epoch {self.epoch}, {batches}, rows {rows}, ...)"


@dataclass
class GradientComputer:
    """Object that computes the gradients of updates into the parameters of a model.

    resegmentation: how texts get other pieces at each update; None: they keep those of the dataset. at_step: the split
    as it is at an update, whose images may be varied. helpers: processes that compute a part of each gradient.
    can_skip: whether the weights are unchanged where a gradient is not finite.
    """

    can_skip: ClassVar[bool] = True

    model: Any
    task: Task
    split: Split
    config: TrainingConfig
    seed: int
    world: World
    resegmentation: Resegmenter | None = None
    at_step: Callable[[Split, int], Split] = lambda split, step: split
    helpers: GradientWorkers = field(default_factory=GradientWorkers)

    def __post_init__(self) -> None:
        self.parameters: list[nn.Parameter] = [p for p in self.model.parameters() if p.requires_grad]
        self.is_sharded = is_sharded(self.model)

    def compute(self, group: Sequence[Rows], step: int, *, stop: bool) -> UpdateSums:
        """Compute a gradient as `begin` does, and return the result.

        Args:
            group: the batches of all processes.
            step: number of the update.
            stop: whether this process wishes to stop.
        """
        return self.start_gradient(group, step, stop=stop).wait_for_update_sums()

    def start_gradient(self, group: Sequence[Rows], step: int, *, stop: bool) -> PendingGradient:
        """Compute the clipped gradient of an update.

        Args:
            group: the batches of all processes.
            step: number of the update.
            stop: the wish of this process to stop, which all get to know.

        Raises:
            ComputationError: memory runs out, and there is no other process.
        """
        self.zero_grad()
        device = self.world.device
        # loss, -log p, tokens, stop, failures: added up on the device
        sums = torch.zeros(5, dtype=torch.float32 if device.type == "mps" else torch.float64, device=device)
        with detect_lost_processes() if self.is_sharded else nullcontext():
            problem = self._accumulate_gradients(group, step, sums)
        if problem is not None and (self.world.size == 1 or self.is_sharded):  # others wait within their passes
            raise ComputationError(problem)
        for parameter in self.parameters:  # of a part that all batches left out (model.dropout.depth)
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        sums[3].fill_(stop)  # to set an item to a number would wait for a GPU
        sums[4].fill_(problem is not None)
        self.world.all_reduce_sum(sums)
        if not self.is_sharded:
            self.world.all_reduce_gradients(self.parameters)
        norm = self._normalize_and_clip(sums[2])
        sums = torch.cat([sums, norm.to(sums)[None]])
        reading = ASYNC_READERS.get(device.type)
        return PendingGradient(sums, sums.tolist if reading is None else reading(sums), problem, self.world)

    def dry_run(self, batches: Sequence[Rows]) -> None:
        """Add up the gradients of some batches and forget them: an error if memory runs out."""
        try:
            with self.model.dropout_rng.no_layer_drop():
                for rows in batches:
                    self._backward_shard(BatchShard(0, rows), 1, torch.zeros(5, device=self.world.device))
        finally:
            self.zero_grad()

    def zero_grad(self) -> None:
        """Discard the gradient."""
        for parameter in self.parameters:
            parameter.grad = None

    def _accumulate_gradients(self, group: Sequence[Rows], step: int, sums: Tensor) -> str | None:
        """Add the gradients and losses of this process's share; return the message about a batch that did not fit in
        memory.

        An error is not raised yet: the other processes wait for the sums of this one, and have to know.
        """
        own_shards, *worker_shards = shard_batches(
            self.world.shard_items(group), 1 + len(self.helpers), count_earlier_occurrences(group)
        )
        self.helpers.dispatch(worker_shards, step)
        problems = self.accumulate_shards(own_shards, step, sums), self.helpers.wait(sums)
        if self.is_sharded and len(own_shards) * self.world.size < len(group):
            self._run_passes_without_batch(group[0], step)
        if problems == (None, None):
            self.helpers.add_gradients_to(self.parameters)
        return problems[0] or problems[1]

    def accumulate_shards(self, shares: Sequence[BatchShard], step: int, sums: Tensor) -> str | None:
        """Add the gradients and losses of some shares.

        Args:
            shares: the shares.
            step: number of the update.
            sums: sums of losses and counts, added to in place.

        Returns:
            The message about a share that did not fit in memory; None if all fitted.
        """
        for share in shares:
            try:
                self._backward_shard(share, step, sums)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                return too_large_message(self.task.describe_batch(self.split, share.rows), f"step {step}")
        return None

    def _run_passes_without_batch(self, rows: Rows, step: int) -> None:
        """Take part in the passes of a round in which this process has no batch: gathering layers takes all processes.

        Args:
            rows: any batch, whose gradient counts nothing.
            step: number of the update.
        """
        self.model.dropout_rng.seed_batch(self.seed, step)
        loss = self.task.loss(self.model, self.task.batch(self.at_step(self.split, step), rows).to(self.world.device))
        (loss.sum * 0.0).backward()  # type: ignore[no-untyped-call]

    def _backward_shard(self, share: BatchShard, step: int, sums: Tensor) -> None:
        """Add the gradient of one batch, or of a share of it, and its loss to the sums.

        Dropout is drawn by the batch's place in the update, whichever process has it, and draws for single examples by
        the update and the example, whatever its batch.
        """
        for number, batch in enumerate(self._iterate_shard_batches(share, step)):
            self.model.dropout_rng.seed_batch(self.seed, step, share.batch_index, share.number + share.count * number)
            loss = self.task.loss(self.model, batch.to(self.world.device))
            loss.sum.backward()  # type: ignore[no-untyped-call]
            sums[0] += loss.sum.detach()
            sums[1] += loss.nll
            sums[2] += loss.count

    def _iterate_shard_batches(self, share: BatchShard, step: int) -> Iterator[Any]:
        """Yield the batch of a share at an update, in parts if resegmentation makes it too large."""
        split, rows, repeats = self.at_step(self.split, step), share.rows, share.repeats
        if self.resegmentation is None:
            yield replace(self.task.batch(split, rows), repeats=repeats)
            return
        for part, row_indices in self.resegmentation.iterate_resegmented_parts(split, rows, step):
            batch, batch_repeats = (
                self.task.batch(part, np.arange(len(part))),
                None if repeats is None else repeats[row_indices],
            )
            yield replace(batch, rows=rows[row_indices], repeats=batch_repeats)

    def _normalize_and_clip(self, tokens: Tensor) -> Tensor:
        """Divide by the tokens, add the penalties, clip; the norm before clipping."""
        with torch.no_grad():
            parameters = [local_shard(p) for p in self.parameters]
            gradients = [local_shard(p.grad) for p in self.parameters if p.grad is not None]
            torch._foreach_mul_(gradients, (1 / tokens).to(gradients[0].dtype))
            if self.config.l1:
                torch._foreach_add_(gradients, [p.sign() for p in parameters], alpha=self.config.l1)
            if self.config.l2:
                torch._foreach_add_(gradients, list[Tensor](parameters), alpha=self.config.l2)
        norm = total_norm(gradients, self.world) if self.is_sharded else nn.utils.get_total_norm(gradients)
        if self.config.clip_norm is not None and self.is_sharded:
            torch._foreach_mul_(gradients, clip_factor(norm, self.config.clip_norm).to(gradients[0].dtype))
        elif self.config.clip_norm is not None:
            nn.utils.clip_grads_with_norm_(self.parameters, self.config.clip_norm, norm)
        return norm
