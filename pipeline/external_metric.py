"""`[[evaluation.external]]`: a metric that a command of the user's computes, in an environment of its own."""

import re
import shlex
import shutil
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


def _split_command(command: object) -> object:
    """The words of a command: of a text as a shell splits it, of a list as they are."""
    if isinstance(command, str):
        return tuple(shlex.split(command))
    return tuple(command) if isinstance(command, list) else command  # as strict validation wants it


def _check_command(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0]:
        raise ValueError("the command is empty")
    if any("\0" in word for word in words):
        raise ValueError("a command cannot contain the character NUL")
    return words


def _check_metric_name(name: str) -> str:
    if not re.fullmatch(r"\w[\w.+-]{0,39}", name):
        raise ValueError("a metric's name has at most 40 letters, digits, `.`, `_`, `+` and `-`")
    return name


class ExternalMetric(BaseModel):
    """A command that reads a JSON object a line (source, hypothesis, references) and prints a number a line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, AfterValidator(_check_metric_name)] = Field(
        description="of the score, in tables and in scores.json"
    )
    command: Annotated[
        tuple[str, ...],
        BeforeValidator(_split_command, json_schema_input_type=str | list[str]),
        AfterValidator(_check_command),
    ] = Field(description="a list of words, or one text that is split as in a shell; no shell runs it")
    limit: float = Field(3600.0, gt=0, description="seconds that it may take for one test set")
    higher_is_better: bool = Field(True, description="whether the better system has the higher score")


def check_metric_names_unique(metrics: Sequence[ExternalMetric], reserved: Sequence[str]) -> None:
    """Raise ValueError if two metrics have the same name, or one has a reserved name, in upper or lower case."""
    names = {name.casefold() for name in reserved}
    for metric in metrics:
        if (name := metric.name.casefold()) in names:
            raise ValueError(f'external: there is another metric of the name "{metric.name}"; choose a name of its own')
        names.add(name)


def missing_command_warnings(metrics: Sequence[ExternalMetric]) -> list[str]:
    """A warning for each command of which there is no program; scores that it gave before stay as they are."""
    return [
        f"evaluation.external {metric.name}: there is no command {metric.command[0]!r}, so it gives no score"
        for metric in metrics
        if shutil.which(metric.command[0]) is None
    ]
