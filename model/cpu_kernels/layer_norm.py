"""Layer norm of rows, and of sums of rows."""

import numpy as np

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
