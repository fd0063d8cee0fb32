"""The JSON documents of artifacts, read as untrusted input: bounded in size and depth."""

import json
import stat
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError

MAX_BYTES = 16 * 2**20
MAX_DEPTH = 200


def read_bounded(file: Path, *, shown: Path | None = None, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a file. Raises DataError, which calls it `shown`, where it is too large or no regular file."""
    status = file.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise DataError("is not a regular file", file=shown or file)
    if status.st_size > max_bytes:
        raise DataError(f"is larger than any file that tfm writes ({status.st_size:,} bytes)", file=shown or file)
    with open(file, "rb") as stream:
        return stream.read(max_bytes)


def parse_json(data: bytes) -> dict[str, Any]:
    """The JSON object that `data` spells. Raises ValueError where it is none, or nested too deep for our readers."""
    try:
        document = json.loads(data)
    except RecursionError:
        raise ValueError("is nested deeper than any file that tfm writes") from None
    except ValueError:
        raise ValueError("is damaged (not JSON)") from None
    if not isinstance(document, dict):
        raise ValueError("is damaged (not a JSON object)")
    level: list[object] = [document]
    for _ in range(MAX_DEPTH):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return document
    raise ValueError("is nested deeper than any file that tfm writes")


def read_json(file: Path, *, shown: Path | None = None) -> dict[str, Any]:
    """The JSON object in a file. Raises DataError, which calls the file `shown`, where there is none."""
    try:
        return parse_json(read_bounded(file, shown=shown))
    except ValueError as error:
        raise DataError(str(error), file=shown or file) from None


def _inside(value: object) -> list[object]:
    """What a list or object holds that may hold more."""
    if not isinstance(value, (dict, list)):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [each for each in inner if isinstance(each, (dict, list))]
