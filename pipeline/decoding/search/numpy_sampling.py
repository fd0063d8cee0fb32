"""Sampling in numpy: the uniform numbers of draws, and the pieces on which they fall, as `sampling.py` has them.

Legend: W texts · V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm.data.arrays import hashes_to_uniform, splitmix64
from tfm.model.layers.counter_rng import counter_hash

Keys = npt.NDArray[np.uint64]


def sampling_key(seed: int, source: Sequence[int], sample: int) -> int:
    """Return the key of a sample of a sentence, which depends on its ids, not on its position.

    Args:
        seed: decoding.seed.
        source: ids of the sentence.
        sample: number of the sample.
    """
    return counter_hash(seed, *source, sample)


def uniform_numbers(keys: Keys, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return numbers in [0, 1), one a key: hashes of the key and of the number of its step."""
    return hashes_to_uniform(splitmix64(keys + steps.astype(np.uint64)))


def draw_tokens(
    log_probs: npt.NDArray[Any],
    uniform: npt.NDArray[np.float64],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> npt.NDArray[np.int64]:
    """Return the piece (W,) on which each uniform number falls.

    Args:
        log_probs: (W, V), -inf for pieces that may not come.
        uniform: (W,), numbers from 0 to 1.
        temperature: T.
        top_k: number of pieces to draw from; None for all.
        top_p: probability of the pieces to draw from; None for 1.
    """
    rows, tokens = np.arange(len(log_probs)), None
    if top_k is not None or top_p is not None:
        tokens = np.argsort(-log_probs, axis=1, kind="stable")[:, :top_k]
        log_probs = np.take_along_axis(log_probs, tokens, 1)
    exact = log_probs.astype(np.float64)
    weights = np.exp((exact - exact.max(1, keepdims=True)) / temperature)
    sums = weights.cumsum(1)
    if top_p is not None:
        weights[sums - weights >= top_p * sums[:, -1:]] = 0.0
        sums = weights.cumsum(1)
    totals = sums[:, -1]
    targets = np.minimum(uniform * totals, np.nextafter(totals, 0))  # rounded up it would fall beyond the last piece
    columns = np.minimum((sums <= targets[:, None]).sum(1), log_probs.shape[1] - 1)
    drawn_tokens: npt.NDArray[np.int64] = columns if tokens is None else tokens[rows, columns]
    return drawn_tokens
