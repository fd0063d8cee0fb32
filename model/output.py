"""What becomes of the logits of an output layer."""

import torch
from torch import Tensor


def log_softmax(logits: Tensor) -> Tensor:
    """Logits (N, V) -> log-probabilities; the logits are used up where no gradient is asked for."""
    # in place where it may be: with a large vocabulary the memory takes longer than the arithmetic
    return logits.log_softmax(-1) if torch.is_grad_enabled() else torch.log_softmax(logits, -1, out=logits)
