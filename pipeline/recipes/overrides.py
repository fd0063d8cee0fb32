"""Values of a recipe overridden on the command line: `--set` and flags."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from tfm.pipeline.errors import RecipeError, escape_unprintable
from tfm.pipeline.recipes.messages.error_messages import Key, field_at


class CommandLineSetting(NamedTuple):
    """One value that a command line gives: by a `--set`, whose text the label is, or by a flag."""

    label: str
    key: Key
    value: object


def parse_settings(overrides: Sequence[str], flags: Mapping[str, object | None]) -> list[CommandLineSetting]:
    """Return the settings of `--set` texts and, after them, of flags."""
    settings = []
    for override in overrides:
        key, equals, text = override.partition("=")
        parts = tuple(part.strip() for part in key.split("."))
        if not equals or not all(parts):
            raise RecipeError(f"--set {escape_unprintable(override)}: write KEY=VALUE, as in training.max_steps=500")
        settings.append(CommandLineSetting(f"--set {escape_unprintable(override)}", parts, _parse_value(text.strip())))
    return settings + [
        CommandLineSetting("flags", tuple(key.split(".")), value) for key, value in flags.items() if value is not None
    ]


def apply_setting(raw: Any, setting: CommandLineSetting, schema: type[BaseModel]) -> None:
    """Put one value over that of a recipe; a list that the recipe does not name begins as its default.

    Args:
        raw: the recipe as nested dicts, changed in place.
        setting: key and value.
        schema: the class of the recipe.
    """
    key, node = setting.key, raw
    for depth in range(1, len(key)):
        part = _last_key_or_index(node, key[:depth], setting)
        child = node[part] if isinstance(node, list) else node.get(part)
        items = _default_items(key[:depth], schema) if key[depth].isdigit() else None
        if items is not None and not isinstance(child, list):
            child = [child] if isinstance(child, dict) else items  # [data.train] is a list of one
        elif not isinstance(child, (dict, list)):
            child = {}
        node[part] = child
        node = child
        if isinstance(node, list) and len(node) == 1 and isinstance(node[0], dict) and not key[depth].isdigit():
            node = node[0]  # as [data.train] is a list of one, so a list of one is a table
    node[_last_key_or_index(node, key, setting)] = setting.value


def _default_items(key: Key, schema: type[BaseModel]) -> list[Any] | None:
    """The items that the list at a key has where a recipe does not name it; None if there is no list."""
    field = field_at(schema, key)
    default = None if field is None else field.get_default(call_default_factory=True)
    return list(default) if isinstance(default, tuple) else None


def _last_key_or_index(node: Any, key: Key, setting: CommandLineSetting) -> Any:
    """Return the key or index of the last part of a key in a table, or in a list."""
    if not isinstance(node, list):
        return key[-1]
    name, part = ".".join(key[:-1]), key[-1]
    if not node:
        raise RecipeError(f"{setting.label}: {name} has no items here: give the whole list")
    if not part.isascii() or not part.isdigit() or int(part) >= len(node):
        has = "one item, 0" if len(node) == 1 else f"items 0 to {len(node) - 1}"
        is_item_key = not part.isdigit() and key == setting.key and isinstance(node[0], dict)
        hint = f"; did you mean {name}.0.{part}?" if is_item_key else ""
        raise RecipeError(f"{setting.label}: {name} has {has}, and {part!r} is not one of them{hint}")
    return int(part)


def _parse_value(text: str) -> object:
    """The TOML value of a text, or the text itself if it is not one; dates are text."""
    import tomllib  # here, as flags do without it

    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    value = document.get("value")
    if len(document) > 1 or not isinstance(value, (bool, int, float, str, list, dict)):
        return text
    return value
