"""Errors a user can act on: one or two lines that say what, where and what to do.

TfmError
 └─ DataError          bad data                         exit 65
(pipeline/errors.py adds those of recipes and artifacts.)
"""

from pathlib import Path


class TfmError(Exception):
    """An error of ours. The command line prints its text and exits with `exit_code`."""

    exit_code = 1


class DataError(TfmError):
    """A file does not hold what it should: names the file, the line and the byte where known."""

    exit_code = 65

    def __init__(
        self, problem: str, *, file: Path | str | None = None, line: int | None = None, byte: int | None = None
    ):
        place = "" if file is None else str(file)
        if line is not None:
            place += f", line {line}"
        if byte is not None:
            place += f", byte {byte}"
        super().__init__(f"{place}: {problem}" if place else problem)
