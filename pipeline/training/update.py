"""One update: the gradient of the loss over the batches of all processes, divided by their tokens once."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pipeline.config import TrainingConfig
from pipeline.errors import DataError
from pipeline.training.distributed import World

Rows = NDArray[np.int64]


class Task(Protocol):
    """What training needs of a task: `batch` has `.to`, `loss` gives `sum`, `nll` and `count`."""

    def batch(self, split: Any, rows: Rows) -> Any: ...
    def loss(self, model: Any, batch: Any) -> Any: ...


@dataclass(frozen=True)
class Update:
    """Sums over the target tokens of an update's batches; `norm` is the gradient's before clipping.

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
        for parameter in self.parameters:
            parameter.grad = None
        device = self.world.device
        # loss, -log p, tokens, stop: added up on the device, and read once an update
        sums = torch.zeros(4, dtype=torch.float32 if device.type == "mps" else torch.float64, device=device)
        for place, rows in self.world.share(group):
            self._backward(rows, step, place, sums)
        sums[3] = float(stop)
        self.world.add(sums)
        self.world.add_gradients(self.parameters)
        norm = self._finish(sums[2])
        loss, nll, tokens, stops, size = torch.cat([sums, norm.to(sums)[None]]).tolist()
        return Update(loss, nll, int(tokens), size, stops > 0, time.perf_counter() - began)

    def _backward(self, rows: Rows, step: int, place: int, sums: Tensor) -> None:
        """Add the gradient of one batch, and its loss to the sums.

        Dropout is drawn by the batch's place in the update, whichever process has it.
        """
        batch = self.task.batch(self.split, rows)
        self.model.noise.begin(self.seed, step, place, 0)
        try:
            loss = self.task.loss(self.model, batch.to(self.world.device))
            loss.sum.backward()
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise _too_large(rows, step) from error
        except RuntimeError as error:
            if "can't allocate memory" in str(error):  # torch's way to say it on a CPU
                raise _too_large(rows, step) from error
            raise
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


def _too_large(rows: Rows, step: int) -> DataError:
    return DataError(
        f"step {step}: a batch of {len(rows)} examples does not fit in memory; lower data.batch_tokens "
        "(and raise training.accumulate as much)"
    )
