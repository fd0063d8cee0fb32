"""The objects of a JSON file: one a line (JSON Lines), or all in one array, which may be in an object."""

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tfm.data.corpora.tables.structures import array_item_problem, whole_document_problem
from tfm.data.errors import DataError, ExportableFileError
from tfm.data.lines import MAX_LINE_BYTES, decode_block, open_lines, open_maybe_compressed

READ_BLOCK_CHARACTERS = 1 << 20
_SEPARATORS_PATTERN = re.compile(r"[\s,]*")
_STRING_PATTERN = r'"(?:[^"\\]|\\.)*+"'
_WRAPPED_ARRAY_PATTERN = re.compile(
    rf"\s*+\{{(?:\s*+{_STRING_PATTERN}\s*+:\s*+(?:{_STRING_PATTERN}|[-+.\w]++)\s*+,)*+\s*+{_STRING_PATTERN}\s*+:\s*+(?P<array>\[)\s*+\{{",
    re.DOTALL,
)
"""An object in which an array of objects follows texts, numbers and null."""

RECORD_SEPARATOR = "\x1e"
"""Before each object of a sequence of JSON texts (RFC 7464)."""
SINGLE_QUOTES_REMEDY = (
    "names are not in double quotation marks, as Python and JavaScript write objects: write them by json.dumps or "
    "JSON.stringify"
)
REMEDIES_BY_LINE: Mapping[re.Pattern[str], str] = {
    re.compile(r".*\}\s*,\s*", re.DOTALL): "a comma ends the line: cut those, as by sed 's/,[[:space:]]*$//' FILE",
    re.compile(rf"{RECORD_SEPARATOR}.*"): "a record separator begins the line: cut those, as by tr -d '\\036' < FILE",
    re.compile("\ufeff.*"): (
        "a byte order mark begins the line, as in joined files: cut those, as by sed 's/^\\xef\\xbb\\xbf//' FILE"
    ),
    re.compile(r"\s*[\[{]\s*u?'.*|\s*\{\s*\w+\s*:.*"): SINGLE_QUOTES_REMEDY,
    re.compile(r"\s*(//|/\*|#).*"): "JSON has no comments: remove them",
    re.compile(
        r"\s*((var|let|const)\s+)?[\w.]+\s*=\s*[\[{].*"
    ): "it is a program of JavaScript: keep what is behind the = and before the ;",
    re.compile(r".*,\s*[}\]]\s*"): "a comma stands before a closing bracket: remove it",
}
"""Remedies by a pattern of all of a line that is nearly JSON, as programs write objects."""


def iterate_items(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, object]]:
    """The objects of a file, each with the number of its line or in its array.

    columns: those that are read, if known.
    """
    array = _find_array_start(path, columns)
    return _line_items(path) if array is None else enumerate(_array_items(path, array[0], is_wrapped=array[1]), 1)


def _find_array_start(path: Path, columns: Sequence[str]) -> tuple[int, bool] | None:
    """The character at which the array of a file begins, and whether an object is around it; None: a line is an object.

    The array is all of the file (`[{...}]`), or in an object behind short values (`{"version": 1, "data": [{...}]}`).
    An object alone in its file that has all columns is a row, whatever array is in it.
    """
    with open_maybe_compressed(path) as stream:
        head = stream.read(READ_BLOCK_CHARACTERS)
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "ignore")
    if (match := re.match(r"\s*\[", text)) is not None:
        return match.end() - 1, False
    match = _WRAPPED_ARRAY_PATTERN.match(text)
    if match is None:
        return None
    first, _, rest = text.lstrip().partition("\n")
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return match.start("array"), True
    has_columns = bool(columns) and all(each in row or each.split(".")[0] in row for each in columns)
    is_row = rest.strip() or len(head) == READ_BLOCK_CHARACTERS or has_columns
    return None if is_row else (match.start("array"), True)


def _line_items(path: Path) -> Iterator[tuple[int, object]]:
    """The object of each line, with its number; blank lines have none."""
    lines = open_lines(path)
    try:
        first = [*islice(lines, 1)]
    except DataError:  # a document in one line that is too long
        if (problem := whole_document_problem(path)) is None:
            raise
        raise ExportableFileError(problem, file=path) from None
    for number, line in enumerate(chain(first, lines), 1):
        if line.strip():
            try:
                row = _DECODER.decode(line)
            except (ValueError, RecursionError) as error:
                if number == 1 and (problem := whole_document_problem(path)) is not None:
                    raise ExportableFileError(problem, file=path) from None
                problem = f"not JSON: {error}{_syntax_remedy(line, error, is_first=number == 1)}"
                raise DataError(problem, file=path, line=number) from None
            yield number, row


def _array_items(path: Path, begin: int, *, is_wrapped: bool) -> Iterator[object]:
    """The objects of an array, decoded one by one, so that the file need not fit into memory.

    begin: where its `[` is. is_wrapped: whether the array is in an object.
    """
    text, position, number, is_whole, is_inside, is_first_block = "", 0, 1, False, False, True
    with open_maybe_compressed(path) as stream:
        decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        while not is_whole:
            block = stream.read(READ_BLOCK_CHARACTERS)
            is_whole = not block
            try:
                text = text[position:] + decode(block, is_whole)
            except UnicodeDecodeError as error:
                if not is_inside:
                    decode_block(path, 1, block)
                raise DataError(f"not UTF-8 ({error.reason}); convert it to UTF-8", file=path) from None
            is_first_block = not is_inside
            position, is_inside = (0 if is_inside else begin + 1), True
            while True:
                position = _skip_separators(text, position)
                if position == len(text) or text[position] != "{":
                    break
                try:
                    item, position = _DECODER.raw_decode(text, position)
                except (ValueError, RecursionError) as error:
                    if len(text) - position > MAX_LINE_BYTES:
                        problem = f"item {number} is longer than {MAX_LINE_BYTES:,} characters, or not JSON: {error}"
                        raise DataError(problem, file=path) from None
                    if is_whole or isinstance(error, RecursionError):
                        remedy = _syntax_remedy(text[position:].partition("\n")[0], error, is_first=False)
                        raise DataError(f"item {number} is not JSON: {error}{remedy}", file=path) from None
                    break
                yield item
                number += 1
            if position < len(text) and text[position] != "{":
                break
        if text[position : position + 1] in ("[", '"'):
            raise ExportableFileError(
                array_item_problem(text, position, number, begin if is_first_block else None), file=path
            )
        if text[position : position + 1] != "]":
            raise DataError(f"item {number} is not a JSON object, or the array has no end", file=path)
        rest = text[position + 1 :].encode() + stream.read(READ_BLOCK_CHARACTERS)
        if is_wrapped:
            _check_end_of_object(rest + stream.read(READ_BLOCK_CHARACTERS), path)
            return
        while rest:
            if rest.strip():
                remedy = "put each object on a line, as by jq -c '.[]' FILE, if they are arrays"
                raise DataError(f"the array has an end, and more follows: {remedy}", file=path)
            rest = stream.read(READ_BLOCK_CHARACTERS)


def _check_end_of_object(rest: bytes, path: Path) -> None:
    """Raise DataError if an object does not end soon after its array, or has another array of objects."""
    remedy = "keep one array of objects in a file"
    if len(rest) >= READ_BLOCK_CHARACTERS:
        raise DataError(f"the array has an end, and much more follows: {remedy}", file=path)
    try:
        remainder = json.loads('{"":0' + rest.decode("utf-8"))
    except (ValueError, RecursionError):
        raise DataError("the array has an end, and what follows does not end its object", file=path) from None
    for key, value in remainder.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            example = f"jq -c '.[{json.dumps(key)}][]' FILE"
            raise ExportableFileError(f"{key!r:.60} is a second array of objects: {remedy}, as by {example}", file=path)


def _syntax_remedy(line: str, error: Exception, *, is_first: bool) -> str:
    """The remedy for a line that is no JSON, to be added to the error; empty if nothing is known of it.

    Args:
        line: the line.
        error: that of the decoder.
        is_first: whether it is the first of its file.
    """
    for pattern, remedy in REMEDIES_BY_LINE.items():
        if pattern.fullmatch(line):
            return f"; {remedy}"
    if not isinstance(error, json.JSONDecodeError):
        return ""
    if error.msg == "Extra data" and line[error.pos : error.pos + 1] in ("{", "["):
        return "; if a line has several objects, put each on one, as by jq -c . FILE"
    if is_first and error.pos >= len(line.rstrip()):
        return "; if objects go over several lines, put each on one, as by jq -c . FILE"
    return ""


def _skip_separators(text: str, index: int) -> int:
    match = _SEPARATORS_PATTERN.match(text, index)
    return index if match is None else match.end()


def _dict_from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object and check that its keys differ, since `dict` would drop the first of two equal keys."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        duplicate_key = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"the key {duplicate_key!r:.60} is there twice: remove one")
    return mapping


_DECODER = json.JSONDecoder(object_pairs_hook=_dict_from_pairs)
