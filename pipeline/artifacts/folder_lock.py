"""One writer per folder: a lock of the operating system, released when its process ends."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tfm.data.safe_files import read_bounded_file
from tfm.pipeline.artifacts.files import convert_os_errors, resolve_folder
from tfm.pipeline.artifacts.no_symlinks import check_no_symlinks
from tfm.pipeline.errors import DataError, WriteError

MAX_LOCK_FILE_BYTES = 4096  # of a lock's file, which has the name of its holder

_held_locks: set[int] = set()


class FolderLockedError(WriteError):
    """Another process is writing the folder."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the only right to write `folder`, which need not exist; its parent is made.

    The lock is on the file `.NAME.lock` beside the folder and that file stays. Raises FolderLockedError, naming
    the holder, where another has it (there is no waiting), and where nothing can be written.
    """
    target = resolve_folder(folder)
    with convert_os_errors(folder):
        target.parent.mkdir(parents=True, exist_ok=True)
        file = _lock_file(target)
        check_no_symlinks(target.parent, file)  # to open a device may already have an effect
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    _held_locks.add(descriptor)
    try:
        _acquire_lock(descriptor, folder)
        try:
            yield
        finally:
            with suppress(OSError):  # closing is what releases
                os.ftruncate(descriptor, 0)
    finally:
        if descriptor in _held_locks:
            _held_locks.remove(descriptor)
            os.close(descriptor)


def current_writer(folder: Path) -> str | None:
    """The process that writes a folder, as it seems: one that has put its name into the lock, and lives."""
    target = resolve_folder(folder)
    try:
        name = read_bounded_file(_lock_file(target), max_bytes=MAX_LOCK_FILE_BYTES).decode(errors="replace")
    except (OSError, DataError):
        return None
    number, _, host = name.partition(" ")
    if not number.isdecimal() or (host == socket.gethostname() and not _is_alive(int(number))):
        return None
    return f"process {number}" if host == socket.gethostname() else f"process {number} on {host}"


def _lock_file(path: Path) -> Path:
    """The lock file beside a folder, held by its writer."""
    return path.parent / f".{path.name}.lock"


def _acquire_lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        problem = f"{folder}: {_read_holder(descriptor)} is writing it; wait for it to end, or stop it"
        raise FolderLockedError(problem) from None
    except OSError as error:
        problem = f"{folder}: this file system does not support locks ({error.strerror}); choose another folder"
        raise WriteError(problem) from error
    with suppress(OSError):  # the name of the holder is a courtesy: on a full disk there is no place for it
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()}".encode(), 0)


def _read_holder(descriptor: int) -> str:
    """Name the holder of the lock, "another process" if it is not known.

    The holder writes its name after taking the lock, and one killed leaves its name behind: therefore a name is
    believed once it is that of a living process, for which there is a second's patience.
    """
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        number, _, host = os.pread(descriptor, 300, 0).decode(errors="replace").partition(" ")
        if number.isdecimal() and host:
            if host != socket.gethostname():
                return f"process {number} on {host}"
            if _is_alive(int(number)):
                return f"process {number}"
        time.sleep(0.005)
    return "another process"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _release_locks_in_child() -> None:
    # A forked child shares the lock; were it to outlive its parent, the lock would too.
    for descriptor in _held_locks:
        os.close(descriptor)
    _held_locks.clear()


os.register_at_fork(after_in_child=_release_locks_in_child)
