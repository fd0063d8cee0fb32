"""Files as they are compressed: gzip, bzip2, xz, zstandard, and zip archives of one file; read without unpacking them.

Which it is, the first bytes say, which no text in UTF-8 begins with, or else the ending of the name.
"""

import bz2
import codecs
import gzip
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase, BufferedReader, RawIOBase
from pathlib import Path
from typing import cast

from tfm.data.compression.streams import DecompressedStream, ShortReadStream, make_xz_decoder
from tfm.data.errors import DataError, ExportableFileError, format_names
from tfm.data.safe_files import GIT_LFS_BEGIN, GIT_LFS_PROBLEM

ZIP_ENCRYPTED_FLAG = 0x1
MAX_HEAD_BYTES = 64
"""First bytes of a file by which its kind is told."""
MAX_CHARACTER_BYTES = 4


@dataclass(frozen=True)
class Compression:
    """A kind of compressed file: what it is called, how it begins (a pattern), and how its bytes are read."""

    name: str
    magic: bytes
    open: Callable[[BufferedReader, Path], BufferedIOBase]


def _open_zstd(compressed: BufferedReader, path: Path) -> BufferedIOBase:
    import pyarrow as pa

    if not pa.Codec.is_available("zstd"):
        raise DataError(
            "is compressed by zstandard, which this pyarrow lacks: `pip install --upgrade pyarrow`", file=path
        )
    return BufferedReader(cast(RawIOBase, pa.CompressedInputStream(compressed, "zstd")))


def _open_bzip2(compressed: BufferedReader, _: Path) -> BufferedIOBase:
    return BufferedReader(DecompressedStream(compressed, bz2.BZ2Decompressor))


def _open_xz(compressed: BufferedReader, _: Path) -> BufferedIOBase:
    return BufferedReader(DecompressedStream(compressed, make_xz_decoder))


DOCUMENTS_BY_MEMBER = {
    "xl/workbook.xml": "is an Excel workbook: save the sheet as CSV UTF-8, and give that",
    "word/document.xml": "is a Word document: save it as plain text in UTF-8, and give that",
    "xl/workbook.bin": "is an Excel workbook: save the sheet as CSV UTF-8, and give that",
    "ppt/presentation.xml": "is a presentation: save its text as plain text in UTF-8, and give that",
    "META-INF/container.xml": "is an e-book (EPUB): write its text, as by pandoc -t plain FILE, and give that",
    "collection.anki2": "is a deck of Anki: export its notes as plain text, and give that",
    "META-INF/manifest.xml": "is an OpenDocument file: save it as CSV or plain text in UTF-8, and give that",
}
"""Files of offices and other programs, which are zip archives, by a file that each has in it."""


def _open_zip(compressed: BufferedReader, path: Path) -> BufferedIOBase:
    try:
        return _open_single_member(zipfile.ZipFile(cast(BufferedReader, ShortReadStream(compressed))), path)
    except (ValueError, LookupError, RuntimeError, struct.error) as error:  # of damaged lists and names
        raise zipfile.BadZipFile(str(error)) from None


def _open_single_member(archive: zipfile.ZipFile, path: Path) -> BufferedIOBase:
    members = [each for each in archive.infolist() if not each.is_dir() and not _is_of_file_manager(each.filename)]
    if len(members) != 1:
        for name, problem in DOCUMENTS_BY_MEMBER.items():
            if any(each.filename == name for each in members):
                raise ExportableFileError(problem, file=path)
        if any(each.filename.endswith("/data.pkl") for each in members):
            raise ExportableFileError("holds the weights of a model or data of torch, and no text", file=path)
        names = format_names(each.filename for each in members)
        holds = f"{len(members):,} files ({names})" if members else "no file"
        problem = f"is a zip archive that holds {holds}, not one: unpack it and name the files"
        raise ExportableFileError(problem, file=path)
    (member,) = members
    if member.flag_bits & ZIP_ENCRYPTED_FLAG:
        raise DataError("is an encrypted zip archive: unpack it", file=path)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError("is a zip archive that is compressed in an unusual way: unpack it", file=path)
    return cast(BufferedIOBase, archive.open(member))


def _is_of_file_manager(name: str) -> bool:
    """Whether a file of an archive is one that programs hide, such as macOS' .DS_Store and those in __MACOSX."""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith(".")


COMPRESSIONS: Mapping[str, Compression] = {
    ".gz": Compression("gzip file", rb"\x1f\x8b", lambda packed, _: gzip.GzipFile(fileobj=packed)),
    ".bz2": Compression("bzip2 file", rb"BZh[1-9](1AY&SY|\x17rE8P)", _open_bzip2),
    ".xz": Compression("xz file", rb"\xfd7zXZ\0", _open_xz),
    ".zst": Compression("zstandard file", rb"\x28\xb5\x2f\xfd", _open_zstd),
    ".zip": Compression("zip archive", rb"PK\x03\x04", _open_zip),
}
"""By the ending of names."""
COMPRESSION_ENDINGS = tuple(COMPRESSIONS)
DECOMPRESSION_ERRORS = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def strip_compression_ending(name: str) -> str:
    """The name of a file without the ending that says how it is compressed."""
    return next((name.removesuffix(ending) for ending in COMPRESSION_ENDINGS if name.endswith(ending)), name)


@contextmanager
def decompress(compressed: BufferedReader, path: Path) -> Iterator[BufferedIOBase]:
    """The bytes of an open file, uncompressed if they are compressed.

    Args:
        compressed: the file, at its beginning.
        path: its name, for its ending and for messages.

    Raises:
        DataError: it is damaged, a zip archive of several files, compressed twice, or a pointer of Git LFS.
    """
    head = compressed.peek(MAX_HEAD_BYTES)
    if head.startswith(GIT_LFS_BEGIN):
        raise ExportableFileError(GIT_LFS_PROBLEM, file=path)
    kind = _find_compression(head) or COMPRESSIONS.get(path.suffix)
    if kind is None:
        yield compressed
        return
    if path.suffix in COMPRESSIONS and _is_text(head):
        problem = f"is text, not a {COMPRESSIONS[path.suffix].name}: remove {path.suffix} from its name"
        raise ExportableFileError(problem, file=path)
    try:
        unpacked = kind.open(compressed, path)
        if (inner := _find_compression(cast(BufferedReader, unpacked).peek(MAX_HEAD_BYTES))) is not None:
            raise ExportableFileError(f"is a {kind.name} that holds a {inner.name}: unpack it once", file=path)
        yield unpacked
    except DECOMPRESSION_ERRORS as error:
        raise DataError(_damage_problem(kind, head, error), file=path) from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise DataError(_damage_problem(kind, head, error), file=path) from None


def _find_compression(head: bytes) -> Compression | None:
    """The kind of compressed file that begins so; None if none does."""
    return next((each for each in COMPRESSIONS.values() if re.match(each.magic, head)), None)


def _is_text(head: bytes) -> bool:
    """Whether a file begins with text in UTF-8: printable characters, tabs and line breaks."""
    start = head[:MAX_HEAD_BYTES].removeprefix(codecs.BOM_UTF8)
    text = start.decode("utf-8", "ignore")
    return 0 < len(start) < len(text.encode()) + MAX_CHARACTER_BYTES and "".join(text.split()).isprintable()


def _damage_problem(kind: Compression, head: bytes, error: Exception) -> str:
    """The reason why a file of some kind, which begins with `head`, cannot be read to its end."""
    if str(error).startswith("Not a gzipped file") and re.match(kind.magic, head):
        remedy = "if they are no text, unpack it by gunzip, which leaves them out"
        return f"other bytes follow the end of a {kind.name}: {remedy}"
    return f"not a complete {kind.name}: {error!s:.200}"
