"""Compilation of the loops by numba, and the place where the compiled code is cached.

A loop calls functions of several files, but numba only checks the file of the loop itself for changes. The name of the
cache therefore includes a hash of all files of this folder: after a change of any of them all loops are compiled
again. No loop may call functions from other folders.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

Function = Callable[..., Any]
UNROLL_FACTOR = 4
"""The number of rows or keys that are worked on side by side: a value read for one serves all."""
FASTMATH_FLAGS = {"reassoc", "contract", "nsz", "arcp"}  # sums in the order that suits vectors; no number is ruled out
JIT_OPTIONS: dict[str, Any] = {"fastmath": FASTMATH_FLAGS, "error_model": "numpy"}
DIGEST_BYTES = hashlib.sha256().digest_size

inline_jit = njit(inline="always")
"""A part of loops, compiled where it stands in each."""
helper_jit = njit(**JIT_OPTIONS)
"""A part of loops, compiled with the first that calls it."""


def compile_function(signature: Any) -> Callable[[Function], Any]:
    """Compile for these types now, or load the code that an earlier process has compiled, where it could be kept."""

    def compile_or_load(function: Function) -> Any:
        loop: Any = njit(nogil=True, **JIT_OPTIONS)(function)
        with suppress(OSError, RuntimeError):  # there is no folder to keep it in
            loop._cache = _FolderCache(function)  # as `njit(cache=True)` does with one of numba's
        loop.compile(signature)
        loop.disable_compile()
        return loop

    return compile_or_load


class _FolderCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return f"{super().get_filename_base(fullname, abiflags)}-{_hash_source_files()}"


class _ChecksummedCacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """numba's files of a function, each with the sha256 of its contents as the last bytes.

    After a power failure a file may hold anything. One that is not as it was written is none: numba would raise any
    error, or run it. (Only bytes that this class wrote are read.)
    """

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BytesIO]:
        with super()._open_for_write(filepath) as file:
            content = BytesIO()
            yield content
            file.write(content.getvalue() + hashlib.sha256(content.getvalue()).digest())

    def _load_index(self) -> dict[Any, str]:
        index: dict[Any, str] = super()._load_index() if _has_valid_digest(Path(self._index_path)) else {}
        return index

    def _load_data(self, name: str) -> Any:
        if not _has_valid_digest(Path(self._data_path(name))):
            raise OSError  # for which numba takes it that there is none
        return super()._load_data(name)


def _has_valid_digest(file: Path) -> bool:
    try:
        content = file.read_bytes()
    except OSError:
        return False
    return hashlib.sha256(content[:-DIGEST_BYTES]).digest() == content[-DIGEST_BYTES:]


class _FolderCache(FunctionCache):  # type: ignore[misc]
    """numba's cache of a function in numba's folder, in files named by a hash of everything that the machine code
    depends on. An unusable file is replaced if possible. Raises RuntimeError if there is no folder.
    """

    _impl_class = _FolderCacheImpl

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        locator = self._impl.locator
        self._cache_file = _ChecksummedCacheFile(self._cache_path, self._impl.filename_base, locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # by another LLVM, or another numba with the same number
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):  # no room, or no right to write there
            super().save_overload(sig, data)


@cache
def _hash_source_files() -> str:
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
