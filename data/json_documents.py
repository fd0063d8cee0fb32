"""The JSON documents of artifacts, read as untrusted input: bounded in size and depth."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError
from tfm.data.safe_files import MAX_FILE_BYTES, read_bounded_file

MAX_DEPTH = 200
MAX_JSON_VALUES = 4_000_000
"""Each value takes up to a few hundred bytes in memory, and two in the file; the largest vocabularies have a third."""


def parse_json(data: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises ValueError if `data` is none, is nested too deep or too large for the readers here, or has a key twice, of
    which readers may take either. The number of values is bounded before any of them is made.
    """
    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_JSON_VALUES:
        raise ValueError(f"has more than {MAX_JSON_VALUES:,} values, which no file that tfm reads here has")
    repeated: list[str] = []

    def dict_with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(pairs)
        if len(mapping) < len(pairs):
            repeated.append(Counter(name for name, _ in pairs).most_common(1)[0][0])
        return mapping

    try:
        document = json.loads(data, object_pairs_hook=dict_with_unique_keys)
    except RecursionError:
        raise ValueError("is nested deeper than any file that tfm writes") from None
    except ValueError:
        raise ValueError("is damaged (not JSON)") from None
    if repeated:
        raise ValueError(f"has the key {repeated[0]!r:.60} twice in one object")
    if not isinstance(document, dict):
        raise ValueError("is damaged (not a JSON object)")
    level: list[object] = [document]
    for _ in range(MAX_DEPTH):
        level = [inner for each in level for inner in _nested_containers(each)]
        if not level:
            return document
    raise ValueError("is nested deeper than any file that tfm writes")


def read_json(file: Path, *, displayed_path: Path | None = None, max_bytes: int = MAX_FILE_BYTES) -> dict[str, Any]:
    """Read the JSON object in a file.

    Args:
        file: to read.
        displayed_path: the file in messages, if another.
        max_bytes: the most bytes of the file.

    Raises:
        DataError: there is no JSON object.
    """
    try:
        return parse_json(read_bounded_file(file, displayed_path=displayed_path, max_bytes=max_bytes))
    except ValueError as error:
        raise DataError(str(error), file=displayed_path or file) from None


def _nested_containers(value: object) -> list[object]:
    """The items of a list or object that are lists or objects themselves."""
    if not isinstance(value, (dict, list)):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [each for each in inner if isinstance(each, (dict, list))]
