"""Files of word vectors: text as word2vec and GloVe write it, and word2vec's binary format.

In text each line has a word and its numbers, separated by spaces or tabs; word2vec's begins with a line that gives the
number of words and the width of the vectors, GloVe's does not. The binary format has the same first line, and then for
each word its bytes, a space, and its numbers as little-endian fp32, with or without a line break behind them (as gensim
reads it: radimrehurek.com/gensim/models/keyedvectors.html).
"""

import codecs
import re
from collections.abc import Collection, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tfm.data.errors import DataError, format_count
from tfm.data.lines import open_lines, open_maybe_compressed

Matrix: TypeAlias = NDArray[np.float32]
MAX_HEADER_NUMBER_DIGITS = 18
"""Maximum digits of a number in the first line of word2vec's format."""
HEADER_PATTERN = re.compile(rb"([0-9]{1,18})[ \t]([0-9]{1,18})[ \t]*\r?\n")
CONTROL_PATTERN = re.compile(r"[\x00-\x08\x0e-\x1f]")
BLANK_PATTERN = re.compile(r"[ \t]+")
NUM_PEEK_BYTES = 2**16
READ_BLOCK_BYTES = 2**20
MAX_WORD_BYTES = 2**16
MAX_LINES_SAMPLED = 10
"""The first lines by which a file is known as word vectors."""
UNSUPPORTED_FORMATS = {
    b"\xba\x16\x4f\x2f": "is a model of fastText: give the text file .vec that it wrote beside it",
    b"\x80": "is a Python pickle, which may run anything and is not read: use save_word2vec_format of gensim",
    b"\x93NUMPY": "is a NumPy array, which has no words: give a file with a word before each vector",
}
"""Problems of files in other formats, by their first bytes."""


def vector_width(file: Path) -> int | None:
    """The dimension of the vectors of a file (E), from its beginning; None if it seems to hold none. Some of its first
    lines may be damaged.

    Raises:
        DataError: it is of a program that no text comes from.
    """
    if _is_binary(file):
        with open_maybe_compressed(file) as stream:
            return int(stream.readline().split()[1])
    first, *rows = [line.rstrip(" \t") for line in islice(open_lines(file), MAX_LINES_SAMPLED + 1)] or [""]
    is_headed = HEADER_PATTERN.fullmatch(f"{first}\n".encode()) is not None
    rows = rows if is_headed else [first, *rows]
    rows_by_width: dict[int, list[list[str]]] = {}
    for fields in (BLANK_PATTERN.split(row) for row in rows if row):
        rows_by_width.setdefault(_num_trailing_numbers(fields), []).append(fields)
    width, vector_rows = max(rows_by_width.items(), key=lambda each: len(each[1]), default=(0, []))
    if width < 2 or 2 * len(vector_rows) < sum(map(len, rows_by_width.values())):
        return None
    has_fractions = any("." in number for fields in vector_rows for number in fields[-width:])
    has_words = is_headed or not all(_is_number(fields[0]) for fields in vector_rows)
    return width if has_fractions and has_words else None


def read_vectors(file: Path, width: int, words: Collection[str] | None) -> dict[str, Matrix]:
    """Read the vectors of these words that are in a file; of a word that comes up again, the first.

    The file is read block by block, and may be compressed.

    Args:
        file: words with their vectors.
        width: the dimension of the vectors (E).
        words: the words; None for all.

    Returns:
        The vectors (E,) by word.

    Raises:
        DataError: a vector, whose line is named, is not `width` wide or no vector, or there are fewer or more than the
            file's first line says.
    """
    return _read_binary(file, width, words) if _is_binary(file) else _read_text(file, width, words)


def _is_binary(file: Path) -> bool:
    """Whether a file is in word2vec's binary format; raises DataError if it is of a program that no text comes from."""
    with open_maybe_compressed(file) as stream:
        head = stream.read(NUM_PEEK_BYTES)
    if (
        problem := next((each for magic, each in UNSUPPORTED_FORMATS.items() if head.startswith(magic)), None)
    ) is not None:
        raise DataError(problem, file=file)
    match = HEADER_PATTERN.match(head)
    if match is None:
        return False
    body = head[match.end() :]
    first = body[: body.find(b" ") + 1 + 4 * int(match[2])]  # a word and its fp32, in which a line may seem to end
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(first)  # its last character may be cut
    except UnicodeDecodeError:
        return True
    return any(char < " " and char not in "\t\r\n" for char in text)


def _read_binary(file: Path, width: int, words: Collection[str] | None) -> dict[str, Matrix]:
    vectors: dict[str, Matrix] = {}
    with open_maybe_compressed(file) as stream:
        num_promised, file_width = map(int, stream.readline(2 * MAX_HEADER_NUMBER_DIGITS + 10).split())
        if file_width != width:
            raise width_error(file_width, width, file, 1)
        buffer, position, num_bytes = b"", 0, 4 * width
        for number in range(num_promised + 1):
            while (end := buffer.find(b" ", position)) < 0 or len(buffer) <= end + num_bytes:
                if end < 0 and len(buffer) - position > MAX_WORD_BYTES:
                    problem = f"word {number + 1} is longer than {MAX_WORD_BYTES:,} bytes: is it word2vec's format?"
                    raise DataError(problem, file=file)
                block = stream.read(READ_BLOCK_BYTES)
                if not block:
                    break
                buffer, position = buffer[position:] + block, 0
            if end < 0 or len(buffer) <= end + num_bytes:
                break
            word = buffer[position:end].lstrip(b"\r\n").decode("utf-8", "replace")
            if CONTROL_PATTERN.search(word) is not None:
                problem = f"word {number + 1} has bytes that no text has: are words without spaces, and numbers of fp32"
                raise DataError(f"{problem}, {width} a word, as its first line says?", file=file)
            position = end + 1 + num_bytes
            if (words is None or word in words) and word not in vectors:
                vectors[word] = _check_finite(
                    np.frombuffer(buffer, "<f4", width, end + 1).astype(np.float32), file, None
                )
        else:
            raise DataError(
                f"has more than the {format_count(num_promised, 'vector')} of its first line", file=file, line=1
            )
        if number != num_promised or buffer[position:].strip():
            header_count = format_count(num_promised, "vector")
            problem = f"should have {header_count} by its first line, but has {number}: is it complete?"
            raise DataError(problem, file=file, line=1)
    return vectors


def _read_text(file: Path, width: int, words: Collection[str] | None) -> dict[str, Matrix]:
    vectors: dict[str, Matrix] = {}
    num_promised, num_vectors = None, 0
    for number, line in enumerate(open_lines(file), 1):
        fields = line.split() if number == 1 else ()
        if len(fields) == 2 and all(field.isdecimal() and len(field) <= MAX_HEADER_NUMBER_DIGITS for field in fields):
            num_promised, file_width = map(int, fields)
            if file_width != width:
                raise width_error(file_width, width, file, number)
            continue
        line = line.rstrip(" \t")
        if not line:
            continue
        if num_vectors == 0:
            _check_first_vector(line, width, file, number, is_headed=num_promised is not None)
        word, numbers = _split_vector_line(line, width, file, number)
        num_vectors += 1
        if (words is None or word in words) and word not in vectors:
            vectors[word] = _parse_vector(numbers, file, number)
    if num_promised is not None and num_promised != num_vectors:
        header_count = format_count(num_promised, "vector")
        problem = f"should have {header_count} by its first line, but has {num_vectors}: is it complete?"
        raise DataError(problem, file=file, line=1)
    return vectors


def _check_first_vector(line: str, width: int, file: Path, number: int, *, is_headed: bool) -> None:
    """Raise DataError if the first line with a vector ends in more or fewer numbers, or in none."""
    fields = BLANK_PATTERN.split(line)
    if len(fields) == width + 1:
        return
    num_numbers = _num_trailing_numbers(fields)
    if num_numbers == 0:
        problem = "is no vector: a line has a word and its numbers, with spaces or a tab between"
        raise DataError(problem, file=file, line=number)
    if num_numbers != width and is_headed:
        problem = f"its vector is {num_numbers} wide, and the first line of the file says {width}: correct that"
        raise DataError(problem, file=file, line=number)
    if num_numbers != width:
        raise width_error(num_numbers, width, file, number)


def _num_trailing_numbers(fields: Sequence[str]) -> int:
    """How many numbers a line ends in; its first field is a word, even if that is one."""
    return next((count for count, field in enumerate(reversed(fields)) if not _is_number(field)), len(fields) - 1)


def _split_vector_line(line: str, width: int, file: Path, number: int) -> tuple[str, list[str]]:
    """The word of a line and its numbers; a word may hold spaces, as some of GloVe's do."""
    if line.count("\t") == width:
        word, *numbers = line.split("\t")
        return word, numbers
    fields = BLANK_PATTERN.split(line)
    words = [*filter(None, fields[:-width])]
    if len(fields) <= width or (len(words) > 1 and _is_number(words[-1])):
        problem = (
            f"its vector is {len(fields) - 1} wide, and those above it {width}: remove the line, or what is too much"
        )
        raise DataError(problem, file=file, line=number)
    return " ".join(words), fields[-width:]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse_vector(numbers: Sequence[str], file: Path, line: int) -> Matrix:
    try:
        with np.errstate(over="ignore"):  # beyond fp32 it is infinite, which is an error below
            vector = np.array([float(each) for each in numbers]).astype(np.float32)
    except ValueError:
        faulty_number = next(each for each in numbers if not _is_number(each))
        raise DataError(f"{faulty_number[:40]!r} is not a number", file=file, line=line) from None
    return _check_finite(vector, file, line)


def _check_finite(vector: Matrix, file: Path, line: int | None) -> Matrix:
    if not np.isfinite(vector).all():
        raise DataError("a vector contains a number that is not finite", file=file, line=line)
    return vector


def width_error(file_width: int, width: int, path: Path, line: int | None) -> DataError:
    """The error of vectors that are not as wide as the embedding."""
    return DataError(
        f"its vectors are {file_width} wide, and the embedding is {width}: set model.embedding_dim = {file_width}",
        file=path,
        line=line,
    )
