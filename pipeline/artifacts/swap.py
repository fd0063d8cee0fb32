"""The atomic step of publishing: a new version of an artifact, in a hidden folder, is swapped with the old one.

Then the old version has the hidden name, and is removed. (Earlier versions of tfm made the name a link to a hidden
folder. Such runs are read and published over; a hidden folder to which another link points is never removed.)
"""

import errno
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tfm.pipeline.artifacts.files import atomic_swap, resolve_folder, sync_folder
from tfm.pipeline.artifacts.no_symlinks import remove_path_below

BACKUP_SUFFIX = ".aside"
# What says that a name is not free for a folder: a folder that is not empty, or a link.
TARGET_EXISTS_ERRNOS = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}


def replace_atomically(version: Path, path: Path) -> None:
    """Give the name `path` to the version, and the version's hidden name to the old content, in one step.

    Only where a file system cannot swap two names it takes two: the old content, if there is any, is moved aside first.
    """
    try:
        os.rename(version, path)  # works where nothing is there, or an empty folder
    except OSError as error:
        if error.errno not in TARGET_EXISTS_ERRNOS:
            raise
        if not atomic_swap(version, path):
            _replace_in_two_steps(version, path)
    sync_folder(path.parent)


def _replace_in_two_steps(version: Path, path: Path) -> None:
    """Replace the old content in two steps, for file systems that cannot swap names.

    If the process is killed between the steps, `restore` undoes the first.
    """
    backup = path.parent / f"{hidden_version_name(path).name}{BACKUP_SUFFIX}"
    os.rename(path, backup)
    try:
        os.rename(version, path)
    except BaseException as error:
        _undo_first_step(backup, path, error)
        raise


def _undo_first_step(backup: Path, path: Path, error: BaseException) -> None:
    """Undo the first of two steps; if that fails too, name the place of the artifact."""
    if os.path.lexists(path):
        return
    try:
        os.rename(backup, path)
    except OSError as failed:
        code = failed.errno or errno.EIO
        raise OSError(code, f"{failed.strerror}; what was there is now {backup}: move it back", str(path)) from error


def restore_backup(path: Path) -> None:
    """Put back the content that a process had moved aside, if it was killed before the new version stood.

    A link that others made is not put back.
    """
    for name in os.listdir(path.parent):
        if name.endswith(BACKUP_SUFFIX) and _is_version_name(path, name) and not os.path.lexists(path):
            backup = path.parent / name
            if _is_version_name(path, os.readlink(backup)) if backup.is_symlink() else backup.is_dir():
                os.rename(backup, path)


def hidden_version_name(path: Path) -> Path:
    """A name for a version of an artifact, hidden beside it."""
    return path.parent / f".{path.name}.{secrets.token_hex(8)}"


def _is_version_name(path: Path, name: str) -> bool:
    """Whether a name is one that drafts and old versions of this place have."""
    return re.fullmatch(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}({re.escape(BACKUP_SUFFIX)})?", name) is not None


def is_version_link(path: Path) -> bool:
    return _is_version_name(path, os.readlink(path))


def leftover_versions(folder: Path) -> list[Path]:
    """Versions that were replaced, and drafts of processes that were killed; none that a link beside them points to."""
    names = os.listdir(folder.parent)
    hidden = [folder.parent / name for name in names if _is_version_name(folder, name)]
    other_paths = [folder.parent / name for name in names if not _is_version_name(folder, name)] if hidden else []
    links = [path for path in other_paths if path.is_symlink()]
    linked_paths = {os.path.realpath(path) for path in links} | {
        os.path.join(folder.parent, os.readlink(path)) for path in links
    }
    return [path for path in hidden if str(path) not in linked_paths]


def list_leftovers_beside(path: Path) -> list[Path]:
    """Drafts and replaced versions beside a place, which the next publisher removes, or which one makes just now."""
    return leftover_versions(resolve_folder(path)) if path.parent.is_dir() else []


def remove_leftovers(folder: Path) -> None:
    """Remove a version; of a link itself, not its target."""
    for path in leftover_versions(folder):
        remove_path_below(folder.parent, path)


@contextmanager
def detect_replacement(folder: Path) -> Iterator[Callable[[], bool]]:
    """Yield a function that tests whether the name `folder` still gives the same folder.

    The folder is kept open, so that its number is given to no other one.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield lambda: True  # there is none
        return

    def is_unreplaced() -> bool:
        with suppress(OSError):
            return os.path.samestat(os.stat(folder), os.fstat(descriptor))
        return False

    try:
        yield is_unreplaced
    finally:
        os.close(descriptor)
