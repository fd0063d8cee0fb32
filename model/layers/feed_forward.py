"""The feed-forward layer and its activations.

Legend: N rows · D width · F feed-forward width.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model.layers.dropout import Dropout
from tfm.model.layers.linear import Linear


class Activation(NamedTuple):
    """What stands between the two matrices of a feed-forward layer.

    function: (N, num_parts * F) -> (N, F). num_parts: 2 where one half of what comes in is a gate of the other.
    """

    function: Callable[[Tensor], Tensor]
    num_parts: int = 1


def gelu_tanh(x: Tensor) -> Tensor:
    """x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))   (Hendrycks and Gimpel 2016, sec. 2)."""
    return F.gelu(x, approximate="tanh")


def swiglu(x: Tensor) -> Tensor:
    """silu(a) * b of the halves a, b   (Shazeer 2020, eq. 6)."""
    gate, value = x.chunk(2, dim=-1)
    return F.silu(gate) * value


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(F.relu),
    "gelu": Activation(F.gelu),
    "gelu_tanh": Activation(gelu_tanh),
    "tanh": Activation(torch.tanh),
    "silu": Activation(F.silu),
    "glu": Activation(F.glu, 2),  # a * sigmoid(b) (Dauphin et al. 2017)
    "swiglu": Activation(swiglu, 2),
}


class FeedForward(nn.Module):
    """FFN(x) = activation(x W1 + b1) W2 + b2, with dropout after the activation (Vaswani et al. 2017, eq. 2)."""

    def __init__(
        self,
        dim: int,
        inner_dim: int,
        *,
        activation: Activation,
        dropout: Dropout,
        compute_dtype: torch.dtype,
    ) -> None:
        super().__init__()
        parts = activation.num_parts
        self.inner = Linear(dim, parts * inner_dim, compute_dtype=compute_dtype, num_parts=parts)
        self.outer = Linear(inner_dim, dim, compute_dtype=compute_dtype)
        self.activation, self.dropout = activation.function, dropout

    def forward(self, rows: Tensor) -> Tensor:
        """(N, D) -> (N, D)."""
        output: Tensor = self.outer(self.dropout(self.activation(self.inner(rows))))
        return output
