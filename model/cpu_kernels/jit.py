"""How the loops are compiled by numba."""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])
AT_ONCE = 4
"""So many rows or keys are worked on side by side: what is read for one serves all."""
REORDERED = {"reassoc", "contract", "nsz", "arcp"}  # sums in the order that suits vectors; no number is ruled out
OPTIONS: dict[str, Any] = {"fastmath": REORDERED, "error_model": "numpy"}

inlined = njit(inline="always")
"""A part of loops, compiled where it stands in each."""
helper = njit(**OPTIONS)
"""A part of loops, compiled with the first that calls it."""


def compiled(signature: Any) -> Callable[[F], F]:
    """Compile for these types now, or take what an earlier process has compiled, where it could be kept."""

    def compile_or_load(function: F) -> F:
        try:
            kernel: F = njit(signature, cache=True, nogil=True, **OPTIONS)(function)
        except (OSError, RuntimeError):  # there is no folder to keep it in, or no room
            kernel = njit(signature, nogil=True, **OPTIONS)(function)
        return kernel

    return compile_or_load
