"""Parts of a layer in numpy: products, norms, residual connections, feed-forward; embeddings with their positions.

Legend: T rows · D width · F feed-forward width · V vocabulary.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
Sublayer = Callable[[Array], Array]
_erf = np.vectorize(math.erf, otypes=[np.float64])  # numpy has none, and scipy is slow to load


@dataclass(frozen=True)
class Linear:
    """y = W x + b: weight (out, in), bias (out,), or a 0 for all (1,)."""

    weight: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        return x @ self.weight.T + self.bias

    def select_outputs(self, outputs: Array) -> "Linear":
        """Return the layer of some outputs (n,) alone."""
        return Linear(self.weight[outputs], self.bias if len(self.bias) == 1 else self.bias[outputs])


@dataclass(frozen=True)
class LayerNorm:
    """(x - mean) / sqrt(var + eps) * g + b of each row   (Ba et al. 2016, eq. 3)."""

    gain: Array
    bias: Array
    eps: float

    def __call__(self, x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + self.eps) * self.gain + self.bias


@dataclass(frozen=True)
class PreNorm:
    """x + f(norm(x))   (Xiong et al. 2020)."""

    norm: LayerNorm

    def __call__(self, x: Array, sublayer: Sublayer) -> Array:
        return x + sublayer(self.norm(x))


@dataclass(frozen=True)
class PostNorm:
    """norm(x + f(x))   (Vaswani et al. 2017, sec. 3.1)."""

    norm: LayerNorm

    def __call__(self, x: Array, sublayer: Sublayer) -> Array:
        return self.norm(x + sublayer(x))


Residual = PreNorm | PostNorm


def relu(x: Array) -> Array:
    """Return max(0, x)."""
    return np.maximum(x, 0)


def gelu(x: Array) -> Array:
    """Return x Phi(x), Phi the distribution function of the standard normal   (Hendrycks and Gimpel 2016)."""
    return x * (0.5 + 0.5 * _erf(x * 0.5**0.5).astype(x.dtype))


def gelu_tanh(x: Array) -> Array:
    """Return x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))   (Hendrycks and Gimpel 2016, sec. 2)."""
    return x * (0.5 + 0.5 * np.tanh(np.asarray((2 / np.pi) ** 0.5, x.dtype) * (x + 0.044715 * x**3)))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "tanh": np.tanh,
    "none": lambda x: x,
}
"""By name: what is applied to each number between the two products of a feed-forward layer."""


@dataclass(frozen=True)
class FeedForward:
    """W2 f(W1 x + b1) + b2   (Vaswani et al. 2017, eq. 2, with f = ReLU)."""

    inner: Linear
    outer: Linear
    activation: Callable[[Array], Array] = relu

    def __call__(self, x: Array) -> Array:
        return self.outer(self.activation(self.inner(x)))


@dataclass(frozen=True)
class Embedding:
    """Vectors of pieces (V, D), scaled, and the term added for their positions: (T,) -> (T, D) or (T, 1)."""

    table: Array
    scale: float
    added: Callable[[Array], Array]

    def __call__(self, tokens: Array, positions: Array) -> Array:
        """(T,), (T,) -> (T, D)."""
        rows = self.table[tokens] * np.asarray(self.scale, self.table.dtype)
        return rows + np.asarray(self.added(positions), rows.dtype)


def zero_positions(positions: Array) -> Array:
    """Return the term added at positions (T,) by no position scheme: 0 to every row."""
    return np.zeros((len(positions), 1))


def sinusoids(dim: int, positions: Array) -> Array:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(the same)   (Vaswani et al. 2017, sec. 3.5)."""
    angle = positions[:, None] * np.exp(np.arange(0, dim, 2) * (-np.log(10_000.0) / dim))
    table = np.empty((len(positions), dim))
    table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle)[:, : dim // 2]
    return table


def softmax(x: Array) -> Array:
    """Return the softmax over the last axis."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def log_softmax(x: Array) -> Array:
    """Over the last axis."""
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))
