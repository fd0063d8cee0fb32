"""Lines of text files, plain or compressed, in UTF-8.

They end at "\\n" and nowhere else, so that aligned files stay so; a Ctrl-Z at the end of a file is none of it.
"""

import codecs
import errno
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedIOBase
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from tfm.data.compression.files import decompress
from tfm.data.errors import DataError, ExportableFileError, missing_file_error

BLOCK_BYTES = 1 << 20
# A line is held in memory; a longer one is not text with one sentence per line.
MAX_LINE_BYTES = 1 << 24
# The most characters encoded at once, since encoding takes some hundred bytes for each.
MAX_CHUNK_CHARACTERS = 1 << 22
ROWS_PER_SIZE_CHECK = 16
END_OF_FILE = b"\x1a"
"""Ctrl-Z, with which programs of DOS end a file: it is no text, nor a line if nothing stands before it."""
NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]
MIN_LONG_RUN_CHARS = 128
_LONG_RUN_PATTERN = re.compile(rf"(?:[^\w\s\0-\u02ff]|[\uff9e\uff9f]){{{MIN_LONG_RUN_CHARS},}}")
"""So many characters in a row that combining marks are among: these are neither letters nor white space, but for two of
Japanese, whose compatibility forms are marks."""
PICKLE_PROBLEM = "is a Python pickle, which may run anything and is not read: write its texts as CSV or JSON Lines"
PROBLEMS_BY_MAGIC: Mapping[bytes, str] = {
    b"PAR1": 'is Parquet: in a corpus set format = "parquet"; else write its texts, one a line, into a file',
    b"ARROW1": "is an Arrow file (Feather): write it as Parquet or CSV, as by pandas.read_feather(FILE).to_parquet",
    b"\xff\xff\xff\xff": "is a stream of Arrow, as `datasets` writes it: set data.path to the folder that it is in",
    b"FEA1": "is Feather: write it as Parquet or CSV, as by pandas.read_feather(FILE).to_parquet",
    b"%PDF-": "is a PDF: save its text, in UTF-8, and give that",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "is a document of an office of before 2007: save it as CSV or text in UTF-8",
    b"{\\rtf": "is a document in RTF: save it as plain text in UTF-8, and give that",
    b"SQLite format 3\x00": "is a database of SQLite: export the table as CSV",
    b"\x89HDF\r\n": "is HDF5: write its table as Parquet or CSV",
    b"\xde\x12\x04\x95": "is a compiled catalog of gettext: give its .po, or write one by msgunfmt",
    b"\x93NUMPY": "is a NumPy array: write its texts, one a line, into a file",
    b"7z\xbc\xaf\x27\x1c": "is an archive (7z): unpack it, and give a file in it",
    b"Rar!\x1a\x07": "is an archive (RAR): unpack it, and give a file in it",
    b"\x1f\x9d": "is compressed by compress (.Z): unpack it, as by gunzip FILE",
    b"\x04\x22\x4d\x18": "is compressed by lz4: unpack it, as by lz4 -d FILE OUT",
    b"\x5d\x00\x00": "is compressed by lzma: unpack it, as by xz --format=lzma -d FILE",
    b"\xff\x06\x00\x00sNaPpY": "is compressed by snappy: unpack it",
    b"LZIP\x01": "is compressed by lzip: unpack it, as by lzip -d FILE",
    b"Obj\x01": "is Avro: write its table as Parquet or CSV",
    b"GGUF": "holds the weights of a model (GGUF), and no text",
    b"\xba\x16\x4f\x2f": "is a model of fastText, and no text: give the .vec beside it for word vectors",
    b"mmap lm http://": "is a language model of n-grams (KenLM), and no text",
    b"\x80\x02": PICKLE_PROBLEM,
    b"\x80\x03": PICKLE_PROBLEM,
    b"\x80\x04\x95": PICKLE_PROBLEM,
    b"\x80\x05\x95": PICKLE_PROBLEM,
}
"""Files of programs that a text is exported from, by how they begin."""
PROBLEMS_BY_PATTERN: Mapping[re.Pattern[bytes], str] = {
    re.compile(rb".{4}\0{4}\{\"", re.DOTALL): "holds the weights of a model (safetensors), and no text",
    re.compile(rb"\n[\x04-\x7f]\n[\x01-\x60].{1,96}?\x15", re.DOTALL): (
        "is a model of SentencePiece, and no text: `tfm tokenize --from FILE` reads it"
    ),
}
"""The same of files whose first bytes vary."""
TAR_MAGIC, TAR_MAGIC_OFFSET = b"ustar", 257

Row = TypeVar("Row", bound=tuple[str, ...])


class LineStream(Protocol):
    """Bytes that are read line by line."""

    def readline(self, max_bytes: int, /) -> bytes:
        """The next line with its line break, at most this many bytes; empty at the end."""


def open_lines(path: Path) -> Iterator[str]:
    """The lines of a file, without line ends, one trailing "\\r" each, and a leading byte order mark.

    Raises DataError if there is no such file, or naming line and byte if it is not UTF-8.
    """
    return chain.from_iterable(_decoded_line_blocks(path))


def _decoded_line_blocks(path: Path) -> Iterator[list[str]]:
    first_line = 1
    for block in line_blocks(path):
        text = decode_block(path, first_line, block)
        lines = text.removesuffix("\n").split("\n")
        if first_line == 1:
            lines[0] = lines[0].removeprefix("\ufeff")
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
        first_line += len(lines)
        yield lines


def count_lines(path: Path) -> int:
    """Read a file through and count its lines; raises what `open_lines` would."""
    lines = 0
    for block in line_blocks(path):
        decode_block(path, lines + 1, block)
        lines += block.count(b"\n") + (not block.endswith(b"\n"))
    return lines


def line_blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, uncompressed, in blocks of whole lines; only the last may lack its line end."""
    with open_maybe_compressed(path) as file:
        unfinished_line: list[bytes] = []
        line = 1
        while block := file.read(BLOCK_BYTES):
            end = block.rfind(b"\n") + 1
            if end:
                yield b"".join([*unfinished_line, block[:end]])
                unfinished_line = []
                line += block.count(b"\n")
            unfinished_line.append(block[end:])
            if sum(map(len, unfinished_line)) > MAX_LINE_BYTES:
                raise _length_error(path, line)
        if last_line := b"".join(unfinished_line).rstrip(END_OF_FILE):
            yield last_line


def stream_lines(stream: LineStream, name: str) -> Iterator[str]:
    """The lines of a stream as they come in, read as `open_lines` reads those of a file; `name` is for errors."""
    for number, raw in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b""), 1):
        if len(raw) > MAX_LINE_BYTES:
            raise _length_error(name, number)
        if not (raw := raw if raw.endswith(b"\n") else raw.rstrip(END_OF_FILE)):
            return
        line = decode_block(name, number, raw)
        yield (line.removeprefix("\ufeff") if number == 1 else line).removesuffix("\n").removesuffix("\r")


def blank_lines_remedy(file: Path, further_lines: Iterable[str]) -> str:
    """The remedy for a file that has more lines than another, to be added to a message; empty if one of them has text.

    Args:
        file: the longer one.
        further_lines: those that it has behind as many as the other has.
    """
    if any(map(str.strip, further_lines)):
        return ""
    return f"; the lines at the end of {file} are blank: remove them"


def normalize(form: NormalForm, text: str) -> str:
    """The text in a normal form of Unicode, in time that is linear in its length.

    `unicodedata` sorts the marks of a character by insertion, which takes time in the square of their number.
    """
    return unicodedata.normalize(form, sort_long_mark_runs(form, text))


def sort_long_mark_runs(form: NormalForm, text: str) -> str:
    """The text in whose long runs of combining marks these are in the order of a normal form; others stay as they are.

    The normal form of both texts is the same.
    """
    if len(text) < MIN_LONG_RUN_CHARS:
        return text
    decomposition: NormalForm = "NFKD" if "K" in form else "NFD"

    def sort_marks(run: re.Match[str]) -> str:
        characters = chain.from_iterable(unicodedata.normalize(decomposition, each) for each in run[0])
        groups = groupby(characters, key=lambda character: unicodedata.combining(character) > 0)
        return "".join(chain.from_iterable(sorted(group, key=unicodedata.combining) for _, group in groups))

    return _LONG_RUN_PATTERN.sub(sort_marks, text)


def normalize_whitespace(text: str) -> str:
    """The text without invisible differences: in NFC, each run of white space as one space, none at the ends."""
    return normalize("NFC", " ".join(text.split()))


def join_lines(text: str) -> str:
    """A cell's text on one line, as everything after this expects: line breaks within it become spaces.

    A line break is "\\n" or "\\r\\n", whichever format the cell is of.
    """
    return re.sub(r"\r*\n", " ", text) if "\n" in text else text


def chunk_rows(
    rows: Iterable[Row], max_rows: int, is_next_row_ready: Callable[[], bool] | None = None
) -> Iterator[list[Row]]:
    """The rows in lists of `max_rows` and, where texts are so long, of MAX_CHUNK_CHARACTERS at most or of one row.

    `is_next_row_ready`: says whether the next row can be had without waiting for it; where it cannot, a list ends.
    """
    rows = iter(rows)
    portion: list[Row] = []
    size, rows_per_check = 0, ROWS_PER_SIZE_CHECK if is_next_row_ready is None else 1
    while new_rows := list(islice(rows, min(rows_per_check, max_rows - len(portion)))):
        size += sum(map(len, chain.from_iterable(new_rows)))
        if size > MAX_CHUNK_CHARACTERS:
            yield from filter(None, (portion, *([row] for row in new_rows)))
            portion, size = [], 0
            continue
        portion += new_rows
        if len(portion) == max_rows or (is_next_row_ready is not None and not is_next_row_ready()):
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def check_is_file(path: Path) -> Path:
    """The path of a file that is read more than once. Raises DataError if it is a pipe or device; it is not opened."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise DataError("is a pipe or device, but a corpus is read more than once: give a file", file=path)
    return path


@contextmanager
def open_maybe_compressed(path: Path, *, keep_compressed: bool = False) -> Iterator[BufferedIOBase]:
    """The bytes of a file, uncompressed if it is compressed; keep_compressed: as they are."""
    try:
        with open(path, "rb") as plain:
            if keep_compressed:
                yield plain
                return
            with decompress(plain, path) as stream:
                yield stream
    except FileNotFoundError:
        raise missing_file_error(path) from None
    except IsADirectoryError:
        raise DataError("is a folder, not a file", file=path) from None
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise DataError(f"is not the name of a file: {error.strerror}", file=str(path)[:200]) from None
        error.filename = str(path)  # a read that fails does not say of what
        raise


def _length_error(path: Path | str, line: int) -> DataError:
    return DataError(f"is longer than {MAX_LINE_BYTES:,} bytes; is it text?", file=path, line=line)


def decode_block(path: Path | str, first_line: int, block: bytes) -> str:
    """The text of whole lines, the first of which has a number; raises DataError naming line and byte if it is none."""
    if first_line == 1 and block.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise ExportableFileError("is UTF-32; convert it to UTF-8", file=path)
    if first_line == 1 and _is_utf16(block):
        raise ExportableFileError("is UTF-16, as Excel's Unicode text is; convert it to UTF-8", file=path)
    if first_line == 1 and (problem := _binary_problem(block)) is not None:
        raise ExportableFileError(problem, file=path)
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + block.count(b"\n", 0, error.start)
        byte = error.start - block.rfind(b"\n", 0, error.start)
        remedy = "convert it to UTF-8, as by iconv -f ENCODING -t UTF-8 FILE"
        problem = f"not UTF-8 (0x{block[error.start]:02x}: {error.reason}); {remedy}"
        raise ExportableFileError(problem, file=path, line=line, byte=byte) from None


def _binary_problem(begin: bytes) -> str | None:
    """Why a file that begins so is no text, and what to do; None if nothing is known of it."""
    if begin[TAR_MAGIC_OFFSET : TAR_MAGIC_OFFSET + len(TAR_MAGIC)] == TAR_MAGIC:
        return "is an archive (tar): unpack it, and give a file in it"
    problems = (problem for magic, problem in PROBLEMS_BY_MAGIC.items() if begin.startswith(magic))
    further = (problem for pattern, problem in PROBLEMS_BY_PATTERN.items() if pattern.match(begin))
    return next(problems, None) or next(further, None)


def _is_utf16(begin: bytes) -> bool:
    """Whether a file that begins so is in UTF-16: by its mark or, for UTF-8 can be that too, by its zeros."""
    head = begin[:1000]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    more_zeros, fewer_zeros = sorted((head[0::2].count(0), head[1::2].count(0)), reverse=True)
    return 4 * more_zeros > len(head) and fewer_zeros * 20 < more_zeros
