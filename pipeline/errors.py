"""Errors of recipes, artifacts and training, beside those of `data.errors`.

TfmError
 ├─ RecipeError        usage: a recipe or flag           exit 2
 ├─ DataError          bad data                          exit 65  (data/errors.py)
 ├─ CannotWrite        no place to write, or locked      exit 73
 └─ Stopped            stopped early; resume             exit 75
(An OSError that reaches the command line exits 74.)
"""

from data.errors import DataError, TfmError

__all__ = ["CannotWrite", "DataError", "RecipeError", "Stopped", "TfmError"]


class RecipeError(TfmError):
    """A recipe or flag is wrong: names the file, the key, and the nearest valid key or the allowed values."""

    exit_code = 2


class CannotWrite(TfmError):
    """The output folder cannot be written, or another process holds it."""

    exit_code = 73


class Stopped(TfmError):
    """Work was stopped before its end and is saved: the same command resumes it."""

    exit_code = 75
