"""Lines of text files, plain or .gz, in UTF-8. They end at "\\n" and nowhere else, so that aligned files stay so."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from itertools import chain
from pathlib import Path

from data.errors import DataError

BLOCK_BYTES = 1 << 20


def open_lines(path: Path) -> Iterator[str]:
    """The lines of a file, without line ends, one trailing "\\r" each, and a leading byte order mark.

    Raises DataError if there is no such file, or naming line and byte if it is not UTF-8.
    """
    return chain.from_iterable(_blocks_of_lines(path))


def _blocks_of_lines(path: Path) -> Iterator[list[str]]:
    first_line = 1
    for block in line_blocks(path):
        text = _decoded(path, first_line, block)
        lines = text.removesuffix("\n").split("\n")
        if first_line == 1:
            lines[0] = lines[0].removeprefix("\ufeff")
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
        first_line += len(lines)
        yield lines


def check_lines(path: Path) -> int:
    """Read a file through and count its lines; raises what `open_lines` would."""
    lines = 0
    for block in line_blocks(path):
        _decoded(path, lines + 1, block)
        lines += block.count(b"\n") + (not block.endswith(b"\n"))
    return lines


def line_blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, uncompressed, in blocks of whole lines; only the last may lack its line end."""
    with opened(path) as file:
        rest: list[bytes] = []
        while block := file.read(BLOCK_BYTES):
            end = block.rfind(b"\n") + 1
            if end:
                yield b"".join([*rest, block[:end]])
                rest = []
            rest.append(block[end:])
        if any(rest):
            yield b"".join(rest)


@contextmanager
def opened(path: Path, *, packed: bool = False) -> Iterator[BufferedIOBase]:
    """The bytes of a file, uncompressed if its name ends in .gz; packed: as they are."""
    try:
        with open(path, "rb") as plain:
            yield gzip.GzipFile(fileobj=plain) if path.suffix == ".gz" and not packed else plain
    except FileNotFoundError:
        raise DataError("no such file", file=path) from None
    except IsADirectoryError:
        raise DataError("is a folder, not a file", file=path) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"not a whole gzip file: {error}", file=path) from None
    except OSError as error:
        error.filename = str(path)  # a read that fails does not say of what
        raise


def _decoded(path: Path, first_line: int, block: bytes) -> str:
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + block.count(b"\n", 0, error.start)
        byte = error.start - block.rfind(b"\n", 0, error.start)
        problem = f"not UTF-8 (0x{block[error.start]:02x}: {error.reason}); convert the file to UTF-8"
        raise DataError(problem, file=path, line=line, byte=byte) from None
