"""How loops are compiled by numba, and what they share.

What numba keeps of a loop it compares with that loop's own file alone: who changes `exp` touches the files that use it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

F = TypeVar("F", bound=Callable[..., Any])
REORDERED = {"reassoc", "contract", "nsz", "arcp"}  # sums in the order that suits vectors; no number is ruled out


def compiled(signature: Any) -> Callable[[F], F]:
    """Compile for these types now, or take what an earlier process has compiled, where it could be kept."""

    def compile_or_load(function: F) -> F:
        options: dict[str, Any] = {"fastmath": REORDERED, "error_model": "numpy", "nogil": True}
        try:
            kernel: F = njit(signature, cache=True, **options)(function)
        except (OSError, RuntimeError):  # there is no folder to keep it in, or no room
            kernel = njit(signature, **options)(function)
        return kernel

    return compile_or_load


@njit(inline="always")
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
