"""A trial of what artifacts need of a file system, before any work: renames that replace, and syncs.

An object store mounted as a folder (FUSE) often has no renames of folders, or none that replace a file.
"""

import errno
import os
from pathlib import Path

from tfm.pipeline.artifacts.files import sync_folder

UNSUPPORTED_ERRNOS = {
    errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM,
}  # fmt: skip
OLD, NEW = b"old", b"new"
FILE_SYSTEM_REMEDY = (
    "give a folder on a local disk or NFS, and copy the artifact afterwards; an object store mounted as a folder is "
    "none for artifacts"
)


def file_system_problem(folder: Path) -> str | None:
    """Return what the file system of an empty folder cannot do of what artifacts need, in words; None if it can all.

    The folder is empty afterwards, unless an error is raised.

    Raises:
        OSError: it cannot be written for another reason.
    """
    file, draft, folder_with_file, renamed_folder = (folder / name for name in ("file", "draft", "folder", "moved"))
    action = "write a file"
    try:
        for path, content in ((file, OLD), (draft, NEW)):
            _write_synced(path, content)
        action = "rename a file to another one's name"
        os.replace(draft, file)
        if file.read_bytes() != NEW or draft.exists():
            return f"this file system does not show what a rename replaced: {FILE_SYSTEM_REMEDY}"
        action = "rename a folder"
        folder_with_file.mkdir()
        os.rename(file, folder_with_file / "file")
        os.rename(folder_with_file, renamed_folder)
        if folder_with_file.exists() or (renamed_folder / "file").read_bytes() != NEW:
            return f"this file system does not show what a rename moved: {FILE_SYSTEM_REMEDY}"
        action = "sync a folder"
        sync_folder(folder)
        (renamed_folder / "file").unlink()
        renamed_folder.rmdir()
    except OSError as error:
        if error.errno not in UNSUPPORTED_ERRNOS:
            raise
        return f"this file system cannot {action} ({error.strerror}), which artifacts need: {FILE_SYSTEM_REMEDY}"
    return None


def _write_synced(file: Path, content: bytes) -> None:
    with open(file, "xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
