"""Streams of bytes that read what somebody sent in bounded memory: bzip2 and xz files, and archives."""

import bz2
import lzma
from collections.abc import Callable
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_XZ_MEMORY = 2**28
"""Bytes that a decoder of xz may take for its dictionary; `xz -9` asks for 65 MiB."""
MAX_READ_BYTES = 2**22
"""Bytes that are read of an archive at once, so that its list of files is no longer."""
READ_BLOCK_BYTES = 2**16


Decoder = TypeVar("Decoder", bz2.BZ2Decompressor, lzma.LZMADecompressor)


class DecompressedStream(RawIOBase, Generic[Decoder]):
    """The decompressed bytes of one or several compressed streams in a file, one after another.

    Streams of Python's own leave out what follows a stream of bzip2 and is none, so that a damaged file is shorter.
    """

    def __init__(self, packed: BufferedReader, make_decoder: Callable[[], Decoder]):
        """
        Args:
            packed: the file.
            make_decoder: makes the decoder of a stream.
        """
        self._packed = packed
        self._make_decoder: Callable[[], Decoder] = make_decoder
        self._decoder: Decoder | None = None
        self._unread = b""
        self._has_stream = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill the buffer, or a part of it; 0 bytes at the end."""
        view = memoryview(buffer).cast("B")
        while True:
            if self._decoder is None or self._decoder.eof:
                packed_block = (b"" if self._decoder is None else self._decoder.unused_data) or self._packed.read1(
                    READ_BLOCK_BYTES
                )
                if not packed_block.strip(b"\0"):  # streams may be padded with zeros
                    if not packed_block:
                        return 0
                    if not self._has_stream:
                        raise EOFError("it begins with zeros, not with a stream")
                    self._decoder = None
                    continue
                self._decoder = self._make_decoder()
                self._unread = (
                    packed_block.lstrip(b"\0") if self._has_stream else packed_block
                )  # only between streams and at the end
                self._has_stream = True
            block = self._unread
            if not block and self._decoder.needs_input:
                block = self._packed.read1(READ_BLOCK_BYTES)
                if not block:
                    raise EOFError("Compressed file ended before the end-of-stream marker was reached")
            self._unread = b""
            if unpacked := self._decoder.decompress(block, len(view)):
                view[: len(unpacked)] = unpacked
                return len(unpacked)


def make_xz_decoder() -> lzma.LZMADecompressor:
    """Make a decoder in bounded memory (`lzma.LZMAFile` takes as much as a file asks for)."""
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY)


class ShortReadStream(RawIOBase):
    """A file that returns at most MAX_READ_BYTES per read, however many bytes are requested."""

    def __init__(self, file: BufferedReader):
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence == 0 and offset < 0:
            raise ValueError("a file of it is before its beginning")
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        return self._file.read(MAX_READ_BYTES if size < 0 else min(size, MAX_READ_BYTES))
