"""The encoder-decoder Transformer in numpy, for one sentence at a time: ready before torch would be loaded.

The result is that of `transformer/encoder_decoder.py`, for the models that `weights.py` knows.

Legend: S source pieces · T pieces of a hypothesis · W hypotheses · D width · V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tfm.model.numpy_inference.attention import CrossAttention, KeysValues, SelfAttention, empty_keys_values
from tfm.model.numpy_inference.layers import Array, Embedding, FeedForward, Linear, Residual, Sublayer, log_softmax

Cache = list[KeysValues]
"""Keys and values of each decoder layer."""


def attend_step(
    attention: SelfAttention, residual: Residual, x: Array, cache: KeysValues, position: int
) -> tuple[Array, KeysValues]:
    """Attend from a new row of each text or hypothesis to those before it, in a residual.

    Args:
        attention: self-attention.
        residual: its residual.
        x: (W, D).
        cache: keys and values of the rows so far.
        position: the position of the new rows.

    Returns:
        Rows (W, D), and the cache with the new ones.
    """
    new_cache = cache

    def attend(x: Array) -> Array:
        nonlocal new_cache
        mixed, new_cache = attention.step(x, cache, position)
        return mixed

    return residual(x, attend), new_cache


@dataclass(frozen=True)
class EncoderLayer:
    """Self-attention, then feed-forward, each in its residual; step by step the layer of a decoder-only model."""

    attention: SelfAttention
    feed_forward: FeedForward
    around_attention: Residual
    around_feed_forward: Residual

    def __call__(self, x: Array) -> Array:
        """(S, D) -> (S, D)."""
        return self.around_feed_forward(self.around_attention(x, self.attention), self.feed_forward)

    def step(self, x: Array, cache: KeysValues, position: int) -> tuple[Array, KeysValues]:
        """Compute a new row of each text.

        Args:
            x: (W, D).
            cache: keys and values of the rows so far.
            position: the position of the new rows.

        Returns:
            Rows (W, D), and the cache with them.
        """
        x, new_cache = attend_step(self.attention, self.around_attention, x, cache, position)
        return self.around_feed_forward(x, self.feed_forward), new_cache


@dataclass(frozen=True)
class DecoderLayer:
    """Self-attention over the rows so far, cross-attention, feed-forward, each in its residual."""

    attention: SelfAttention
    cross_attention: CrossAttention
    feed_forward: FeedForward
    around_attention: Residual
    around_cross_attention: Residual
    around_feed_forward: Residual

    def step(
        self, x: Array, cache: KeysValues, memory_keys_values: KeysValues, position: int
    ) -> tuple[Array, KeysValues]:
        """Compute a new row of each hypothesis.

        Args:
            x: (W, D).
            cache: keys and values of the rows so far.
            memory_keys_values: keys and values of the memory.
            position: the position of the new rows.

        Returns:
            Rows (W, D), and the cache with them.
        """
        x, new_cache = attend_step(self.attention, self.around_attention, x, cache, position)
        x = self.around_cross_attention(x, lambda x: self.cross_attention(x, memory_keys_values))
        return self.around_feed_forward(x, self.feed_forward), new_cache


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

    def encode(self, source: Sequence[int]) -> Cache:
        """Source ids, end token included -> keys and values of them for each decoder layer: the memory."""
        x = self.source_embedding(np.array(source), np.arange(len(source)))
        for layer in self.encoder:
            x = layer(x)
        x = self.encoder_norm(x)
        return [layer.cross_attention.project_memory(x) for layer in self.decoder]

    def empty_cache(self) -> Cache:
        """Return the cache of one hypothesis without pieces."""
        dtype = self.output.weight.dtype
        return [empty_keys_values(layer.attention.heads, 1, dtype) for layer in self.decoder]

    def step(self, tokens: Array, memory: Cache, cache: Cache) -> tuple[Array, Cache]:
        """Return log-probabilities of the next piece of each hypothesis.

        Args:
            tokens: (W,), the last piece of each hypothesis.
            memory: keys and values of the source, of each layer.
            cache: keys and values of the pieces so far, of each layer.

        Returns:
            Log-probabilities (W, V), and the cache with the last piece.
        """
        position = cache[0][0].shape[2]
        x = self.target_embedding(tokens, np.full(len(tokens), position))
        new_cache = []
        for layer, layer_cache, memory_keys_values in zip(self.decoder, cache, memory, strict=True):
            x, layer_cache = layer.step(x, layer_cache, memory_keys_values, position)
            new_cache.append(layer_cache)
        return log_softmax(self.output(self.decoder_norm(x))), new_cache

    def restrict(self, pieces: Array) -> "Transformer":
        """Return the network that writes some pieces alone, whose probabilities sum to 1.

        pieces: their ids (U,), ascending; the network that is returned has their places among these for ids.
        """
        embedding = replace(self.target_embedding, table=self.target_embedding.table[pieces])
        return replace(self, target_embedding=embedding, output=self.output.select_outputs(pieces))


def select_cache_rows(cache: Cache, rows: Array) -> Cache:
    """Return the cache with rows[i] of this one as hypothesis i."""
    return [(keys[rows], values[rows]) for keys, values in cache]
