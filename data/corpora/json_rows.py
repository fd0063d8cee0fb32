"""JSON files with an object a row: one a line (JSON Lines), or all in one array."""

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfm.data.corpora.references import Row
from tfm.data.corpora.table_cells import cell_references, cell_text, column_names
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, format_names
from tfm.data.lines import MAX_LINE_BYTES, one_line, open_lines, open_maybe_gzip

READ_AT_ONCE = 1 << 20
_BETWEEN = re.compile(r"[\s,]*")


def read_json(path: Path, corpus: CorpusConfig) -> Iterator[Row]:
    """The rows of a file that is an array of objects, or has one a line; objects in an array count as lines."""
    with open_maybe_gzip(path) as stream:
        is_array = stream.read(4096).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    if not is_array:
        yield from _read_lines(path, corpus)
        return
    for number, row in enumerate(_array_items(path), 1):
        yield _row(row, corpus, path, number)


def _read_lines(path: Path, corpus: CorpusConfig) -> Iterator[Row]:
    """The rows of a file with a JSON object a line; blank lines are none."""
    for number, line in enumerate(open_lines(path), 1):
        if line.strip():
            try:
                row = _DECODER.decode(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"not JSON: {error}", file=path, line=number) from None
            yield _row(row, corpus, path, number)


def _array_items(path: Path) -> Iterator[object]:
    """The objects of an array, decoded one by one, so that the file need not fit into memory."""
    text, place, number, is_whole, is_inside = "", 0, 1, False, False
    with open_maybe_gzip(path) as stream:
        decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        while not is_whole:
            block = stream.read(READ_AT_ONCE)
            is_whole = not block
            try:
                text = text[place:] + decode(block, is_whole)
            except UnicodeDecodeError as error:
                raise DataError(f"not UTF-8 ({error.reason}); convert it to UTF-8", file=path) from None
            place, is_inside = (0 if is_inside else text.index("[") + 1), True
            while True:
                place = _end_of_separators(text, place)
                if place == len(text) or text[place] != "{":
                    break
                try:
                    item, place = _DECODER.raw_decode(text, place)
                except (ValueError, RecursionError) as error:
                    if len(text) - place > MAX_LINE_BYTES:
                        problem = f"item {number} is longer than {MAX_LINE_BYTES:,} characters, or not JSON: {error}"
                        raise DataError(problem, file=path) from None
                    if is_whole or isinstance(error, RecursionError):
                        raise DataError(f"item {number} is not JSON: {error}", file=path) from None
                    break
                yield item
                number += 1
            if place < len(text) and text[place] != "{":
                break
        if text[place : place + 1] != "]":
            raise DataError(f"item {number} is not a JSON object, or the array has no end", file=path)
        rest = text[place + 1 :].encode() + stream.read(READ_AT_ONCE)
        while rest:
            if rest.strip():
                raise DataError("the array has an end, and more follows: make it one array", file=path)
            rest = stream.read(READ_AT_ONCE)


def _end_of_separators(text: str, place: int) -> int:
    match = _BETWEEN.match(text, place)
    return place if match is None else match.end()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different; what one of two equal ones says would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice!r:.60} is there twice: remove one")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def _row(row: object, corpus: CorpusConfig, path: Path, number: int) -> Row:
    source, *targets = column_names(corpus)
    first = "" if source is None else cell_text(_value(row, source, path, number), source, corpus, path, number)
    return (
        first,
        *[
            text
            for each in targets
            if each is not None
            for text in cell_references(_value(row, each, path, number), each, corpus, path, number)
        ],
    )


def _value(row: object, column: str, path: Path, line: int) -> str | list[str]:
    """The text or texts at a key; `a.b` is key b of the object at key a, and b may be one of `translation`, as on the
    Hub. null is an empty text."""
    value: object = row
    nested = row.get("translation") if isinstance(row, dict) else None
    if isinstance(row, dict) and column not in row and isinstance(nested, dict) and column in nested:
        value = nested
    for key in [column] if isinstance(value, dict) and column in value else column.split("."):
        if not isinstance(value, dict) or key not in value:
            has = f"; it has {format_names(row)}" if isinstance(row, dict) else ""
            raise DataError(f"there is no {column!r}{has}", file=path, line=line)
        value = value[key]
    if isinstance(value, list):
        return [_text_of(each, column, path, line) for each in value]
    return _text_of(value, column, path, line)


def _text_of(value: object, column: str, path: Path, line: int) -> str:
    if value is not None and not isinstance(value, str):
        raise DataError(f"{column!r} holds {json.dumps(value):.40}, not text", file=path, line=line)
    text = one_line(value or "")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise DataError(f"{column!r} contains half a surrogate pair, which is not a character", file=path, line=line)
    return text
