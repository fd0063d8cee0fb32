"""Errors in terms of Python: flags in messages of commands become parameters."""

import functools
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tfm.pipeline.errors import DataError, RecipeError

P = ParamSpec("P")
T = TypeVar("T")
_FLAG_PATTERN = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)")
_PARAMETER_BY_FLAG = {
    "from": "source_language",
    "no-through-ends": "through_ends=False",
    "through-ends": "through_ends=True",
}
"""Parameters by flag, where the name is not the flag's own."""


def name_parameters_in_errors(method: Callable[P, T]) -> Callable[P, T]:
    """Return the method with errors that name its parameters."""

    @functools.wraps(method)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except (DataError, RecipeError) as error:
            if (text := name_parameters_for_flags(str(error))) == str(error):
                raise
            raise type(error)(text) from error

    return wrapper


def name_parameters_for_flags(text: str) -> str:
    """Return the text of a command's error, with parameters in place of flags."""
    renamed_text = _FLAG_PATTERN.sub(
        lambda flag: f"`{_PARAMETER_BY_FLAG.get(flag[1], flag[1].replace('-', '_'))}`", text
    )
    return renamed_text.removeprefix("flags: ")
