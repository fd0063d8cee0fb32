"""The decoder-only Transformer in numpy, step by step: the predictions of `transformer/decoder_only.py`.

Legend: W texts · D width · V vocabulary.
"""

from dataclasses import dataclass

import numpy as np

from tfm.model.numpy_inference.attention import empty_keys_values
from tfm.model.numpy_inference.layers import Array, Embedding, Linear, Sublayer, log_softmax
from tfm.model.numpy_inference.transformer import Cache, EncoderLayer


@dataclass(frozen=True)
class DecoderOnly:
    """pieces so far -> layers in which each row attends to those before it -> output layer (V)."""

    embedding: Embedding
    layers: list[EncoderLayer]
    norm: Sublayer
    output: Linear
    max_length: int

    def empty_cache(self, num_texts: int) -> Cache:
        """Return the cache of texts without pieces."""
        dtype = self.output.weight.dtype
        return [empty_keys_values(layer.attention.heads, num_texts, dtype) for layer in self.layers]

    def prefill(self, pieces: Array) -> Cache:
        """Return the cache of texts (W, T) that have been read but for their last pieces, which are for a step."""
        cache = self.empty_cache(len(pieces))
        for tokens in pieces[:, :-1].T:
            _, cache = self._apply_layers(tokens, cache)
        return cache

    def step(self, tokens: Array, cache: Cache) -> tuple[Array, Cache]:
        """Return log-probabilities (W, V) of the next piece of each text, and the cache with the last pieces (W,)."""
        rows, cache = self._apply_layers(tokens, cache)
        return log_softmax(self.output(self.norm(rows))), cache

    def _apply_layers(self, tokens: Array, cache: Cache) -> tuple[Array, Cache]:
        """Return the rows (W, D) of the next pieces after the last layer, and the cache with them."""
        position, new_cache = cache[0][0].shape[2], []
        rows = self.embedding(tokens, np.full(len(tokens), position))
        for layer, layer_cache in zip(self.layers, cache, strict=True):
            rows, layer_cache = layer.step(rows, layer_cache, position)
            new_cache.append(layer_cache)
        return rows, new_cache
