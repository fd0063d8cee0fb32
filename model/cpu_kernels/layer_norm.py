"""Layer norm of rows, and of sums of rows; in fp32, or with what products in bf16 give and take."""

import numpy as np

from tfm.model.cpu_kernels.bf16 import rounded, widened
from tfm.model.cpu_kernels.jit import compiled, inlined


@inlined
def _normalize(row, gain, bias, eps, normed):  # type: ignore[no-untyped-def]
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
        _normalize(rows[n], gain, bias, eps, normed[n])


@compiled("void(f4[:,::1], f4[:,::1], f4[::1], f4[::1], f4, f4[:,::1])")
def add_and_norm(rows, added, gain, bias, eps, normed):  # type: ignore[no-untyped-def]
    """rows += added, and normed = layer_norm(rows), of (N, D)."""
    num_rows, dim = rows.shape
    for n in range(num_rows):
        for d in range(dim):
            rows[n, d] += added[n, d]
        _normalize(rows[n], gain, bias, eps, normed[n])


@compiled("void(f4[:,::1], u2[:,::1], f4[::1], f4[::1], f4, b1, u2[:,::1])")
def add_and_norm_low(rows, added, gain, bias, eps, is_pre_norm, normed):  # type: ignore[no-untyped-def]
    """rows += added, and normed = layer_norm(rows), of (N, D); added and normed are bf16.

    Where norms stand after sublayers, rows become what is normed.
    """
    (num_rows, dim), whole = rows.shape, np.empty(rows.shape[1], np.float32)
    for n in range(num_rows):
        for d in range(dim):
            rows[n, d] += widened(added[n, d])
        _normalize(rows[n], gain, bias, eps, whole)
        for d in range(dim):
            normed[n, d] = rounded(whole[d])
        if not is_pre_norm:
            for d in range(dim):
                rows[n, d] = whole[d]
