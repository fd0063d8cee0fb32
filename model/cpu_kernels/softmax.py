"""The parts of a softmax that several loops share."""

import math

import numpy as np

from tfm.model.cpu_kernels.jit import helper_jit, inline_jit
from tfm.model.cpu_kernels.vectors import (
    LANES,
    exp2,
    floor,
    hmax,
    hsum,
    load,
    load_partial,
    splat,
    store,
    vmax,
)

BLOCK_SIZE = 8 * LANES
MIN_FLOAT32 = np.float32(np.finfo(np.float32).min)
NEG_INF, ZERO = np.float32(-np.inf), np.float32(0.0)


@inline_jit
def exp(x):  # type: ignore[no-untyped-def]
    """Return e^x of a vector by Cephes' polynomial, to 1 unit in the last place."""
    x = vmax(x, splat(np.float32(-87.0)))
    power = floor(x * splat(np.float32(1.44269504)) + splat(np.float32(0.5)))
    rest = x - power * splat(np.float32(0.693359375))
    rest = rest - power * splat(np.float32(-2.12194440e-4))
    sum_ = splat(np.float32(1.9875691500e-4))
    sum_ = sum_ * rest + splat(np.float32(1.3981999507e-3))
    sum_ = sum_ * rest + splat(np.float32(8.3334519073e-3))
    sum_ = sum_ * rest + splat(np.float32(4.1665795894e-2))
    sum_ = sum_ * rest + splat(np.float32(1.6666665459e-1))
    sum_ = sum_ * rest + splat(np.float32(5.0000001201e-1))
    return (sum_ * rest * rest + rest + splat(np.float32(1.0))) * exp2(power)


@helper_jit
def log_sum_exp(numbers, offset, count, maxima):  # type: ignore[no-untyped-def]
    """Return the largest of some numbers x, and log(sum of e^(x - largest)).

    A block is summed while it is in the cache, as e^(x - largest so far): if a larger one comes, the sum is divided.

    Args:
        numbers: the array.
        offset: place of the first number.
        count: the number of numbers.
        maxima: (count // BLOCK_SIZE + 1, LANES), written: the largest of each block, one in each lane of a vector.
    """
    end, running_max, sums = offset + count, MIN_FLOAT32, splat(ZERO)
    blocks_end = offset + count // BLOCK_SIZE * BLOCK_SIZE
    for block in range(offset, blocks_end, BLOCK_SIZE):
        best = load(numbers, block)
        for i in range(block + LANES, block + BLOCK_SIZE, LANES):
            best = vmax(best, load(numbers, i))
        store(maxima, (block - offset) // BLOCK_SIZE * LANES, best)
        if hmax(best) > running_max:
            sums, running_max = sums * exp(splat(running_max - hmax(best))), hmax(best)
        for i in range(block, block + BLOCK_SIZE, LANES):
            sums = sums + exp(load(numbers, i) - splat(running_max))
    best = splat(NEG_INF)
    for i in range(blocks_end, end, LANES):
        best = vmax(best, load_partial(numbers, i, end - i, NEG_INF))
    store(maxima, (blocks_end - offset) // BLOCK_SIZE * LANES, best)
    if hmax(best) > running_max:
        sums, running_max = sums * exp(splat(running_max - hmax(best))), hmax(best)
    for i in range(blocks_end, end, LANES):
        sums = sums + exp(load_partial(numbers, i, end - i, NEG_INF) - splat(running_max))
    return running_max, math.log(hsum(sums))
