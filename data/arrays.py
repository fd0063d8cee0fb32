"""Arrays of whole numbers, and their hashes: draws without the state of a generator."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def arrow_values(array: Any) -> NDArray[Any]:
    """Return the numbers of an Arrow array without nulls, not copied; its own `to_numpy` loads pandas."""
    return np.from_dlpack(array)


def splitmix64(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The splitmix64 hash of each number (Steele et al. 2014); 64-bit arithmetic wraps around."""
    state = numbers + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def hashes_to_uniform(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Numbers in [0, 1) from the 53 highest bits of hashes."""
    return (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53
