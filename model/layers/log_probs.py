"""Log-probabilities from the logits of an output layer."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tfm.model.cpu_kernels import dispatch

RowSelection = slice | Tensor
LogProbFn = Callable[[RowSelection], Tensor]
"""(rows (r,)) -> log-probabilities (r, V) of the next piece, computed when asked for; the caller may overwrite the
result.
"""


@dataclass(frozen=True)
class LogProbsOfLogits:
    """A `LogProbFn` of the logits (r, V) that a model computes when asked for some rows (r,), in fp32 or bf16.

    Args:
        logits: (rows (r,)) -> logits (r, V).
        hidden: input of the output layer (R, E), where a part of its outputs may be computed alone.
        output: the output layer.
    """

    logits: Callable[[RowSelection], Tensor]
    hidden: Tensor | None = None
    output: nn.Module | None = None

    def __call__(self, rows: RowSelection) -> Tensor:
        """Return the log-softmax of the logits of these rows."""
        return log_softmax(_widen(self.logits(rows)))


@dataclass(frozen=True)
class LogProbsOfCandidates:
    """A `LogProbFn` over candidates: their probabilities sum to 1, and other pieces have -inf.

    Args:
        logits: (rows (r,)) -> logits (r, U) of the candidates, -inf where one is not a row's.
        candidates: (U,) their ids, ascending; each control token keeps its own place.
        vocab_size: V.
    """

    logits: Callable[[RowSelection], Tensor]
    candidates: Tensor
    vocab_size: int

    def candidate_log_probs(self, rows: RowSelection) -> Tensor:
        """Return the log-probabilities (r, U) of the candidates alone."""
        return log_softmax(_widen(self.logits(rows)))

    def __call__(self, rows: RowSelection) -> Tensor:
        """Return the log-probabilities (r, V) of these rows."""
        log_probs = self.candidate_log_probs(rows)
        return log_probs.new_full((len(log_probs), self.vocab_size), -math.inf).index_copy_(
            1, self.candidates, log_probs
        )


def _widen(logits: Tensor) -> Tensor:
    """Return logits in fp32 if they are in bf16."""
    return logits.float() if logits.dtype is torch.bfloat16 else logits


def log_softmax(logits: Tensor) -> Tensor:
    """Return log-probabilities of logits (N, V), which are overwritten where no gradient is asked for."""
    if torch.is_grad_enabled():
        return logits.log_softmax(-1)
    # in place where it may be: with a large vocabulary the memory takes longer than the arithmetic
    return logits if dispatch.try_log_softmax_in_place(logits) else torch.log_softmax(logits, -1, out=logits)
