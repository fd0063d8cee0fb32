"""Errors that a user can fix: one or two lines that say what, where and what to do.

TfmError
 └─ DataError          bad data                         exit 65
(pipeline/errors.py adds those of recipes and artifacts.)
"""

from collections.abc import Iterable
from pathlib import Path


class TfmError(Exception):
    """An error of ours. The command line prints its text, in which nothing is invisible, and exits with `exit_code`."""

    exit_code = 1

    def __init__(self, text: str) -> None:
        super().__init__("\n".join(map(printable, text.split("\n"))))


def printable(text: str) -> str:
    """The text with every character that a terminal would not show, or would obey, spelled out."""
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def listed(names: Iterable[object], between: str = ", ", most: int = 200) -> str:
    """Names or words from a user's file as an error may list them: on one line, and not without end."""
    text = printable(between.join(map(str, names)))
    return text if len(text) <= most else f"{text[:most]}..."


class DataError(TfmError):
    """A file does not hold what it should: names the file, the line and the byte where known."""

    exit_code = 65

    def __init__(
        self, problem: str, *, file: Path | str | None = None, line: int | None = None, byte: int | None = None
    ):
        place = "" if file is None else printable(str(file))
        if line is not None:
            place += f", line {line}"
        if byte is not None:
            place += f", byte {byte}"
        super().__init__(f"{place}: {problem}" if place else problem)
