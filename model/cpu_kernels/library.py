"""Loops of a decoding step that torch does slowly where there are few queries a sentence, compiled by numba.

Each has its equation in torch (`mix.py`, `output.py`, `cache.py`, `blocks.py`, `pipeline/decoding/search/top_k.py`),
which takes its place where numba is not installed; a test holds the two equal. A row is worked out from that row
alone, in one order whatever is beside it. Here are the norms; the other loops are gathered.
"""

import numpy as np
from numba import njit

from tfm.model.cpu_kernels.decode_attention import AT_ONCE, attend, list_allowed, take_slots, write
from tfm.model.cpu_kernels.jit import compiled
from tfm.model.cpu_kernels.log_softmax_topk import best_of_logits, log_softmax

__all__ = [
    "AT_ONCE",
    "add_and_norm",
    "attend",
    "best_of_logits",
    "layer_norm",
    "list_allowed",
    "log_softmax",
    "take_slots",
    "write",
]


@njit(inline="always")
def _normed(row, gain, bias, eps, normed):  # type: ignore[no-untyped-def]
    """normed = (x - mean) / sqrt(var + eps) * gain + bias of a row x (D,)."""
    dim = len(row)
    total = np.float32(0.0)
    for d in range(dim):
        total += row[d]
    mean = total / np.float32(dim)
    squares = np.float32(0.0)
    for d in range(dim):
        squares += (row[d] - mean) * (row[d] - mean)
    scale = np.float32(1.0) / np.sqrt(squares / np.float32(dim) + eps)
    for d in range(dim):
        normed[d] = (row[d] - mean) * scale * gain[d] + bias[d]


@compiled("void(f4[:,::1], f4[::1], f4[::1], f4, f4[:,::1])")
def layer_norm(rows, gain, bias, eps, normed):  # type: ignore[no-untyped-def]
    """normed = (x - mean) / sqrt(var + eps) * gain + bias of each row x of (N, D)."""
    for n in range(len(rows)):
        _normed(rows[n], gain, bias, eps, normed[n])


@compiled("void(f4[:,::1], f4[:,::1], f4[::1], f4[::1], f4, f4[:,::1])")
def add_and_norm(rows, added, gain, bias, eps, normed):  # type: ignore[no-untyped-def]
    """rows += added, and normed = layer_norm(rows), of (N, D)."""
    num_rows, dim = rows.shape
    for n in range(num_rows):
        for d in range(dim):
            rows[n, d] += added[n, d]
        _normed(rows[n], gain, bias, eps, normed[n])
