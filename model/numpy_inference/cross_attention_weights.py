"""The weights of cross-attention in numpy, while a decoder is made to say a target.

Legend: L layers · H heads · T pieces of the target · S pieces of the source · W hypotheses · D width.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tfm.model.numpy_inference.attention import CrossAttention, KeysValues, split_heads
from tfm.model.numpy_inference.layers import Array, softmax
from tfm.model.numpy_inference.transformer import Transformer


@dataclass(frozen=True)
class RecordedCrossAttention(CrossAttention):
    """Cross-attention that keeps its weights (H, S), one array a step, in `recorded_weights`."""

    recorded_weights: list[Array]

    def __call__(self, x: Array, memory_keys_values: KeysValues) -> Array:
        """A row of one hypothesis (1, D) -> (1, D)."""
        heads, key = self.heads, memory_keys_values[0]
        query = split_heads(self.query(x)[None], heads.num_heads)
        grouped_query = query.reshape(1, heads.num_kv_heads, -1, heads.key_dim)  # those that share keys
        scale = np.asarray(heads.key_dim**-0.5, query.dtype)
        self.recorded_weights.append(softmax(grouped_query @ key.swapaxes(-1, -2) * scale).reshape(heads.num_heads, -1))
        return super().__call__(x, memory_keys_values)


def cross_attention_weights(network: Transformer, source: Sequence[int], tokens: Sequence[int]) -> Array:
    """Return the weights (L, H, T, S) of the rows that read `tokens`, each of which predicts the token after it.

    Args:
        network: the network.
        source: ids, end token included.
        tokens: ids that the decoder reads, begin token included.
    """
    recorded_weights: list[list[Array]] = [[] for _ in network.decoder]
    decoder = [
        replace(
            layer, cross_attention=RecordedCrossAttention(**vars(layer.cross_attention), recorded_weights=step_weights)
        )
        for layer, step_weights in zip(network.decoder, recorded_weights, strict=True)
    ]
    recording_network = replace(network, decoder=decoder)
    memory, cache = recording_network.encode(source), recording_network.empty_cache()
    for token in tokens:
        _, cache = recording_network.step(np.array([token]), memory, cache)
    return np.stack([np.stack(step_weights, axis=1) for step_weights in recorded_weights])
