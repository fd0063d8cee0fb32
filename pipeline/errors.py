"""Errors of recipes, artifacts and training, in addition to those of `data.errors`.

TfmError
 ├─ RecipeError        usage: a recipe or flag           exit 2
 ├─ DataError          bad data                          exit 65  (data/errors.py)
 │   └─ ComputationError   too large a rate, no memory
 ├─ WriteError         no place to write, or locked      exit 73
 └─ StoppedError       stopped early; resume             exit 75
(An OSError that reaches the command line exits 74.)
"""

import os
from typing import TypeVar

from tfm.data.credentials import MASK, redact_command_line
from tfm.data.errors import (
    DataError,
    TfmError,
    control_character_pattern,
    escape_control_characters,
    escape_unprintable,
    format_count,
    format_for_terminal,
)

__all__ = [
    "MASK",
    "ComputationError",
    "DataError",
    "RecipeError",
    "StoppedError",
    "TfmError",
    "WriteError",
    "control_character_pattern",
    "escape_control_characters",
    "escape_unprintable",
    "format_count",
    "format_for_terminal",
    "is_error_of_one_rank",
    "mark_as_error_of_one_rank",
    "redact_command_line",
]  # fmt: skip

_LOCAL_ERROR_MARK = "this process alone has this error"
_E = TypeVar("_E", bound=BaseException)


class RecipeError(TfmError):
    """A recipe or flag is wrong: names the file, the key, and the nearest valid key or the allowed values."""

    exit_code = 2


class ComputationError(DataError):
    """Settings did not work: a loss is not finite, or memory ran out. The data and files that were read are whole."""


class WriteError(TfmError):
    """The output folder cannot be written, or another process holds it."""

    exit_code = 73


class StoppedError(TfmError):
    """Work was stopped before its end and is saved: the same command resumes it."""

    exit_code = 75


def mark_as_error_of_one_rank(error: _E) -> _E:
    """The error, marked as one that the other processes of a training do not have."""
    error.add_note(_LOCAL_ERROR_MARK)
    return error


def is_error_of_one_rank(error: BaseException) -> bool:
    """Whether this process shows an error.

    Only the first process that torchrun starts on a machine does, since all have the same errors, except errors that
    are marked.
    """
    return os.environ.get("LOCAL_RANK", "0") == "0" or _LOCAL_ERROR_MARK in getattr(error, "__notes__", ())
