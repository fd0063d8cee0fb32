"""The atomic step of publishing: a new version of an artifact, in a hidden folder, is swapped with the old one.

Then the old version has the hidden name, and is removed. (Earlier versions of tfm made the name a link to a hidden
folder. Such runs are read and published over; a hidden folder to which another link points is never removed.)
"""

import errno
import os
import re
import secrets
from pathlib import Path

from tfm.pipeline.artifacts.files import atomic_swap, real_place, sync
from tfm.pipeline.artifacts.no_symlinks import remove_below

BACKUP_SUFFIX = ".aside"
# What says that a name is not free for a folder: a folder that is not empty, or a link.
TARGET_EXISTS_ERRNOS = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}


def replace_atomically(version: Path, place: Path) -> None:
    """Let the name `place` give the version; what was there, if anything, has the version's hidden name then.

    In one step. Only where a file system cannot swap two names it takes two: what was there is moved aside first.
    """
    try:
        os.rename(version, place)  # works where nothing is there, or an empty folder
    except OSError as error:
        if error.errno not in TARGET_EXISTS_ERRNOS:
            raise
        if not atomic_swap(version, place):
            _put_by_two_steps(version, place)
    sync(place.parent)


def _put_by_two_steps(version: Path, place: Path) -> None:
    """The same where names cannot be swapped. Killed between the steps, `restore` undoes the first."""
    aside = place.parent / f"{new_name(place).name}{BACKUP_SUFFIX}"
    os.rename(place, aside)
    try:
        os.rename(version, place)
    except BaseException as error:
        _move_back(aside, place, error)
        raise


def _move_back(aside: Path, place: Path, error: BaseException) -> None:
    """Undo the first of two steps; where that fails too, say where the artifact is."""
    if os.path.lexists(place):
        return
    try:
        os.rename(aside, place)
    except OSError as failed:
        code = failed.errno or errno.EIO
        raise OSError(code, f"{failed.strerror}; what was there is now {aside}: move it back", str(place)) from error


def restore(place: Path) -> None:
    """Put back what a process had moved aside that was killed before the new version stood; no link of others."""
    for name in os.listdir(place.parent):
        if name.endswith(BACKUP_SUFFIX) and _is_version(place, name) and not os.path.lexists(place):
            aside = place.parent / name
            if _is_version(place, os.readlink(aside)) if aside.is_symlink() else aside.is_dir():
                os.rename(aside, place)


def new_name(place: Path) -> Path:
    """A name for a version of an artifact, hidden beside it."""
    return place.parent / f".{place.name}.{secrets.token_hex(8)}"


def _is_version(place: Path, name: str) -> bool:
    """Whether a name is one that drafts and old versions of this place have."""
    return re.fullmatch(rf"\.{re.escape(place.name)}\.[0-9a-f]{{16}}({re.escape(BACKUP_SUFFIX)})?", name) is not None


def is_link_of_ours(place: Path) -> bool:
    return _is_version(place, os.readlink(place))


def leftover_versions(place: Path) -> list[Path]:
    """What was replaced, and drafts of processes that were killed; nothing that a link beside it gives."""
    names = os.listdir(place.parent)
    hidden = [place.parent / name for name in names if _is_version(place, name)]
    others = [place.parent / name for name in names if not _is_version(place, name)] if hidden else []
    links = [path for path in others if path.is_symlink()]
    given = {os.path.realpath(path) for path in links} | {
        os.path.join(place.parent, os.readlink(path)) for path in links
    }
    return [path for path in hidden if str(path) not in given]


def leftovers_of(place: Path) -> list[Path]:
    """Drafts and replaced versions beside a place, which the next publisher removes, or which one makes just now."""
    return leftover_versions(real_place(place)) if place.parent.is_dir() else []


def clean(place: Path) -> None:
    """Remove it; of a link itself, not what it leads to."""
    for path in leftover_versions(place):
        remove_below(place.parent, path)
