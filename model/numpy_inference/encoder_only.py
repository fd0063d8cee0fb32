"""The encoder-only Transformer in numpy, for one sentence at a time: the labels of `transformer/encoder_only.py`.

Legend: S source pieces · D width · V labels.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tfm.model.numpy_inference.layers import Array, Embedding, Linear, Sublayer, log_softmax
from tfm.model.numpy_inference.transformer import EncoderLayer

POOLINGS: dict[str, Callable[[Array], Array]] = {
    "mean": lambda rows: rows.mean(0, keepdims=True),
    "max": lambda rows: rows.max(0, keepdims=True),
    "first": lambda rows: rows[:1],
}
"""By name: rows of a sentence (S, D) -> one row (1, D)."""


@dataclass(frozen=True)
class SentenceHead:
    """tanh(W pooled + b)   (Devlin et al. 2019)."""

    pool: Callable[[Array], Array]
    inner: Linear

    def __call__(self, rows: Array) -> Array:
        """(S, D) -> (1, D)."""
        return np.tanh(self.inner(self.pool(rows)))


@dataclass(frozen=True)
class EncoderOnly:
    """source -> encoder -> head -> output layer (V), of each row or, where the head pools, of the sentence.

    begin: ids that are read before each source. head: rows (S, D) -> the input of the output layer.
    """

    begin: tuple[int, ...]
    embedding: Embedding
    encoder: list[EncoderLayer]
    encoder_norm: Sublayer
    head: Sublayer
    output: Linear
    max_length: int

    def __call__(self, source: Array) -> Array:
        """Source ids (S,), end token included -> log-probabilities of labels (S, V) or (1, V)."""
        ids = np.array([*self.begin, *source])
        rows = self.embedding(ids, np.arange(len(ids)))
        for layer in self.encoder:
            rows = layer(rows)
        return log_softmax(self.output(self.head(self.encoder_norm(rows))))
