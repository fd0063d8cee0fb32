"""One update: the gradient of the loss over the batches of all processes, divided by their tokens once."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tfm.pipeline.config import TrainingConfig
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.out_of_memory import is_out_of_memory, too_large
from tfm.pipeline.tasks.task import Rows, Task


@dataclass(frozen=True)
class Update:
    """Sums over what an update's batches predict (target tokens, or what the task counts instead).

    norm: the gradient's before clipping.
    stop: whether any process was asked to stop.
    """

    loss: float
    nll: float
    tokens: int
    norm: float
    stop: bool
    seconds: float

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.loss) and math.isfinite(self.norm)


@dataclass
class Gradients:
    """Computes the gradients of updates into the parameters of a model."""

    model: Any
    task: Task
    split: Any
    config: TrainingConfig
    seed: int
    world: World

    def __post_init__(self) -> None:
        self.parameters: list[nn.Parameter] = [p for p in self.model.parameters() if p.requires_grad]

    def compute(self, group: Sequence[Rows], step: int, *, stop: bool) -> Update:
        """The clipped gradient of update number `step`; `group` holds the batches of all processes.

        stop: the wish of this process, which all get to know.
        """
        began = time.perf_counter()
        self._forget()
        device = self.world.device
        # loss, -log p, tokens, stop, failures: added up on the device, and read once an update
        sums = torch.zeros(5, dtype=torch.float32 if device.type == "mps" else torch.float64, device=device)
        problem = self._add_up(group, step, sums)
        if problem is not None and self.world.size == 1:
            raise DataError(problem)
        sums[3], sums[4] = float(stop), float(problem is not None)
        self.world.add(sums)
        self.world.add_gradients(self.parameters)
        norm = self._finish(sums[2])
        loss, nll, tokens, stops, failures, size = torch.cat([sums, norm.to(sums)[None]]).tolist()
        if failures:
            raise DataError(next(each for each in self.world.gather(problem) if each is not None))
        return Update(loss, nll, int(tokens), size, stops > 0, time.perf_counter() - began)

    def try_out(self, batches: Sequence[Rows]) -> None:
        """Gradients of some batches, added up and forgotten: an error if memory runs out."""
        try:
            for rows in batches:
                self._backward(rows, 1, 0, torch.zeros(5, device=self.world.device))
        finally:
            self._forget()

    def _forget(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def _add_up(self, group: Sequence[Rows], step: int, sums: Tensor) -> str | None:
        """Add the gradients and losses of this process's share; what did not fit in memory, where something did not.

        That is no error yet: the other processes wait for this one's sums, and have to know.
        """
        for place, rows in self.world.share(group):
            try:
                self._backward(rows, step, place, sums)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                return too_large(self.task.what(self.split, rows), f"step {step}")
        return None

    def _backward(self, rows: Rows, step: int, place: int, sums: Tensor) -> None:
        """Add the gradient of one batch, and its loss to the sums.

        Dropout is drawn by the batch's place in the update, whichever process has it.
        """
        batch = self.task.batch(self.split, rows)
        self.model.noise.begin(self.seed, step, place, 0)
        loss = self.task.loss(self.model, batch.to(self.world.device))
        loss.sum.backward()  # type: ignore[no-untyped-call]
        sums[0] += loss.sum.detach()
        sums[1] += loss.nll
        sums[2] += loss.count

    def _finish(self, tokens: Tensor) -> Tensor:
        """Divide by the tokens, add the penalties, clip; the norm before clipping."""
        parameters = [p for p in self.parameters if p.grad is not None]
        gradients = [p.grad for p in parameters if p.grad is not None]
        with torch.no_grad():
            torch._foreach_mul_(gradients, (1 / tokens).to(gradients[0].dtype))
            if self.config.l1:
                torch._foreach_add_(gradients, [p.sign() for p in parameters], alpha=self.config.l1)
            if self.config.l2:
                torch._foreach_add_(gradients, list[Tensor](parameters), alpha=self.config.l2)
        norm = nn.utils.get_total_norm(gradients)
        if self.config.clip_norm is not None:
            nn.utils.clip_grads_with_norm_(parameters, self.config.clip_norm, norm)
        return norm
