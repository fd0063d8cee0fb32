"""How the loops are compiled by numba, and where what was compiled is kept.

A loop is made of functions of several files, and numba looks only at the file in which the loop itself stands. So the
name under which it is kept holds a hash of all files of this folder: a change of any of them has all loops compiled
anew. No loop may be made of functions from elsewhere.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache

Function = Callable[..., Any]
AT_ONCE = 4
"""So many rows or keys are worked on side by side: what is read for one serves all."""
REORDERED = {"reassoc", "contract", "nsz", "arcp"}  # sums in the order that suits vectors; no number is ruled out
OPTIONS: dict[str, Any] = {"fastmath": REORDERED, "error_model": "numpy"}

inlined = njit(inline="always")
"""A part of loops, compiled where it stands in each."""
helper = njit(**OPTIONS)
"""A part of loops, compiled with the first that calls it."""


def compiled(signature: Any) -> Callable[[Function], Any]:
    """Compile for these types now, or take what an earlier process has compiled, where it could be kept."""

    def compile_or_load(function: Function) -> Any:
        try:
            return _compile(function, signature, _FolderCache)
        except (OSError, RuntimeError):  # there is no folder to keep it in, or no room
            return _compile(function, signature, None)

    return compile_or_load


def _compile(function: Function, signature: Any, kept_in: Callable[[Function], Any] | None) -> Any:
    """As `njit(signature)` does, but with a cache of ours."""
    loop: Any = njit(nogil=True, **OPTIONS)(function)
    if kept_in is not None:
        loop._cache = kept_in(function)
    loop.compile(signature)
    loop.disable_compile()
    return loop


class _NamedByFolder(CompileResultCacheImpl):  # type: ignore[misc]
    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return f"{super().get_filename_base(fullname, abiflags)}-{_hash_of_folder()}"


class _FolderCache(FunctionCache):  # type: ignore[misc]
    """numba's cache of a function, in the folder that numba chooses, in files named by all that the function is made
    of. Raises RuntimeError where no folder can be written."""

    _impl_class = _NamedByFolder


@cache
def _hash_of_folder() -> str:
    found = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:16]
