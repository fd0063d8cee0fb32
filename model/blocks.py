"""Feed-forward, residual connections with layer norm before or after, and the layers made of them.

Legend: N rows · D width · F feed-forward width.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model import quick
from tfm.model.attention import CrossAttention
from tfm.model.cache import KeysValues, Slots
from tfm.model.layout import AnyLayout
from tfm.model.linear import Linear
from tfm.model.masks import Mask
from tfm.model.mixing import Mixing
from tfm.model.noise import Dropout

Sublayer = Callable[[Tensor], Tensor]


class Activation(NamedTuple):
    """What stands between the two matrices of a feed-forward layer.

    function: (N, num_parts * F) -> (N, F). num_parts: 2 where one half of what comes in is a gate of the other.
    """

    function: Callable[[Tensor], Tensor]
    num_parts: int = 1


def swiglu(x: Tensor) -> Tensor:
    """silu(a) * b of the halves a, b   (Shazeer 2020, eq. 6)."""
    gate, value = x.chunk(2, dim=-1)
    return F.silu(gate) * value


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(F.relu),
    "gelu": Activation(F.gelu),
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


class PreNorm(nn.Module):
    """x + dropout(sublayer(norm(x)))   (Xiong et al. 2020)."""

    ends_normed = False  # the sum of all sublayers leaves the stack as it is

    def __init__(self, norm: nn.Module, dropout: Dropout) -> None:
        super().__init__()
        self.norm, self.dropout = norm, dropout

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        added: Tensor = self.dropout(sublayer(self.norm(x)))
        return x + added


class PostNorm(nn.Module):
    """norm(x + dropout(sublayer(x)))   (Vaswani et al. 2017, sec. 3.1)."""

    ends_normed = True

    def __init__(self, norm: nn.Module, dropout: Dropout) -> None:
        super().__init__()
        self.norm, self.dropout = norm, dropout

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        normed: Tensor = self.norm(x + self.dropout(sublayer(x)))
        return normed


class LayerNorm(nn.LayerNorm):
    """(x - mean) / sqrt(var + eps) * g + b, mean and variance of each row   (Ba et al. 2016, eq. 3)."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, D) -> (N, D)."""
        normed = quick.layer_norm(input, self.weight, self.bias, self.eps)
        return super().forward(input) if normed is None else normed


class BatchNorm(nn.Module):
    """(x - mean) / sqrt(var + eps) * g + b, mean and variance of each column   (Ioffe and Szegedy 2015, alg. 1).

    In training over the rows of the batch, of all its sentences and positions; else over those of training, running
    averages of them, so that a row does not depend on others beside it.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, dim: int, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("variance", torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        """(N, D) -> (N, D)."""
        if not self.training:
            return (x - self.mean) * (self.variance + self.eps).rsqrt() * self.weight + self.bias
        variance, mean = torch.var_mean(x, dim=0, correction=0)
        self._remember(mean.detach(), variance.detach() * len(x) / max(1, len(x) - 1))
        return (x - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        for running, new in ((self.mean, mean), (self.variance, variance)):
            # an update that is not finite is left out, and leaves no trace here either
            running.lerp_(torch.where(new.isfinite(), new, running), self.momentum)


Residual = PreNorm | PostNorm
NORMS: dict[str, type[PreNorm] | type[PostNorm]] = {"pre": PreNorm, "post": PostNorm}
NORMALIZATIONS: dict[str, Callable[[int], nn.Module]] = {
    "layer": LayerNorm,
    "rms": partial(nn.RMSNorm, eps=1e-5),  # x / sqrt(mean(x^2) + eps) * g (Zhang and Sennrich 2019)
    "batch": BatchNorm,
}


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in its residual; with a causal mask the layer of a decoder-only model.

    attention: self-attention, or what mixes positions in its place.
    """

    def __init__(self, attention: Mixing, feed_forward: FeedForward, residual: Callable[[], Residual]) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.around_attention, self.around_feed_forward = residual(), residual()

    def forward(self, rows: Tensor, layout: AnyLayout, mask: Mask) -> Tensor:
        """(N, D) -> (N, D)."""
        return self._sublayers(rows, lambda x: self.attention(x, layout, mask))

    def read(self, rows: Tensor, layout: AnyLayout, mask: Mask) -> tuple[Tensor, KeysValues]:
        """The same, and the cache with which `step` goes on after these rows."""
        caches = []

        def attend(x: Tensor) -> Tensor:
            mixed, key_value = self.attention.read(x, layout, mask)
            caches.append(KeysValues.of(*key_value))
            return mixed

        return self._sublayers(rows, attend), caches[0]

    def step(self, rows: Tensor, cache: KeysValues, slots: Slots) -> Tensor:
        """One new row a hypothesis (R, D) -> (R, D)."""
        return self._sublayers(rows, lambda x: self.attention.step(x, cache, slots))

    def _sublayers(self, rows: Tensor, attend: Sublayer) -> Tensor:
        rows = self.around_attention(rows, attend)
        return self.around_feed_forward(rows, self.feed_forward)  # type: ignore[no-any-return]


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, feed-forward, each in its residual."""

    def __init__(
        self,
        attention: Mixing,
        cross_attention: CrossAttention,
        feed_forward: FeedForward,
        residual: Callable[[], Residual],
    ) -> None:
        super().__init__()
        self.attention, self.cross_attention, self.feed_forward = attention, cross_attention, feed_forward
        self.around_attention, self.around_cross_attention, self.around_feed_forward = (residual() for _ in range(3))

    def forward(
        self, rows: Tensor, layout: AnyLayout, mask: Mask, memory: Tensor, memory_layout: AnyLayout, memory_mask: Mask
    ) -> Tensor:
        """(N, D) -> (N, D)."""
        return self._sublayers(
            rows,
            lambda x: self.attention(x, layout, mask),
            lambda x: self.cross_attention(x, layout, memory, memory_layout, memory_mask),
        )

    def step(
        self,
        rows: Tensor,
        cache: KeysValues,
        slots: Slots,
        remembered: tuple[Tensor, Tensor],
        memory_mask: Mask,
    ) -> Tensor:
        """One new row a hypothesis (R, D) -> (R, D)."""
        return self._sublayers(
            rows,
            lambda x: self.attention.step(x, cache, slots),
            lambda x: self.cross_attention.step(x, remembered, memory_mask),
        )

    def _sublayers(self, rows: Tensor, attend: Sublayer, attend_memory: Sublayer) -> Tensor:
        rows = self.around_attention(rows, attend)
        rows = self.around_cross_attention(rows, attend_memory)
        return self.around_feed_forward(rows, self.feed_forward)  # type: ignore[no-any-return]
