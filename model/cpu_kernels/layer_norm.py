"""Layer norm of rows, and of sums of rows; in fp32, or with inputs and outputs of products in bf16."""

import numpy as np

from tfm.model.cpu_kernels.jit import compile_function, inline_jit
from tfm.model.cpu_kernels.softmax import ZERO
from tfm.model.cpu_kernels.vectors import LANES, hsum, load_partial, splat, store_partial


@inline_jit
def _normalize(rows, n, gain, bias, eps, normed):  # type: ignore[no-untyped-def]
    """Set normed = (x - mean) / sqrt(var + eps) * gain + bias of row n, x, of (N, D)."""
    dim = rows.shape[1]
    first, sums, squares = n * dim, splat(ZERO), splat(ZERO)
    for d in range(0, dim, LANES):
        sums = sums + load_partial(rows, first + d, dim - d, ZERO)
    mean = hsum(sums) / np.float32(dim)
    for d in range(0, dim, LANES):
        x = load_partial(rows, first + d, dim - d, mean) - splat(mean)
        squares = squares + x * x
    scale = splat(np.float32(1.0) / np.sqrt(hsum(squares) / np.float32(dim) + eps))
    for d in range(0, dim, LANES):
        x = (load_partial(rows, first + d, dim - d, ZERO) - splat(mean)) * scale
        x = x * load_partial(gain, d, dim - d, ZERO) + load_partial(bias, d, dim - d, ZERO)
        store_partial(normed, first + d, dim - d, x)


@compile_function("void(f4[:,::1], f4[::1], f4[::1], f4, f4[:,::1])")
def layer_norm(rows, gain, bias, eps, normed):  # type: ignore[no-untyped-def]
    """Set normed = (x - mean) / sqrt(var + eps) * gain + bias of each row x.

    Args:
        rows: (N, D).
        gain: (D,).
        bias: (D,).
        eps: added to the variance.
        normed: (N, D), written.
    """
    for n in range(len(rows)):
        _normalize(rows, n, gain, bias, eps, normed)


def _add_and_norm(rows, added, gain, bias, eps, is_pre_norm, normed):  # type: ignore[no-untyped-def]
    """Set rows += added and normed = layer_norm(rows), of (N, D); for post-norm layers rows = normed too."""
    num_rows, dim = rows.shape
    for n in range(num_rows):
        for d in range(n * dim, n * dim + dim, LANES):
            count = n * dim + dim - d
            store_partial(rows, d, count, load_partial(rows, d, count, ZERO) + load_partial(added, d, count, ZERO))
        if is_pre_norm:
            _normalize(rows, n, gain, bias, eps, normed)
        else:
            _normalize(rows, n, gain, bias, eps, rows)
            for d in range(n * dim, n * dim + dim, LANES):
                count = n * dim + dim - d
                store_partial(normed, d, count, load_partial(rows, d, count, ZERO))


_ADD_AND_NORM_SIGNATURE = "void(f4[:,::1], {0}[:,::1], f4[::1], f4[::1], f4, b1, {0}[:,::1])"
add_and_norm = compile_function(_ADD_AND_NORM_SIGNATURE.format("f4"))(_add_and_norm)
add_and_norm_bf16 = compile_function(_ADD_AND_NORM_SIGNATURE.format("u2"))(_add_and_norm)
"""`add_and_norm` of what is added, and normed, in bf16."""
