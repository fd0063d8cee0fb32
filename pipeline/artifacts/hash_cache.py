"""Hashes of large files, cached between processes.

The cache is `tfm/hashes.json` in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache), with each hash by device,
inode, mtime, ctime and size of its file. A change to a file changes its ctime, which cannot be set back, and its hash
is computed again even if size and mtime are the same; only a disk that returns other bytes than were written goes
unnoticed while the hash is cached. The cache is optional: if its file is missing, damaged, owned by another user or not
writable, hashes are computed each time, without a message.
"""

import json
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from tfm.pipeline.artifacts.no_symlinks import open_file_below, remove_path_below, replace_file_below
from tfm.pipeline.errors import WriteError

MIN_CACHED_BYTES = 8 * 2**20  # bytes; below, hashing is no slower than remembering
MAX_CACHED_HASHES = 1000
MAX_CACHE_FILE_BYTES = 2**20


def cached_hash(key: str) -> str | None:
    """Return the remembered sha256, in hex, of the file with this key."""
    return _read_cache().get(key)


def store_hash(key: str, digest: str) -> None:
    """Remember the sha256 of the file with this key; the oldest of too many are forgotten."""
    with suppress(OSError, RuntimeError, WriteError):
        digests = _read_cache()
        digests.pop(key, None)
        digests[key] = digest
        cache_file = _cache_file()
        cache_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = cache_file.with_name(
            f"{cache_file.name}.{secrets.token_hex(8)}"
        )  # a cache may be shared: nobody guesses it
        try:
            with open_file_below(cache_file.parent, draft, "x", encoding="utf-8") as file:
                file.write(json.dumps(dict(list(digests.items())[-MAX_CACHED_HASHES:])))
            replace_file_below(cache_file.parent, draft, cache_file)
        finally:
            remove_path_below(cache_file.parent, draft)


def _cache_file() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "tfm" / "hashes.json"


def _read_cache() -> dict[str, str]:
    """Read the cached hashes; none if the file was not written by this package."""
    try:
        descriptor = os.open(_cache_file(), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if (
                not stat.S_ISREG(status.st_mode)
                or status.st_uid != os.geteuid()
                or status.st_size > MAX_CACHE_FILE_BYTES
            ):
                return {}
            digests = json.loads(file.read(MAX_CACHE_FILE_BYTES))
    except (OSError, ValueError, RecursionError, RuntimeError):
        return {}
    if not isinstance(digests, dict):
        return {}
    return {key: each for key, each in digests.items() if isinstance(each, str) and re.fullmatch("[0-9a-f]{64}", each)}
