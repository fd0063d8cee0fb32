"""Error messages for recipes, in one or two lines: place, key, and allowed values."""

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tfm.pipeline.errors import RecipeError

Key: TypeAlias = tuple[str, ...]


class Origin(NamedTuple):
    """The place where a value was set: a file or the text of a `--set`, and its layer: a later layer is over those
    before.
    """

    label: str
    layer: int


Origins: TypeAlias = dict[Key, Origin]
"""By key. The layer of a recipe is 0, of those that it extends less, of the command line 1."""

TYPE_DESCRIPTIONS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "string_type": 'a text, as in "text"',
    "tuple_type": "a list",
    "list_type": "a list",
    "model_type": "a table of keys",
    "dict_type": "a table of keys",
}
LIST_TYPES = ("tuple_type", "list_type")
BOUND_DESCRIPTIONS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def recipe_error(
    errors: Sequence[Any],
    model: type[BaseModel],
    prefix: Key,
    origins: Mapping[Key, Origin],
    origin_of: Callable[[Any], str],
) -> RecipeError:
    """Return the first of pydantic's errors as an error of ours; an unknown key goes first, a missing one last.

    Args:
        errors: pydantic's errors.
        model: the class that was checked.
        prefix: the place of the checked value in a recipe.
        origins: the place that set each key.
        origin_of: (error) -> the place to name where an error is of several keys that do not go together.
    """
    error = min(errors, key=lambda each: {"extra_forbidden": 0, "missing": 2}.get(each["type"], 1))
    loc = tuple(error["loc"])
    key = _key_in_recipe((*prefix, *loc), origins)
    origin = describe_origin(key, origins) or origin_of(error)
    text = f"{origin}: {_error_sentence(error, model, loc, key)}" if origin else _error_sentence(error, model, loc, key)
    num_others = len(errors) - 1
    return RecipeError(
        f"{text}\n(and {num_others} more problem{'s' if num_others > 1 else ''})" if num_others else text
    )


def _key_in_recipe(loc: Sequence[str | int], origins: Mapping[Key, Origin]) -> Key:
    """A key as a recipe writes it: without the number of a list's item if a table was given instead of the list."""
    key: Key = ()
    for part in loc:
        next_parts = [
            origin_key[len(key)]
            for origin_key in origins
            if len(origin_key) > len(key) and origin_key[: len(key)] == key
        ]
        if isinstance(part, str) or not next_parts or any(each.isdecimal() for each in next_parts):
            key = (*key, str(part))
    return key


def describe_origin(key: Key, origins: Mapping[Key, Origin]) -> str | None:
    """Return the place that set the value at `key`, or a table that it stands in; None if none did, or parts of it
    were set later.
    """
    enclosing_origins = (origins[key[:length]] for length in range(len(key), 0, -1) if key[:length] in origins)
    origin = next(enclosing_origins, None)
    if origin is None or any(each[: len(key)] == key and other.layer > origin.layer for each, other in origins.items()):
        return None
    return origin.label


def _error_sentence(error: Mapping[str, Any], model: type[BaseModel], loc: tuple[Any, ...], key: Key) -> str:
    kind, context = error["type"], error.get("ctx", {})
    name = ".".join(key)
    if kind == "extra_forbidden":
        return f"{name} is not a key of recipes; {_nearest_key(str(loc[-1]), model, loc[:-1], key[:-1])}"
    if kind == "value_error":
        return f"{name}: {context['error']}" if name else str(context["error"])
    if kind == "missing":
        return f"{name} is missing"
    if kind == "literal_error":
        return f"{name} = {format_value(error['input'])} is not allowed; it may be {context['expected']}"
    if kind in BOUND_DESCRIPTIONS:
        words, limit = BOUND_DESCRIPTIONS[kind]
        return f"{name} = {format_value(error['input'])} must be {words} {context[limit]}"
    config = _config_at_error(model, loc)
    if kind in LIST_TYPES and config is not None:
        return f"{name} is a list of tables: write [[{name}]] in a recipe, [{{...}}] on the command line"
    if kind == "dict_type" and config is not None:
        return f"{name} is a table of tables with names: write [{name}.NAME] in a recipe, or --set {name}.NAME.KEY="
    if kind in TYPE_DESCRIPTIONS:
        return f"{name} = {format_value(error['input'])} must be {_describe_type(kind, error['input'], config)}"
    return f"{name} = {format_value(error['input'])}: {error['msg']}"


def _nearest_key(name: str, model: type[BaseModel], loc: tuple[Any, ...], key: Key) -> str:
    """Return a hint for the unknown key `name` of the table at `key`.

    The first of: keys that others call so; keys of that name elsewhere, if one is in this section; a neighbor that is
    spelt nearly so; keys of that name in other sections; all neighbors.
    """
    from tfm.pipeline.recipes.messages.other_names import (
        keys_of_other_name,
    )  # here, as recipes without errors do without it

    config = _config_at_error(model, loc)
    names = list(config.model_fields) if config is not None else []
    keys = list(_section_keys(model, key[: len(key) - len(loc)]))
    same_name = sorted((each for each in keys if each[-1] == name), key=lambda each: each[:1] != key[:1])
    is_in_section = bool(same_name) and same_name[0][:1] == key[:1]
    for found in (
        _keys_beside([each for each in keys_of_other_name(name) if each in keys], key),
        same_name if is_in_section else [],
        [(*key, each) for each in difflib.get_close_matches(name, names, n=1, cutoff=0.6)],
        same_name,
    ):
        if found:
            return f"did you mean {' or '.join('.'.join(each) for each in found)}?"
    return f"there {'are' if len(names) > 1 else 'is'} {', '.join(names)}"


def _keys_beside(keys: Sequence[Key], key: Key) -> list[Key]:
    """The keys that have most of their first parts from `key`: beside an encoder's key those of encoders."""
    num_same = [
        sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(each, key, strict=False))) for each in keys
    ]
    return [each for each, count in zip(keys, num_same, strict=True) if count == max(num_same)]


def _config_at_error(model: type[BaseModel], loc: tuple[Any, ...]) -> type[BaseModel] | None:
    config: type[BaseModel] | None = model
    for part in loc:
        # The number of a list's item, or a test set's name, leads to no other model than the list did.
        if config is not None and isinstance(part, str) and part in config.model_fields:
            config = config_of_annotation(config.model_fields[part].annotation)
    return config


def _describe_type(kind: str, value: object, config: type[BaseModel] | None) -> str:
    """The type that a value must have, with the keys of a table, and with the value itself as it would be right."""
    text = TYPE_DESCRIPTIONS[kind]
    if kind == "model_type" and config is not None:
        return f"{text}: {', '.join(config.model_fields)}"
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f"{text}: {int(value)}"
    if kind in LIST_TYPES and isinstance(value, str):
        return f"{text}, as in {json.dumps([part.strip() for part in value.split(',')], ensure_ascii=False)}"
    return f"{text}, as in [1, 2]" if kind in LIST_TYPES else text


def field_at(model: type[BaseModel], key: Key) -> FieldInfo | None:
    """The field that describes a key; None if there is none."""
    holder = _config_at_error(model, key[:-1])
    return None if holder is None else holder.model_fields.get(key[-1])


def config_of_annotation(annotation: Any) -> type[BaseModel] | None:
    """The config that a field of this type holds: itself, as an item of a list, or as a value of a table."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _section_keys(model: type[BaseModel], key: Key) -> Iterator[Key]:
    """Yield all keys, as `--set` takes them: of a list those of its first item, of a table with names of its own
    NAME's.
    """
    for name, field in model.model_fields.items():
        yield (*key, name)
        config = config_of_annotation(field.annotation)
        if config is not None:
            kind = get_origin(field.annotation)
            item = "0" if kind is tuple else "NAME" if kind is dict else None
            yield from _section_keys(config, (*key, name) if item is None else (*key, name, item))


def format_value(value: object) -> str:
    """A value as it would be written in a message: short."""
    if isinstance(value, int) and abs(value) >= 10**60:
        return "a number of more than 60 digits"  # to spell it may take long, and Python refuses 4,300
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
