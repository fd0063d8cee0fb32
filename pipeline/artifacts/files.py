"""Files of artifacts: listed without following links, hashed once, synced to disk."""

import errno
import hashlib
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tfm.pipeline.artifacts import hash_cache
from tfm.pipeline.artifacts.no_symlinks import check_no_symlinks, open_file_below, remove_path_below, replace_file_below
from tfm.pipeline.errors import DataError, WriteError, format_count

# A file whose times are younger than this could be rewritten without its times changing (file systems
# stamp coarsely), so its hash is not remembered yet.
MIN_CACHEABLE_AGE_NS = 2_000_000_000

# What it means that a place cannot be written; a full disk, or one that fails, is another matter.
UNWRITABLE_ERRNOS = {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOENT, errno.ELOOP,
    errno.ENAMETOOLONG,
}  # fmt: skip

_RENAME_EXCHANGE, _AT_FDCWD = 2, -100  # RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS; AT_FDCWD
SWAP_UNSUPPORTED_ERRNOS = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}

_hash_cache: dict[tuple[int, int, int, int, int], str] = {}


@dataclass(frozen=True)
class FileEntry:
    """A file of an artifact: size in bytes, sha256 in hex."""

    size: int
    sha256: str


def resolve_folder(folder: Path) -> Path:
    """The folder's path with every link above it resolved, but not a link at its own name."""
    if folder.name in ("", ".", ".."):
        return Path(os.path.realpath(folder))
    return Path(os.path.realpath(folder.parent)) / folder.name


@contextmanager
def add_path_to_errors(path: Path) -> Iterator[None]:
    """Let an OSError that names no file (as those of writes) name `path` while the body runs."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


@contextmanager
def convert_os_errors(path: Path) -> Iterator[None]:
    """Turn an OSError that says that nothing can be written at `path` into a WriteError while the body runs."""
    try:
        with add_path_to_errors(path):
            yield
    except OSError as error:
        if error.errno in UNWRITABLE_ERRNOS:
            raise WriteError(f"{path}: cannot be written: {error.strerror} ({error.filename})") from error
        raise


def name_problem(name: str) -> str | None:
    """The reason why no file or folder can have a name, in words; None if one can."""
    if "\0" in name:
        return "has a null character, which no name of a file or folder has"
    try:
        os.lstat(name)
    except UnicodeEncodeError:
        return "has half of a character (a surrogate), which no name of a file or folder has"
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return f"is a name of {len(name):,} characters, which is too long"
    return None


def atomic_swap(path: Path, other_path: Path) -> bool:
    """Exchange two files or folders of one file system atomically.

    False if this system or file system cannot do that (NFS; Linux before 3.15), and nothing was changed.
    """
    import ctypes  # most commands publish nothing

    libc, names = ctypes.CDLL(None, use_errno=True), (os.fsencode(path), os.fsencode(other_path))
    try:
        if sys.platform == "darwin":
            return_code = libc.renamex_np(*names, _RENAME_EXCHANGE)
        else:
            return_code = libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)
    except AttributeError:  # a C library that does not know it
        return False
    code = ctypes.get_errno()
    if return_code and code not in SWAP_UNSUPPORTED_ERRNOS:
        raise OSError(code, os.strerror(code), os.fspath(path), None, os.fspath(other_path))
    return not return_code


def write_text_atomically(file: Path, text: str, *, root: Path | None = None) -> None:
    """Write a file again, in UTF-8, as `write_bytes_atomically` does.

    Args:
        file: to write.
        text: its content.
        root: as in `write_bytes_atomically`.
    """
    write_bytes_atomically(file, text.encode("utf-8"), root=root)


def write_bytes_atomically(file: Path, content: bytes, *, root: Path | None = None) -> None:
    """Write a file again, as `open_atomically` does.

    Args:
        file: to write.
        content: its bytes.
        root: as in `open_atomically`.
    """
    with open_atomically(file, root=root) as stream, add_path_to_errors(file):
        stream.write(content)


@contextmanager
def open_atomically(file: Path, *, root: Path | None = None) -> Iterator[IO[bytes]]:
    """Open a file to write it again: at every moment it is whole, the old, or the new after the body has run.

    Only one process may do so at a time.

    Args:
        file: the file.
        root: the folder that the user named, below which no link is followed; by default the file's own folder.

    Raises:
        WriteError: the file, or a folder between it and `root`, is a link or special file.
        OSError: it cannot be written.
    """
    root = root or file.parent
    draft = file.with_name(f".{file.name}.draft")
    check_no_symlinks(root, file)
    try:
        _remove_draft(root, draft)  # of a process that was killed, or a link to somewhere else
        stream = open_file_below(root, draft, "xb")
        try:
            yield stream
            with add_path_to_errors(file):
                stream.flush()
                os.fsync(stream.fileno())
        finally:
            with add_path_to_errors(file):
                stream.close()
        replace_file_below(root, draft, file)
    except BaseException:
        _remove_draft(root, draft)
        raise


def _remove_draft(root: Path, draft: Path) -> None:
    """Remove a draft, or a link or special file under its name; a folder there is not a draft, and stays."""
    if draft.is_symlink() or not draft.is_dir():
        remove_path_below(root, draft)


def sha256_of(path: Path) -> str:
    """sha256 of a regular file, in hex; remembered by device, inode, times and size (if large, see `hashes`).

    Raises DataError if the path is a folder, a pipe or another thing that cannot be read twice.
    """
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise DataError("is a folder, not a file", file=path)
    if not stat.S_ISREG(status.st_mode):
        raise DataError("not a regular file, so it cannot be an input", file=path)
    key = _stat_key(status)
    large = status.st_size >= hash_cache.MIN_CACHED_BYTES
    cached_digest = _hash_cache.get(key) or (hash_cache.cached_hash(_format_cache_key(key)) if large else None)
    if cached_digest is not None:
        _hash_cache[key] = cached_digest
        return cached_digest
    now = time.time_ns()
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        is_unchanged = key == _stat_key(os.fstat(file.fileno()))
    if is_unchanged and now - max(status.st_mtime_ns, status.st_ctime_ns) > MIN_CACHEABLE_AGE_NS:
        _hash_cache[key] = digest
        if large:
            hash_cache.store_hash(_format_cache_key(key), digest)
    return digest


def sha256_and_sync(path: Path) -> str:
    """sha256 of a file just written, in hex; on return the file is on disk."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        with add_path_to_errors(path):
            os.fsync(file.fileno())
    return digest


def sync_folder(folder: Path) -> None:
    """Bring a folder's list of names to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with add_path_to_errors(folder):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def walk_tree(folder: Path, shown_folder: Path | None = None) -> tuple[dict[str, os.stat_result], list[Path]]:
    """Every file under a folder by its path relative to it, with `/`; and every folder, deepest first.

    Raises DataError, which calls the folder `shown_folder`, at a link or anything else that is neither file nor folder.
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
                    raise DataError(
                        f"{name!r} is a link or special file; an artifact has none", file=shown_folder or folder
                    )
    return dict(sorted(files.items())), folders[::-1]


def verify_files(folder: Path, files: Mapping[str, FileEntry], shown_folder: Path, *, besides: str) -> None:
    """Compare the files of an artifact with those that its manifest names.

    Args:
        folder: in which they lie.
        files: as the manifest has them, by name.
        shown_folder: of the artifact, for messages.
        besides: the name of the one file that the manifest does not name, which is its own.

    Raises:
        DataError: a file is missing, was changed, or does not belong to the artifact.
    """
    remedy = "make the artifact again"
    statuses, _ = walk_tree(folder, shown_folder)
    for name, entry in files.items():
        if name not in statuses:
            raise DataError(f"{name!r} is missing; {remedy}", file=shown_folder)
        size = statuses[name].st_size
        if size != entry.size:
            raise DataError(
                f"{name!r} has {format_count(size, 'byte')}, but {entry.size:,} when it was made; {remedy}",
                file=shown_folder,
            )
    extra = statuses.keys() - files.keys() - {besides}
    if extra:
        raise DataError(f"{min(extra)!r} does not belong to it; remove that file", file=shown_folder)
    for name, entry in files.items():
        if sha256_of(folder / name) != entry.sha256:
            raise DataError(f"{name!r} was changed since it was made (sha256 differs); {remedy}", file=shown_folder)


def _stat_key(status: os.stat_result) -> tuple[int, int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def _format_cache_key(key: tuple[int, int, int, int, int]) -> str:
    return ":".join(map(str, key))
