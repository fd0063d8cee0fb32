"""How numba compiles the loops, and where it caches the compiled code.

A loop calls functions of several files, but numba only checks the file of the loop itself for changes. So the name of
the cache includes a hash of all files of this folder: after a change of any of them all loops are compiled again. No
loop may call functions from other folders.
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
