"""Corpus files at URLs (https://, s3://, hf://, ...): fsspec downloads a copy into the user's cache folder.

A file is downloaded once, and again when the server says that it has changed. The copy's SHA-256 is stored beside it
and checked each time.
"""

import errno
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from tfm.data.credentials import redact_credentials
from tfm.data.errors import DataError
from tfm.data.json_documents import parse_json

SCHEMES = ("https", "http", "s3", "gs", "abfs", "hf", "ftp", "sftp", "memory")
URL_PATTERN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://.+", re.DOTALL)
FILE_VERSION_FIELDS = (
    "etag",
    "size",
    "mtime",
    "lastmodified",
    "last_modified",
    "modify",
    "created",
    "checksum",
    "md5",
    "oid",
    "blob_id",
    "generation",
)
"""Properties by which file systems show that a file has changed, in lower case and without "-"."""
PACKAGES = {"http": "tfm-toolkit[remote]", "https": "tfm-toolkit[remote]", "hf": "huggingface_hub"}
"""Packages to install by scheme; fsspec has an extra for each of the others."""
BLOCK_BYTES = 1 << 20
HTTP_SCHEMES = ("http", "https")
HTTP_ENCODINGS = ("", "identity", "gzip", "x-gzip")
"""Content-Encoding of a body that can be kept as it comes: readers know gzip by its first bytes."""
CONNECT_SECONDS, READ_SECONDS = 30.0, 60.0
"""Time limits for a connection and for the next bytes of a file; the whole file has none."""
CHANGED_MESSAGE = "it was changed meanwhile; run the command again"
CREDENTIALS_REMEDY = (
    ": set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; for a public bucket FSSPEC_S3_ANON=true"
)
DOWNLOAD_RECORD_SUFFIX = ".json"
MAX_NAME_CHARS = 100

_refreshed_copies_by_url: dict[str, Path] = {}
"""The copies that this process has compared with their servers: a command reads one state of a file."""

ByteCallback: TypeAlias = Callable[[int, int | None], None]
"""Called with the number of further bytes that have come, and the number of all if it is known."""


def is_url(path: str) -> bool:
    """Return whether a text is a URL and not a path."""
    return URL_PATTERN.fullmatch(path) is not None


def cache_folder() -> Path:
    """The folder of all copies: `tfm/remote` in $XDG_CACHE_HOME, else in ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "tfm" / "remote"


def fetch_local_copy(url: str, *, online: bool, on_bytes: ByteCallback = lambda count, total: None) -> Path:
    """Return the local copy of a file at a URL; download it if there is no copy or the file has changed.

    Args:
        url: the URL of a single file.
        online: whether the server may be contacted; else an existing copy is used unchanged.
        on_bytes: (bytes downloaded, total or None), called after each block.

    Raises:
        DataError: there is no copy and `online` is false, or the server does not send the file.
    """
    _check_url(url)
    if url in _refreshed_copies_by_url:
        return _refreshed_copies_by_url[url]
    file = _cache_path(url)
    record = _read_valid_download_record(file)
    if not online:
        if record is None:
            problem = "is not downloaded yet, and data.online = false: set it to true"
            raise DataError(problem, file=redact_credentials(url))
        return file
    try:
        _refreshed_copies_by_url[url] = _download_if_changed(url, file, record, on_bytes)
        return _refreshed_copies_by_url[url]
    except DataError:
        raise
    except ImportError as error:
        scheme = url.partition("://")[0].lower()
        package = PACKAGES.get(scheme, f"fsspec[{scheme}]")
        problem = f'needs a package that is not installed: pip install "{package}"'
        raise DataError(problem, file=redact_credentials(url)) from error
    except Exception as error:  # each file system of fsspec has errors of its own
        user = url.partition("://")[2].partition("/")[0].rpartition("@")[0]
        message = _error_reason(error, url)
        text = " ".join(message.replace(user, "***").split()) if user else " ".join(message.split())
        reason = redact_credentials(text) or type(error).__name__
        remedy = CREDENTIALS_REMEDY if url.startswith("s3:") and "credentials" in reason else ""
        remedy += "" if record is None else "; data.online = false reads the copy that was made before"
        raise DataError(f"cannot be downloaded ({reason:.200}){remedy}", file=redact_credentials(url)) from error


def _error_reason(error: BaseException, url: str) -> str:
    """The reason of a file system's error: the server's answer, which fsspec hides in a FileNotFoundError, or our own
    words if the error only has a file name or a number.
    """
    if isinstance(error, FileNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, FileNotFoundError) and url.endswith(str(error).lstrip("/")):
        return "there is no such file"
    if isinstance(error, OSError) and error.errno == errno.EBUSY:  # the class of s3fs and gcsfs, FileExpired
        return CHANGED_MESSAGE
    status = getattr(error, "status", None)
    return f"the server answers {status} {getattr(error, 'message', '')}".rstrip() if status else str(error)


def _check_url(url: str) -> None:
    match = URL_PATTERN.fullmatch(url)
    scheme = "" if match is None else match[1].lower()
    if scheme not in SCHEMES:
        supported = ", ".join(SCHEMES[:-1])
        raise DataError(
            f'"{scheme}://" is not a supported scheme; use one of {supported}', file=redact_credentials(url)
        )
    if "::" in url or "*" in url:
        raise DataError("a URL names a single file, without * and ::", file=redact_credentials(url))


def _cache_path(url: str) -> Path:
    """The file of a copy: its name ends as the URL's path does, since the ending says how a file is compressed."""
    path = url if url.startswith(("s3:", "gs:", "hf:")) else re.split(r"[?#]", url)[0]
    name = re.sub(r"[^\w.-]", "_", path.rstrip("/").rpartition("/")[2])[-MAX_NAME_CHARS:].lstrip(".") or "file"
    return cache_folder() / hashlib.sha256(url.encode()).hexdigest()[:32] / name


def _read_valid_download_record(file: Path) -> Mapping[str, Any] | None:
    """The record of a whole copy; None if there is none, or it was changed."""
    try:
        record = parse_json(file.with_name(file.name + DOWNLOAD_RECORD_SUFFIX).read_bytes())
        with file.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError, DataError):
        return None
    return record if isinstance(record, dict) and record.get("sha256") == sha256 else None


def _download_if_changed(
    url: str, file: Path, download_record: Mapping[str, Any] | None, on_bytes: ByteCallback
) -> Path:
    import fsspec  # here, as few recipes name a URL

    is_http = url.partition("://")[0].lower() in HTTP_SCHEMES
    system, path = fsspec.core.url_to_fs(url, **(_http_options() if is_http else {}))
    info = system.info(path)
    if info.get("type", "file") != "file":
        raise DataError("is a folder; name a file", file=redact_credentials(url))
    marks = _version_marks(info)
    has_version_marks = bool(marks.keys() - {"size"})  # a server may tell the size alone, or nothing
    if download_record is not None and has_version_marks and download_record.get("marks") == marks:
        return file
    size = info.get("size")
    # Parts might be of two versions, and not every server sends parts.
    open_options = {"block_size": 0} if is_http else {}
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=file.parent)
    digest, count = hashlib.sha256(), 0
    try:
        with os.fdopen(handle, "wb") as output, system.open(path, "rb", **open_options) as stream:
            _check_encoding(url, stream)
            while block := stream.read(BLOCK_BYTES):
                output.write(block)
                digest.update(block)
                count += len(block)
                on_bytes(len(block), size)
        if size is not None and count != size:
            raise DataError(f"has {size:,} bytes, but {count:,} came; try again", file=redact_credentials(url))
        if not is_http:  # it came in parts, which may be of two versions
            system.invalidate_cache()
            if _version_marks(system.info(path)) != marks:
                raise DataError(f"cannot be downloaded ({CHANGED_MESSAGE})", file=redact_credentials(url))
        os.replace(draft, file)
    finally:
        Path(draft).unlink(missing_ok=True)
    new_record = {"url": redact_credentials(url), "sha256": digest.hexdigest(), "marks": marks}
    file.with_name(file.name + DOWNLOAD_RECORD_SUFFIX).write_text(json.dumps(new_record, indent=1) + "\n", "utf-8")
    return file


def _version_marks(info: Mapping[str, Any]) -> dict[str, str]:
    """Properties of a file in a file system that show whether it has changed."""
    properties = {name.lower().replace("-", ""): value for name, value in info.items()}
    return {name: str(properties[name]) for name in FILE_VERSION_FIELDS if properties.get(name) is not None}


def _http_options() -> dict[str, Any]:
    """Options of fsspec's HTTP file system: no decompression of bodies, and no limit on the total time."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS)
    client = {"timeout": timeout, "auto_decompress": False, "headers": {"Accept-Encoding": "identity"}}
    return {"client_kwargs": client}


def _check_encoding(url: str, stream: Any) -> None:
    """Raise DataError if a server sends a file in an encoding that nobody asked for and no reader knows."""
    headers = getattr(getattr(stream, "r", None), "headers", {})
    if (encoding := headers.get("Content-Encoding", "").lower()) not in HTTP_ENCODINGS:
        raise DataError(f"is sent as {encoding:.40}, an encoding that was not requested", file=redact_credentials(url))
