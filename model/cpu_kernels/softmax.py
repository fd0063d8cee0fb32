"""The parts of a softmax that several loops share."""

import math

import numpy as np

from tfm.model.cpu_kernels.jit import helper, inlined

LANES = 64


@inlined
def exp(x):  # type: ignore[no-untyped-def]
    """e^x of a float32 by Cephes' polynomial, to 2 units in the last place: unlike libm's it is done 16 at a time."""
    x = max(x, np.float32(-87.0))
    power = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    rest = x - power * np.float32(0.693359375)
    rest = rest - power * np.float32(-2.12194440e-4)
    sum_ = np.float32(1.9875691500e-4)
    sum_ = sum_ * rest + np.float32(1.3981999507e-3)
    sum_ = sum_ * rest + np.float32(8.3334519073e-3)
    sum_ = sum_ * rest + np.float32(4.1665795894e-2)
    sum_ = sum_ * rest + np.float32(1.6666665459e-1)
    sum_ = sum_ * rest + np.float32(5.0000001201e-1)
    two_to_power = np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
    return (sum_ * rest * rest + rest + np.float32(1.0)) * two_to_power


@helper
def largest_of(row, lanes):  # type: ignore[no-untyped-def]
    """The largest number of a row, by way of one in each of LANES lanes, which are looked at side by side."""
    whole = len(row) // LANES * LANES
    lanes[:] = -np.inf
    for first in range(0, whole, LANES):
        some = row[first : first + LANES]
        for lane in range(LANES):
            lanes[lane] = some[lane] if some[lane] > lanes[lane] else lanes[lane]
    largest = np.float32(-np.inf)
    for lane in range(LANES):
        largest = max(largest, lanes[lane])
    for v in range(whole, len(row)):
        largest = max(largest, row[v])
    return largest


@helper
def log_sum_exp(row, largest):  # type: ignore[no-untyped-def]
    """log(sum of e^(x - largest)) over the numbers x of a row, the largest of which is given."""
    total = np.float32(0.0)
    for v in range(len(row)):
        total += exp(row[v] - largest)
    return math.log(total)
