"""Files that somebody else may have sent: opened without waiting, read up to a bound, looked up inside their folder."""

import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from tfm.data.errors import DataError

MAX_FILE_BYTES = 16 * 2**20
MAX_LOG_BYTES = 2**30
MAX_LINE_BYTES = 2**16
MIN_FILE_AGE_NS = 2_000_000_000
GIT_LFS_BEGIN = b"version https://git-lfs.github.com/spec/v1\n"
GIT_LFS_PROBLEM = "is a pointer of Git LFS, and its file was not downloaded: run `git lfs pull` in its folder"


def open_regular_file(file: Path, *, displayed_path: Path | None = None, follow_symlinks: bool = True) -> BinaryIO:
    """Open a regular file for reading, in bytes.

    Args:
        file: the file. A FIFO, a device, a socket or a folder is refused without waiting for it.
        displayed_path: what messages call it.
        follow_symlinks: whether a symbolic link at this name is followed; links above it are.

    Raises:
        DataError: it is not a regular file, a link that is not to be followed, or a pointer of Git LFS.
        OSError: it cannot be opened.
    """
    status = os.stat(file, follow_symlinks=follow_symlinks)  # to open a device may already have an effect
    if stat.S_ISREG(status.st_mode):
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_symlinks else os.O_NOFOLLOW)
        stream = os.fdopen(os.open(file, flags), "rb")
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            if os.pread(stream.fileno(), len(GIT_LFS_BEGIN), 0) == GIT_LFS_BEGIN:
                stream.close()
                raise DataError(GIT_LFS_PROBLEM, file=displayed_path or file)
            return stream
        stream.close()
    if stat.S_ISDIR(status.st_mode):
        raise DataError("is a folder, not a file", file=displayed_path or file)
    raise DataError("is not a regular file", file=displayed_path or file)


def read_bounded_file(
    file: Path, *, displayed_path: Path | None = None, max_bytes: int = MAX_FILE_BYTES, follow_symlinks: bool = False
) -> bytes:
    """Read a file of limited size, as `open_regular_file` opens it.

    Args:
        file: to read.
        displayed_path: the file in messages, if another.
        max_bytes: the most bytes of the file.
        follow_symlinks: as in `open_regular_file`.

    Raises:
        DataError: the file is larger, or `open_regular_file` refuses it.
        OSError: the file cannot be read.
    """
    with open_regular_file(file, displayed_path=displayed_path, follow_symlinks=follow_symlinks) as stream:
        data = stream.read(max_bytes + 1)
        if len(data) > max_bytes:
            size = os.fstat(stream.fileno()).st_size
            problem = f"is larger than any file that tfm reads here ({size:,} bytes; {max_bytes:,} at most)"
            raise DataError(problem, file=displayed_path or file)
    return data


def stable_file_signature(status: os.stat_result) -> tuple[int, ...] | None:
    """A stamp that changes whenever a file does, also if size and modification time are kept: nobody can set its ctime.

    None if it was changed less than two seconds ago: file systems stamp coarsely, so that a further change might go
    unnoticed.
    """
    if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) <= MIN_FILE_AGE_NS:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def read_log(file: Path, *, max_bytes: int = MAX_LOG_BYTES) -> Iterator[str]:
    """The lines of a log that grows, as a training writes one, each with its end; a link is not followed.

    Args:
        file: the log, in UTF-8.
        max_bytes: how large it may be. A line longer than any of ours comes in pieces, so that none fills the memory.

    Raises:
        DataError: it is larger, or `open_regular_file` refuses it.
        OSError: it cannot be read.
    """
    with open_regular_file(file, follow_symlinks=False) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > max_bytes:
            raise DataError(f"is larger than any log that tfm writes ({size:,} bytes)", file=file)
        while line := stream.readline(MAX_LINE_BYTES):
            yield line.decode("utf-8", "replace")


def resolve_path_inside(folder: Path, name: object, *, file: Path, roots: Sequence[str] = ()) -> Path:
    """Look up a name that a received file gives, inside the folder of that file.

    Args:
        folder: where the name must lie, after all links are resolved.
        name: a relative path with `/`, as `file` has it.
        file: the file that gives the name, for messages.
        roots: resolved paths of further folders into which a link may lead.

    Raises:
        DataError: the name is no relative path, is a URL, or leads out of the folder.
    """
    problem = f"names {name!r:.80}, which is not a file inside its folder; tfm reads no other"
    if not isinstance(name, str) or not name or "\0" in name or _url_scheme(name) or os.path.isabs(name):
        raise DataError(problem, file=file)
    path, root = folder / name, os.path.realpath(folder)
    try:
        real_path = os.path.realpath(path)
    except ValueError:  # a lone surrogate, which no file system spells
        raise DataError(problem, file=file) from None
    is_inside = any(os.path.commonpath([each, real_path]) == each for each in (root, *roots))
    if real_path == root or ".." in name.split("/") or not is_inside:
        raise DataError(problem, file=file)
    return path


def _url_scheme(name: str) -> str:
    """The scheme of a URL, such as https or hf; empty if the name is a path."""
    try:
        return urlsplit(name).scheme if "://" in name or "::" in name else ""
    except ValueError:
        return "invalid"
