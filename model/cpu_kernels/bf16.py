"""Numbers of bf16, which numba does not know, as the 16 bits that they are: the upper half of a float32."""

import numpy as np

from tfm.model.cpu_kernels.jit import inlined


@inlined
def widened(bits):  # type: ignore[no-untyped-def]
    """16 bits -> the float32 that they are."""
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


@inlined
def rounded(x):  # type: ignore[no-untyped-def]
    """A float32 -> the 16 bits of the nearest number of bf16, of two the even one; of what is not a number, one that is
    none either."""
    bits = np.float32(x).view(np.uint32)
    nearest = np.uint16((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16))
    return nearest if x == x else np.uint16(0x7FC0)
