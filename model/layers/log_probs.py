"""Log-probabilities from the logits of an output layer."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tfm.model.cpu_kernels import dispatch

RowSelection = slice | Tensor
LogProbFn = Callable[[RowSelection], Tensor]
"""(rows (r,)) -> log-probabilities (r, V) of the next piece, computed when asked for; the caller may overwrite the
result.
"""


@dataclass(frozen=True)
class LogProbsOfLogits:
    """A `LogProbFn` of the logits (r, V) that a model computes when asked for some rows (r,), in fp32 or bf16."""

    logits: Callable[[RowSelection], Tensor]

    def __call__(self, rows: RowSelection) -> Tensor:
        """Return the log-softmax of the logits of these rows."""
        logits = self.logits(rows)
        return log_softmax(logits.float() if logits.dtype is torch.bfloat16 else logits)


def log_softmax(logits: Tensor) -> Tensor:
    """Return log-probabilities of logits (N, V), which are overwritten where no gradient is asked for."""
    if torch.is_grad_enabled():
        return logits.log_softmax(-1)
    # in place where it may be: with a large vocabulary the memory takes longer than the arithmetic
    return logits if dispatch.try_log_softmax_in_place(logits) else torch.log_softmax(logits, -1, out=logits)
