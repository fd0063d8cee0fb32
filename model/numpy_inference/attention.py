"""Multi-head attention of one sentence in numpy.

No mask is needed: an encoder sees all of the sentence, and a decoder's step sees the rows in the cache.

Legend: S keys · T queries · W hypotheses · D width · H heads · G heads of keys and values · K width of a head's
queries and keys · V width of its values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfm.model.numpy_inference.layers import Array, Linear, softmax

KeysValues = tuple[Array, Array]
"""Keys (W, G, T, K) and values (W, G, T, V): of the pieces of each hypothesis, or (1, G, S, ..) of a source."""


@dataclass(frozen=True)
class HeadShapes:
    """The number of heads (H), of heads of keys and values (G), and their widths K and V."""

    num_heads: int
    num_kv_heads: int
    key_dim: int
    value_dim: int

    @property
    def projection_widths(self) -> tuple[int, int, int]:
        """The widths of all heads together: of queries, keys, values."""
        return self.num_heads * self.key_dim, self.num_kv_heads * self.key_dim, self.num_kv_heads * self.value_dim


@dataclass(frozen=True)
class Rotary:
    """Pairs x_2i, x_2i+1 of queries and keys are rotated by the angle pos base^(-2i/K)   (Su et al. 2021, eq. 34)."""

    base: float

    def __call__(self, heads: Array, positions: Array) -> Array:
        """Rotate heads (.., T, K) by their positions (T,)."""
        pairs = np.arange(0, heads.shape[-1], 2).astype(heads.dtype)
        angle = positions[:, None] * np.power(self.base, pairs / -heads.shape[-1], dtype=heads.dtype)
        angle = angle.astype(heads.dtype)
        cos, sin = np.cos(angle), np.sin(angle)
        even_columns, odd_columns = heads[..., 0::2], heads[..., 1::2]
        rotated = np.empty_like(heads)
        rotated[..., 0::2], rotated[..., 1::2] = (
            even_columns * cos - odd_columns * sin,
            even_columns * sin + odd_columns * cos,
        )
        return rotated


def empty_keys_values(heads: HeadShapes, num_texts: int, dtype: Any) -> KeysValues:
    """Keys (W, G, 0, K) and values (W, G, 0, V) of W texts without pieces."""
    shape = num_texts, heads.num_kv_heads, 0
    return np.empty((*shape, heads.key_dim), dtype), np.empty((*shape, heads.value_dim), dtype)


def no_rotation(heads: Array, positions: Array) -> Array:
    """Return queries or keys as they are."""
    return heads


def split_heads(x: Array, num_heads: int) -> Array:
    """Return (.., T, H K) as (.., H, T, K)."""
    return x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(-2, -3)


def scaled_dot_product_attention(heads: HeadShapes, query: Array, key: Array, value: Array) -> Array:
    """Return softmax(Q K^T / sqrt(K)) V   (Vaswani et al. 2017, eq. 1), the heads side by side.

    Args:
        heads: numbers and widths of the heads.
        query: (W, H, T, K).
        key: (W, G, S, K).
        value: (W, G, S, V).

    Returns:
        (W, T, H V).
    """
    batch, _, rows, _ = query.shape
    query = query.reshape(batch, heads.num_kv_heads, -1, heads.key_dim)  # those that share keys are rows of one product
    weights = softmax(query @ key.swapaxes(-1, -2) * np.asarray(heads.key_dim**-0.5, query.dtype))
    mixed = (weights @ value).reshape(batch, heads.num_heads, rows, heads.value_dim)
    return mixed.swapaxes(1, 2).reshape(batch, rows, -1)


@dataclass(frozen=True)
class SelfAttention:
    """query_key_value: D -> H K + G K + G V. output: H V -> D. rotate: the function that positions apply to queries and
    keys.
    """

    heads: HeadShapes
    query_key_value: Linear
    output: Linear
    rotate: Callable[[Array, Array], Array]

    def __call__(self, x: Array) -> Array:
        """Attend from each piece of a sentence (S, D) to all: (S, D)."""
        query, key, value = self._query_key_value(x[None], np.arange(len(x)))
        return self.output(scaled_dot_product_attention(self.heads, query, key, value)[0])

    def step(self, x: Array, cache: KeysValues, position: int) -> tuple[Array, KeysValues]:
        """Attend from the next piece of each hypothesis to those before it.

        Args:
            x: (W, D).
            cache: keys and values so far.
            position: the position of the next piece.

        Returns:
            Rows (W, D), and the cache with the next piece.
        """
        query, *new = self._query_key_value(x[:, None], np.array([position]))
        key, value = (np.concatenate(both, axis=2) for both in zip(cache, new, strict=True))
        return self.output(scaled_dot_product_attention(self.heads, query, key, value)[:, 0]), (key, value)

    def _query_key_value(self, x: Array, positions: Array) -> tuple[Array, Array, Array]:
        """Return queries, keys and values (W, H, T, K) of rows (W, T, D) at these positions (T,)."""
        heads = self.heads
        first, second, _ = heads.projection_widths
        query, key, value = np.split(self.query_key_value(x), [first, first + second], axis=-1)
        query, key = split_heads(query, heads.num_heads), split_heads(key, heads.num_kv_heads)
        return self.rotate(query, positions), self.rotate(key, positions), split_heads(value, heads.num_kv_heads)


@dataclass(frozen=True)
class CrossAttention:
    """query: D -> H K. key_value: the encoder's width -> G K + G V. output: H V -> D."""

    heads: HeadShapes
    query: Linear
    key_value: Linear
    output: Linear

    def project_memory(self, memory: Array) -> KeysValues:
        """The encoder's rows (S, D) -> keys (1, G, S, K) and values (1, G, S, V)."""
        key, value = np.split(self.key_value(memory)[None], [self.heads.projection_widths[1]], axis=-1)
        return split_heads(key, self.heads.num_kv_heads), split_heads(value, self.heads.num_kv_heads)

    def __call__(self, x: Array, memory_keys_values: KeysValues) -> Array:
        """A row of each hypothesis (W, D), all of which attend to the one source -> (W, D)."""
        query = split_heads(self.query(x)[None], self.heads.num_heads)
        return self.output(scaled_dot_product_attention(self.heads, query, *memory_keys_values)[0])
