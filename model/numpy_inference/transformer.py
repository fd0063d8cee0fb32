"""The encoder-decoder Transformer in numpy, for one sentence at a time: it is there before torch would be loaded.

It computes what `transformer/encoder_decoder.py` computes, of the models that `weights.py` knows. A sentence by itself
needs no mask: its encoder sees all of it, and a decoder's step sees what is in the cache.

Legend: S source pieces · T pieces of a hypothesis · W hypotheses · D width · H heads · G heads of keys and values ·
K width of a head's queries and keys · V width of its values, or the vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
Sublayer = Callable[[Array], Array]
KeysValues = tuple[Array, Array]
"""Keys (W, G, T, K) and values (W, G, T, V): of the pieces of each hypothesis, or (1, G, S, ..) of a source."""
Cache = list[KeysValues]
"""Those of each decoder layer."""


@dataclass(frozen=True)
class Linear:
    """y = W x + b: weight (out, in), bias (out,) or 0."""

    weight: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        return x @ self.weight.T + self.bias


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


@dataclass(frozen=True)
class FeedForward:
    """W2 max(0, W1 x + b1) + b2   (Vaswani et al. 2017, eq. 2)."""

    inner: Linear
    outer: Linear

    def __call__(self, x: Array) -> Array:
        return self.outer(np.maximum(self.inner(x), 0))


@dataclass(frozen=True)
class Heads:
    """How many (H), how many of keys and values (G), and their widths K and V."""

    number: int
    groups: int
    key_dim: int
    value_dim: int

    @property
    def widths(self) -> tuple[int, int, int]:
        """Of all heads together: of queries, keys, values."""
        return self.number * self.key_dim, self.groups * self.key_dim, self.groups * self.value_dim


@dataclass(frozen=True)
class Rotary:
    """Pairs x_2i, x_2i+1 of queries and keys are turned by the angle pos base^(-2i/K)   (Su et al. 2021, eq. 34)."""

    base: float

    def __call__(self, heads: Array, positions: Array) -> Array:
        """Heads (.., T, K) at positions (T,)."""
        pairs = np.arange(0, heads.shape[-1], 2).astype(heads.dtype)
        angle = positions[:, None] * np.power(self.base, pairs / -heads.shape[-1], dtype=heads.dtype)
        angle = angle.astype(heads.dtype)
        cos, sin = np.cos(angle), np.sin(angle)
        even, odd = heads[..., 0::2], heads[..., 1::2]
        turned = np.empty_like(heads)
        turned[..., 0::2], turned[..., 1::2] = even * cos - odd * sin, even * sin + odd * cos
        return turned


def as_they_are(heads: Array, positions: Array) -> Array:
    """Queries or keys that no position turns."""
    return heads


def softmax(x: Array) -> Array:
    """Over the last axis."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def log_softmax(x: Array) -> Array:
    """Over the last axis."""
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def split_heads(x: Array, number: int) -> Array:
    """(.., T, H K) -> (.., H, T, K)."""
    return x.reshape(*x.shape[:-1], number, -1).swapaxes(-2, -3)


def mix(heads: Heads, query: Array, key: Array, value: Array) -> Array:
    """softmax(Q K^T / sqrt(K)) V   (Vaswani et al. 2017, eq. 1), the heads side by side.

    query (W, H, T, K), key (W, G, S, K), value (W, G, S, V) -> (W, T, H V).
    """
    batch, _, rows, _ = query.shape
    query = query.reshape(batch, heads.groups, -1, heads.key_dim)  # those that share keys are rows of one product
    weights = softmax(query @ key.swapaxes(-1, -2) * np.asarray(heads.key_dim**-0.5, query.dtype))
    mixed = (weights @ value).reshape(batch, heads.number, rows, heads.value_dim)
    return mixed.swapaxes(1, 2).reshape(batch, rows, -1)


@dataclass(frozen=True)
class SelfAttention:
    """query_key_value: D -> H K + G K + G V. output: H V -> D. turn: what positions do to queries and keys."""

    heads: Heads
    query_key_value: Linear
    output: Linear
    turn: Callable[[Array, Array], Array]

    def __call__(self, x: Array) -> Array:
        """All pieces of a sentence (S, D), each of which sees all -> (S, D)."""
        query, key, value = self._parts(x[None], np.arange(len(x)))
        return self.output(mix(self.heads, query, key, value)[0])

    def step(self, x: Array, cache: KeysValues, position: int) -> tuple[Array, KeysValues]:
        """The next piece of each hypothesis (W, D), which sees those before it -> (W, D), and the cache with it."""
        query, *new = self._parts(x[:, None], np.array([position]))
        key, value = (np.concatenate(both, axis=2) for both in zip(cache, new, strict=True))
        return self.output(mix(self.heads, query, key, value)[:, 0]), (key, value)

    def _parts(self, x: Array, positions: Array) -> tuple[Array, Array, Array]:
        """Queries, keys and values (W, H, T, K) of rows (W, T, D) at these positions (T,)."""
        heads = self.heads
        first, second, _ = heads.widths
        query, key, value = np.split(self.query_key_value(x), [first, first + second], axis=-1)
        query, key = split_heads(query, heads.number), split_heads(key, heads.groups)
        return self.turn(query, positions), self.turn(key, positions), split_heads(value, heads.groups)


@dataclass(frozen=True)
class CrossAttention:
    """query: D -> H K. key_value: the encoder's width -> G K + G V. output: H V -> D."""

    heads: Heads
    query: Linear
    key_value: Linear
    output: Linear

    def remember(self, memory: Array) -> KeysValues:
        """The encoder's rows (S, D) -> keys (1, G, S, K) and values (1, G, S, V)."""
        key, value = np.split(self.key_value(memory)[None], [self.heads.widths[1]], axis=-1)
        return split_heads(key, self.heads.groups), split_heads(value, self.heads.groups)

    def __call__(self, x: Array, remembered: KeysValues) -> Array:
        """A row of each hypothesis (W, D), all of which attend to the one source -> (W, D)."""
        query = split_heads(self.query(x)[None], self.heads.number)
        return self.output(mix(self.heads, query, *remembered)[0])


@dataclass(frozen=True)
class EncoderLayer:
    """Self-attention, then feed-forward, each in its residual."""

    attention: SelfAttention
    feed_forward: FeedForward
    around_attention: Residual
    around_feed_forward: Residual

    def __call__(self, x: Array) -> Array:
        """(S, D) -> (S, D)."""
        return self.around_feed_forward(self.around_attention(x, self.attention), self.feed_forward)


@dataclass(frozen=True)
class DecoderLayer:
    """Self-attention over what is there, cross-attention, feed-forward, each in its residual."""

    attention: SelfAttention
    cross_attention: CrossAttention
    feed_forward: FeedForward
    around_attention: Residual
    around_cross_attention: Residual
    around_feed_forward: Residual

    def step(self, x: Array, cache: KeysValues, remembered: KeysValues, position: int) -> tuple[Array, KeysValues]:
        """A new row of each hypothesis (W, D) -> (W, D), and the cache with it."""
        grown = cache

        def attend(x: Array) -> Array:
            nonlocal grown
            mixed, grown = self.attention.step(x, cache, position)
            return mixed

        x = self.around_attention(x, attend)
        x = self.around_cross_attention(x, lambda x: self.cross_attention(x, remembered))
        return self.around_feed_forward(x, self.feed_forward), grown


@dataclass(frozen=True)
class Embedding:
    """Vectors of pieces, scaled, and what is added of their positions. table (V, D), added: (T,) -> (T, D), or 0."""

    table: Array
    scale: float
    added: Callable[[Array], Array]

    def __call__(self, tokens: Array, positions: Array) -> Array:
        """(T,), (T,) -> (T, D)."""
        rows = self.table[tokens] * np.asarray(self.scale, self.table.dtype)
        return rows + np.asarray(self.added(positions), rows.dtype)


def sinusoids(dim: int, positions: Array) -> Array:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(the same)   (Vaswani et al. 2017, sec. 3.5)."""
    angle = positions[:, None] * np.exp(np.arange(0, dim, 2) * (-np.log(10_000.0) / dim))
    table = np.empty((len(positions), dim))
    table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle)[:, : dim // 2]
    return table


@dataclass(frozen=True)
class Transformer:
    """source -> encoder -> memory; pieces so far and memory -> decoder -> output layer (V)."""

    source_embedding: Embedding
    encoder: list[EncoderLayer]
    encoder_norm: Sublayer
    target_embedding: Embedding
    decoder: list[DecoderLayer]
    decoder_norm: Sublayer
    output: Linear
    max_length: int

    def read(self, source: Sequence[int]) -> Cache:
        """Source ids, end token included -> keys and values of them for each decoder layer: the memory."""
        x = self.source_embedding(np.array(source), np.arange(len(source)))
        for layer in self.encoder:
            x = layer(x)
        x = self.encoder_norm(x)
        return [layer.cross_attention.remember(x) for layer in self.decoder]

    def empty_cache(self) -> Cache:
        """That of one hypothesis without pieces."""
        kind = self.output.weight.dtype
        each = [layer.attention.heads for layer in self.decoder]
        return [
            (np.empty((1, heads.groups, 0, heads.key_dim), kind), np.empty((1, heads.groups, 0, heads.value_dim), kind))
            for heads in each
        ]

    def step(self, tokens: Array, memory: Cache, cache: Cache) -> tuple[Array, Cache]:
        """The last piece of each hypothesis (W,) -> log-probabilities of the next one (W, V), and the cache with it."""
        position = cache[0][0].shape[2]
        x = self.target_embedding(tokens, np.full(len(tokens), position))
        grown = []
        for layer, own, remembered in zip(self.decoder, cache, memory, strict=True):
            x, own = layer.step(x, own, remembered, position)
            grown.append(own)
        return log_softmax(self.output(self.decoder_norm(x))), grown


def select(cache: Cache, rows: Array) -> Cache:
    """The cache whose hypothesis i is rows[i] of this one."""
    return [(keys[rows], values[rows]) for keys, values in cache]
