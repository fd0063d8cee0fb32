"""The models that a class of another library holds: a class lists its values of [model], and all else is refused.

A key that a class does not mention has to have its default value. A part that is new here is therefore refused, and
never left out in silence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from tfm.model.config import ModelConfig

ANY_VALUE = object()
"""Stand-in for the values of a key: the class holds them all, or code beside the table looks at them."""

IGNORED_KEYS: Mapping[str, Any] = dict.fromkeys(
    ("max_length", "dropout", "block", "init_range", "source_vectors", "target_vectors", "freeze_vectors"), ANY_VALUE
)
"""Keys of training and use, which change nothing in the result for a text that the model can read."""
STANDARD_HEADS_STACK_KEYS: Mapping[str, Any] = dict.fromkeys(("layers", "dim", "heads", "feed_forward_dim"), ANY_VALUE)
"""A stack whose heads have keys and values of their own, as wide as dim / heads."""


@dataclass(frozen=True)
class SupportedConfig:
    """Models that a class holds.

    Args:
        keys: by key of [model] the tuple of values that the class has, or ANY.
        stack: the same of a stack.
        stacks: the names of its stacks.
    """

    keys: Mapping[str, Any]
    stack: Mapping[str, Any]
    stacks: tuple[str, ...]

    def unsupported_part(self, config: ModelConfig) -> str | None:
        """The first part of the model that the class does not have, as a recipe has it; None if it has all."""
        keys = {**IGNORED_KEYS, **self.keys, **dict.fromkeys(("encoder", "decoder"), ANY_VALUE)}
        if (key := first_unsupported_key(config, keys)) is not None:
            return f"model.{key}"
        dims = [getattr(config, name).dim for name in self.stacks]
        if len({*dims}) > 1:
            return f"model.{self.stacks[1]}.dim = {dims[1]} (where the other stack has {dims[0]})"
        for name in self.stacks:
            stack = getattr(config, name)
            if (key := first_unsupported_key(stack, self.stack)) is not None:
                return f"model.{name}.{key}"
            if stack.dim % stack.heads:
                return f"model.{name}.heads = {stack.heads} (which does not divide dim = {stack.dim})"
            if config.embedding_dim not in (None, stack.dim):
                return f"model.embedding_dim = {config.embedding_dim} (where dim = {stack.dim})"
        return None


def first_unsupported_key(config: BaseModel, supported_values: Mapping[str, Any]) -> str | None:
    """The first key of a table whose value is none of those held, as a recipe has it; None if all are."""
    default = type(config)()
    for key, value in config:
        values = supported_values.get(key, (getattr(default, key),))
        if values is not ANY_VALUE and value not in values:
            return f"{key} = {_format_value(value)}"
    return None


def _format_value(value: object) -> str:
    if isinstance(value, BaseModel):
        return "{ .. }"
    return str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')
