"""Errors that a user can fix: one or two lines with file, line, cause and remedy.

TfmError
 └─ DataError          bad data                         exit 65
(pipeline/errors.py adds those of recipes and artifacts.)
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tfm.data.credentials import redact_credentials

if TYPE_CHECKING:  # errors are shown without waiting for pydantic
    from pydantic import ValidationError


class TfmError(Exception):
    """Base of the errors of tfm; the command line prints its text, and exits with `exit_code`.

    In the text nothing is invisible, and credentials are masked.
    """

    exit_code = 1

    def __init__(self, text: str) -> None:
        super().__init__("\n".join(map(escape_unprintable, redact_credentials(text).split("\n"))))


def escape_unprintable(text: str) -> str:
    """The text with every character that a terminal would not show, or would obey, spelled out."""
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


@cache
def control_character_pattern() -> re.Pattern[str]:
    """The characters that a terminal obeys instead of showing, that break a line, that turn the direction of the text
    after them, or that are half a character. Joiners, marks and spaces, which languages need, are not among them."""
    return re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_control_characters(text: str, keep: str = "\n\t") -> str:
    """The text with control characters spelled out, as in \\x1b, but for those to keep."""
    if text.isprintable():
        return text
    return control_character_pattern().sub(lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], text)


def format_for_terminal(text: str) -> str:
    """A text as a terminal or a log may get it: control characters spelled out, credentials masked."""
    return escape_control_characters(redact_credentials(text))


def format_names(names: Iterable[object], separator: str = ", ", max_chars: int = 200) -> str:
    """Join names or words from a user's file for an error message: on one line, and cut if it is long.

    Args:
        names: the names.
        separator: the text between two names.
        max_chars: the most characters before the cut.
    """
    text = escape_unprintable(separator.join(map(str, names)))
    return text if len(text) <= max_chars else f"{text[:max_chars]}..."


def format_count(count: int, singular: str, plural: str = "") -> str:
    """A number of things as a message has it: "1 line", "1,200 lines".

    Args:
        count: how many there are.
        singular: the word for one.
        plural: the word for several; without it the singular and s.
    """
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def format_share(count: int, total: int, singular: str, has: str, have: str) -> str:
    """A part of a number of things, with its verb: "1 of 5 lines has", "2 of 5 lines have".

    Args:
        count: how many the sentence is about.
        total: how many there are.
        singular: the word for one.
        has: the verb for one.
        have: the verb for several.
    """
    return f"{count:,} of {format_count(total, singular)} {has if count == 1 else have}"


def unexpected_value_reason(error: Exception) -> str:
    """Return what in a file of others led to an error, on one line: a missing key, half a character, or its message."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    if isinstance(error, UnicodeEncodeError):
        text = error.object[max(0, error.start - 20) : error.end].rpartition('"')[2]
        return f"it has half a character, which no UTF-8 spells, at the end of '{escape_unprintable(text)}'"
    return " ".join(str(error).split())


def validation_problem(error: "ValidationError") -> str:
    """The first problem of a pydantic model: its place, with dots, and the message."""
    first = error.errors(include_url=False, include_input=False)[0]
    location = f"{'.'.join(map(str, first['loc'])):.100}"
    message = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
    return f"{location}: {message:.200}" if location else message


class DataError(TfmError):
    """Error of a file that does not hold the data it should.

    Args:
        problem: the rest of a sentence that begins with the file.
        file: the file, if known.
        line: the number of the line, from 1, if known.
        byte: the place of the byte, if known.
    """

    exit_code = 65

    def __init__(
        self, problem: str, *, file: Path | str | None = None, line: int | None = None, byte: int | None = None
    ):
        location = "" if file is None else escape_unprintable(str(file))
        if line is not None:
            location += f", line {line}"
        if byte is not None:
            location += f", byte {byte}"
        super().__init__(f"{location}: {problem}" if location else problem)


def missing_file_error(file: Path | str) -> DataError:
    """Return the error of a file that is not there; `-`, which names standard input elsewhere, is no file."""
    return DataError(f"no such file{'; standard input is not read here' if str(file) == '-' else ''}", file=file)


class ExportableFileError(DataError):
    """Error of a file of a program that a text or table is to be exported from, such as a workbook."""
