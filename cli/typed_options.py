"""Commands with options in one typed object: typer gets a parameter per field of a dataclass."""

import functools
from collections.abc import Callable
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from typing import Any, get_type_hints

from typer.models import ArgumentInfo, ParameterInfo


def with_options(command: Callable[[Any], None]) -> Callable[..., None]:
    """Return a function for typer that passes a command its options as one object.

    Args:
        command: takes one dataclass, each field of which is annotated as a parameter of typer is.
    """
    (options,) = (hint for name, hint in get_type_hints(command).items() if name != "return")
    hints = get_type_hints(options, include_extras=True)
    parameters = [
        Parameter(
            field.name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(options)
    ]

    @functools.wraps(command)
    def run_from_fields(**values: object) -> None:
        command(options(**values))

    run_from_fields.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run_from_fields.__annotations__ = {each.name: each.annotation for each in parameters}
    return run_from_fields


def values_by_flag(options: object, *names: str) -> dict[str, object]:
    """The values of some fields, by flag or metavar as messages name them."""
    hints = get_type_hints(type(options), include_extras=True)
    return {_flag_name(hints[name]): getattr(options, name) for name in names}


def _flag_name(hint: Any) -> str:
    (info,) = (each for each in hint.__metadata__ if isinstance(each, ParameterInfo))
    if isinstance(info, ArgumentInfo):
        return str(info.metavar).strip("[].")
    declarations = (info.default, *(info.param_decls or ()))  # inside Annotated the first one is the default
    return next(str(each) for each in declarations if each is not ...).partition("/")[0]
