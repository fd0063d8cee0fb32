"""Types of recipe keys in words, from the JSON schema of recipes."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
REFERENCE = "#/$defs/"
NUMBERS = {"integer": "whole number", "number": "number"}
NUMBER_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
LIST_BOUNDS = {"minItems": "at least", "maxItems": "at most"}


def type_text(node: Schema) -> str:
    """The type of a key in words: the kind of its values, and which there are."""
    choices = [each for each in node.get("anyOf", [node]) if each.get("type") != "null"]
    return " or ".join(dict.fromkeys(map(_choice_text, choices)))


def value_text(value: object) -> str:
    """A value as a recipe has it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Mapping):
        inside = ", ".join(f"{name} = {value_text(each)}" for name, each in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return str(value)


def table_name(node: Schema) -> str | None:
    """The name of the definition of a key that is one table; none of another key."""
    choices = [each for each in node.get("anyOf", [node]) if each.get("type") != "null"]
    if len(choices) != 1 or "$ref" not in choices[0]:
        return None
    return str(choices[0]["$ref"].removeprefix(REFERENCE))


def item_name(node: Schema) -> str | None:
    """The name of the definition of the tables that a key has a list of, or a table of by name."""
    for choice in node.get("anyOf", [node]):
        for inside in ("items", "additionalProperties"):
            items = choice.get(inside)
            if isinstance(items, Mapping) and "$ref" in items:
                return str(items["$ref"].removeprefix(REFERENCE))
    return None


def _choice_text(node: Schema) -> str:
    if "$ref" in node:
        return "a table"
    if "const" in node:
        return f"`{value_text(node['const'])}`"
    if "enum" in node:
        return f"one of {', '.join(f'`{value_text(each)}`' for each in node['enum'])}"
    kind = node["type"]
    if kind in NUMBERS:
        return f"{NUMBERS[kind]}{_range_text(node)}"
    if kind == "array":
        return _list_text(node)
    if kind == "object":
        values = node.get("additionalProperties")
        return f"a table of NAME = {_choice_text(values)}" if isinstance(values, Mapping) else "a table"
    return {"boolean": "`true` or `false`", "string": "text"}[kind]


def _list_text(node: Schema) -> str:
    if "prefixItems" in node:
        kinds = [_choice_text(each) for each in node["prefixItems"]]
        if len(set(kinds)) == 1:
            return f"list of {len(kinds)}, each a {kinds[0]}"
        return f"list of {', '.join(kinds)}"
    of = type_text(node["items"])
    bounds = [f"{words} {node[name]}" for name, words in LIST_BOUNDS.items() if name in node]
    many = f", {' and '.join(bounds)} of them" if bounds else ""
    return f"list of {'tables' if of == 'a table' else f'({of})'}{many}"


def _range_text(node: Schema) -> str:
    found = [f"{words} {_number_text(node[name])}" for name, words in NUMBER_BOUNDS.items() if name in node]
    return f", {', '.join(found)}" if found else ""


def _number_text(number: float) -> str:
    return f"{number:g}" if abs(number) < 1e6 else f"{number:,}"
