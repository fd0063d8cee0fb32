"""The feed-forward layer and its activations.

Legend: N rows · D width · F feed-forward width.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model.layers.dropout import Dropout
from tfm.model.layers.linear import LOW_PRECISION_DTYPES, Linear, linear_relu, low_precision_linear, pad_rows


class Activation(NamedTuple):
    """Activation between the two matrices of a feed-forward layer.

    function: (N, num_parts * F) -> (N, F). num_parts: 2 where one half of the input is a gate of the other.
    """

    function: Callable[[Tensor], Tensor]
    num_parts: int = 1


def gelu_tanh(x: Tensor) -> Tensor:
    """Return x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))   (Hendrycks and Gimpel 2016, sec. 2)."""
    return F.gelu(x, approximate="tanh")


def identity(x: Tensor) -> Tensor:
    """Return x: two matrices without a function between them can do no more than one."""
    return x


def swiglu(x: Tensor) -> Tensor:
    """Return silu(a) * b of the halves a, b   (Shazeer 2020, eq. 6)."""
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
    "none": Activation(identity),
}


class _LowPrecisionReluFeedForward(torch.autograd.Function):
    """relu(x W1^T + b1) W2^T + b2 with products in low precision. Values between them stay in it, as ReLU rounds
    nothing: a copy to full precision and back takes longer than the ReLU.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, inner: Tensor, inner_bias: Tensor, outer: Tensor, outer_bias: Tensor, dtype: torch.dtype
    ) -> Tensor:
        low_x, low_inner, low_outer = pad_rows(x, dtype), inner.to(dtype), outer.to(dtype)
        activated = linear_relu(low_x, low_inner, inner_bias.to(dtype))
        ctx.save_for_backward(low_x, activated, low_inner, low_outer)
        ctx.out_dtype = x.dtype
        return low_precision_linear(activated, low_outer, outer_bias, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        low_x, activated, low_inner, low_outer = ctx.saved_tensors
        low_grad = pad_rows(grad, low_x.dtype)  # rows of zeros, where rows were topped up, add nothing below
        grad_activated = torch.ops.aten.threshold_backward(low_grad @ low_outer, activated, 0)
        grad_x = (grad_activated @ low_inner)[: len(grad)]
        sums = (grad_activated.t() @ low_x, grad_activated.sum(0), low_grad.t() @ activated)
        return *(each.to(ctx.out_dtype) for each in (grad_x, *sums)), grad.sum(0), None


class FeedForward(nn.Module):
    """FFN(x) = activation(x W1 + b1) W2 + b2, with dropout after the activation (Vaswani et al. 2017, eq. 2).

    Args:
        dim: D.
        inner_dim: F.
        activation: function between the matrices, and the number of parts that it takes.
        dropout: dropout after the activation.
        compute_dtype: precision of the operands of matrix products in training.
    """

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
        inner, outer = self.inner, self.outer
        if self.training and self._is_plain_relu():
            return _LowPrecisionReluFeedForward.apply(  # type: ignore[no-untyped-call,no-any-return]
                rows, inner.weight, inner.bias, outer.weight, outer.bias, inner.compute_dtype
            )
        output: Tensor = self.outer(self.dropout(self.activation(self.inner(rows))))
        return output

    def _is_plain_relu(self) -> bool:
        """Return whether both products are in low precision and nothing but ReLU stands between them."""
        return (
            self.activation is F.relu
            and (type(self.dropout) is Dropout and self.dropout.rate == 0)
            and all(
                type(product) is Linear and product.compute_dtype in LOW_PRECISION_DTYPES and product.bias is not None
                for product in (self.inner, self.outer)
            )
        )
