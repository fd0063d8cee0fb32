"""Weights in panels: some outputs side by side, as the compiled loops multiply several rows by them."""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
WeightPacker = Callable[[Array], Array]
"""The form of a weight (out, in) that a loop reads."""


def pack_panels(weight: Array) -> Array:
    """Return a weight (out, in) as (out / LANES, in, LANES), filled up with zeros. numba is loaded."""
    from tfm.model.cpu_kernels.vectors import LANES

    padded = np.pad(weight, ((0, -len(weight) % LANES), (0, 0)))
    return np.ascontiguousarray(padded.reshape(-1, LANES, weight.shape[1]).swapaxes(1, 2))
