"""Writing and removing below a folder without following a symbolic link that lies in it.

A received run may hold links to anywhere. The folder that a user names may be a link (a run on another disk); nothing
below it is followed: each part of a path is opened relative to the one above it, with O_NOFOLLOW.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tfm.pipeline.errors import WriteError

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_MODE_FLAGS = {
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "w": os.O_WRONLY | os.O_CREAT,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    "r+": os.O_RDWR,
    "a+": os.O_RDWR | os.O_CREAT | os.O_APPEND,
}
SYMLINK_REMEDY = "remove it, or choose another folder"


def symlink_problem(root: Path, path: Path) -> str | None:
    """Return the first part of `path` below `root` that is a link or special file, in words; None if none is.

    A part that does not exist is no problem.
    """
    prefix = root
    for part in path.relative_to(root).parts:
        prefix = prefix / part
        try:
            mode = os.lstat(prefix).st_mode
        except OSError:
            return None
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            kind = "link" if stat.S_ISLNK(mode) else "special file"
            return f"{prefix}: is a {kind} that tfm did not make; {SYMLINK_REMEDY}"
    return None


def check_no_symlinks(root: Path, *paths: Path) -> None:
    """Raise WriteError if one of the paths, or a folder between it and `root`, is a link or special file."""
    for path in paths:
        if problem := symlink_problem(root, path):
            raise WriteError(problem)


def check_tree_has_no_symlinks(folder: Path) -> None:
    """Raise WriteError if `folder` or anything below it is a link or special file; nothing if it does not exist."""
    check_no_symlinks(folder.parent, folder)
    parents = [folder] if folder.is_dir() else []
    for parent in parents:  # grows while it is walked
        with os.scandir(parent) as entries:
            for entry in entries:
                check_no_symlinks(parent, Path(entry.path))
                if entry.is_dir(follow_symlinks=False):
                    parents.append(Path(entry.path))


def open_file_below(root: Path, file: Path, mode: str, **options: Any) -> IO[Any]:
    """Open a file for writing; no link below `root` is followed, and only a regular file is opened.

    Args:
        root: the folder that the user named.
        file: a path below it, whose folder exists.
        mode: "a", "a+", "w", "x" or "r+", with "b" for bytes.
        options: further arguments of `open`, such as the encoding.

    Raises:
        WriteError: a part of the path is a link or special file.
        OSError: it cannot be opened.
    """
    check_no_symlinks(root, file)
    flags = _MODE_FLAGS[mode.replace("b", "")] | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with open_folder_below(root, file.parent) as parent:
            descriptor = os.open(file.name, flags, 0o666, dir_fd=parent)
    except OSError as error:
        error.filename = os.fspath(file)
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise WriteError(f"{file}: is a special file that tfm did not make; {SYMLINK_REMEDY}")
    if mode.startswith("w"):
        os.ftruncate(descriptor, 0)
    return os.fdopen(descriptor, mode, **options)


def make_folder_below(root: Path, folder: Path) -> None:
    """Make a folder and those between it and `root`; no link below `root` is followed.

    Raises:
        WriteError: a part of the path is a link or special file.
        OSError: it cannot be made.
    """
    check_no_symlinks(root, folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open_folder_below(root, folder):  # raises if a link was put there meanwhile
        pass


def remove_path_below(root: Path, path: Path) -> None:
    """Remove a file, or a folder and all in it; nothing if it does not exist. A link is removed, not its target.

    Raises:
        WriteError: a folder between `root` and the path is a link.
        OSError: it cannot be removed; the error names the path.
    """
    check_no_symlinks(root, path.parent)
    try:
        with suppress(FileNotFoundError), open_folder_below(root, path.parent) as parent:
            if stat.S_ISDIR(os.lstat(path.name, dir_fd=parent).st_mode):
                shutil.rmtree(path.name, dir_fd=parent)
            else:
                os.unlink(path.name, dir_fd=parent)
    except OSError as error:
        error.filename = os.fspath(path)  # it had the bare name of what lies somewhere inside
        raise


def replace_file_below(root: Path, draft: Path, file: Path) -> None:
    """Rename a draft to the file beside it, whose content it replaces.

    Args:
        root: the folder below which no part of the path may be a link.
        draft: the new content, in the same folder as the file.
        file: to replace.

    Raises:
        WriteError: a part of the file's path is a link or special file.
        OSError: the draft cannot be renamed.
    """
    check_no_symlinks(root, file)
    try:
        with open_folder_below(root, file.parent) as parent:
            os.replace(draft.name, file.name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError as error:
        error.filename, error.filename2 = os.fspath(draft), os.fspath(file)
        raise


@contextmanager
def open_folder_below(root: Path, folder: Path) -> Iterator[int]:
    """Open a folder below `root` as a descriptor for `dir_fd`; links in `root` itself are followed, none below."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folder.relative_to(root).parts:
            subfolder = os.open(part, _FOLDER_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = subfolder
        yield descriptor
    finally:
        os.close(descriptor)
