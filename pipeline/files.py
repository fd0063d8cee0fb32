"""Files as artifacts need them: listed without following links, hashed once, and made durable."""

import hashlib
import os
import stat
import time
from pathlib import Path

from pipeline.errors import DataError

# A file whose times are younger than this could be rewritten without its times changing (file systems
# stamp coarsely), so its hash is not remembered yet.
SETTLED_NS = 2_000_000_000

_remembered: dict[tuple[int, int, int, int, int], str] = {}


def real_place(folder: Path) -> Path:
    """The folder's path with every link above it resolved, but not a link at its own name."""
    if folder.name in ("", ".", ".."):
        return Path(os.path.realpath(folder))
    return Path(os.path.realpath(folder.parent)) / folder.name


def sha256_of(path: Path) -> str:
    """sha256 of a regular file, in hex; remembered in this process by device, inode, times and size.

    Raises DataError where the path is a folder, a pipe or another thing that cannot be read twice.
    """
    before = os.stat(path)
    if not stat.S_ISREG(before.st_mode):
        raise DataError("not a regular file, so it cannot be an input", file=path)
    key = _key(before)
    if key in _remembered:
        return _remembered[key]
    now = time.time_ns()
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        unchanged = key == _key(os.fstat(file.fileno()))
    if unchanged and now - max(before.st_mtime_ns, before.st_ctime_ns) > SETTLED_NS:
        _remembered[key] = digest
    return digest


def sha256_and_sync(path: Path) -> str:
    """sha256 of a file just written, in hex; on return the file is on disk."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    return digest


def sync(folder: Path) -> None:
    """Bring a folder's list of names to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def tree(folder: Path, shown: Path | None = None) -> tuple[dict[str, os.stat_result], list[Path]]:
    """Every file under a folder by its path relative to it, with `/`; and every folder, deepest first.

    Raises DataError, which calls the folder `shown`, at a link or anything else that is neither file nor folder.
    """
    files: dict[str, os.stat_result] = {}
    folders = [folder]
    for parent in folders:  # grows while it is walked
        with os.scandir(parent) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    folders.append(Path(entry.path))
                elif stat.S_ISREG(status.st_mode):
                    files[Path(entry.path).relative_to(folder).as_posix()] = status
                else:
                    name = Path(entry.path).relative_to(folder).as_posix()
                    raise DataError(f"{name!r} is a link or special file; an artifact has none", file=shown or folder)
    return dict(sorted(files.items())), folders[::-1]


def _key(status: os.stat_result) -> tuple[int, int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
