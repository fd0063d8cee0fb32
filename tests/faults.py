"""Faults on purpose: the Nth call that changes the file system fails, or is the last thing a process does.

What Python does is wrapped: calls of `os`, and files opened for writing, each write of which counts once it reaches
the operating system. Native code of ours writes no files.
"""

import errno
import io
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tfm.pipeline.artifacts import swap

CALLS = (
    "mkdir", "rmdir", "unlink", "remove", "rename", "replace", "symlink", "link", "truncate", "ftruncate", "fsync",
    "write", "writev", "pwrite", "sendfile",
)  # fmt: skip
TAKES_ROOM = {"mkdir", "symlink", "link", "open", "write", "writev", "pwrite", "sendfile", "fsync"}
VERSION = re.compile(r"\.[0-9a-f]{16}")


class Killed(BaseException):
    """What no code of ours catches: as near to SIGKILL as one process allows."""


class Faults:
    """Counts the calls that change the file system, from 1 on, and lets call number `at` go wrong.

    how: "kill": nothing of it and after it is done, not even what cleans up; "full": it fails for want of room, and
    so does every later one that takes room; an errno: it alone fails. Half of a write that goes wrong is written.
    """

    def __init__(self, at: int = 0, how: str | int = "kill") -> None:
        self.at, self.how = at, how
        self.calls: list[str] = []
        self.dead = False

    @property
    def hit(self) -> str | None:
        """The call that went wrong."""
        return self.calls[self.at - 1] if 0 < self.at <= len(self.calls) else None

    @contextmanager
    def patched(self) -> Iterator["Faults"]:
        """Within, calls are counted and go wrong."""
        with pytest.MonkeyPatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, self._wrapped(name, getattr(os, name)))
            patch.setattr(swap, "atomic_swap", self._wrapped("exchange", swap.atomic_swap))
            patch.setattr(os, "open", self._os_open(os.open))
            opened = self._open(io.open)
            patch.setattr("builtins.open", opened)
            patch.setattr(io, "open", opened)
            yield self

    def count(self, name: str, *paths: Any, first: Callable[[], object] = lambda: None) -> None:
        """Count a call; where it goes wrong, do `first` and raise, naming the paths, as the call itself would."""
        if self.dead:
            raise Killed(name)
        self.calls.append(name)
        number = len(self.calls)
        wrong = number == self.at or (self.how == "full" and 0 < self.at < number and name in TAKES_ROOM)
        if not wrong:
            return
        first()
        if self.how == "kill":
            self.dead = True
            raise Killed(name)
        code = errno.ENOSPC if self.how == "full" else int(self.how)
        named = [os.fspath(path) for path in paths if isinstance(path, (str, os.PathLike))]
        raise OSError(code, os.strerror(code), *([named[0], None, *named[1:2]] if named else []))

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **more: Any) -> Any:
            self.count(name, *given)
            return call(*given, **more)

        return wrapped

    def _os_open(self, call: Callable[..., int]) -> Callable[..., int]:
        def os_open(path: Any, flags: int, *rest: Any, **more: Any) -> int:
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and path != os.devnull:
                self.count("open", path)
            return call(path, flags, *rest, **more)

        return os_open

    def _open(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def opened(
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: str | None = None,
            newline: str | None = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            if not set(mode) & set("wxa+") or file == os.devnull:
                return call(file, mode, buffering, encoding, errors, newline, closefd, opener)
            if not isinstance(file, int):  # a descriptor was counted as it was opened
                self.count("open", file)
            raw = _File(self, file, mode.replace("b", "").replace("t", ""), closefd, opener)
            if buffering == 0 or stat.S_ISFIFO(os.fstat(raw.fileno()).st_mode):
                return raw
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)

        return opened


class _File(io.FileIO):
    """A file each of whose writes is counted; of a process that is dead nothing is written."""

    def __init__(self, faults: Faults, file: Any, mode: str, closefd: bool, opener: Any) -> None:
        self._faults = faults
        super().__init__(file, mode, closefd, opener)

    def write(self, data: Any, /) -> int:
        if self._faults.dead:
            return memoryview(data).nbytes
        self._faults.count("write", first=lambda: super(_File, self).write(memoryview(data)[: len(data) // 2]))
        return super().write(data)


def names(folder: Path) -> list[str]:
    """All that is under a folder, sorted."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def litter(artifact: Path) -> list[str]:
    """Names of drafts and old versions that lie beside an artifact."""
    if not artifact.parent.is_dir():
        return []
    return [
        name
        for name in os.listdir(artifact.parent)
        if name.endswith(".draft") or VERSION.fullmatch(name.removeprefix(f".{artifact.name}"))
    ]
