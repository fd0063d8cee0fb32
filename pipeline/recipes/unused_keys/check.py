"""Check that rejects keys of a recipe that have no effect.

A key of an extended recipe that a later value makes useless is ignored, like one that is overridden; a key set in the
same place or later is rejected.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.messages.error_messages import Key, Origins, describe_origin, format_value
from tfm.pipeline.recipes.unused_keys.rule import UnusedKeysRule

MISSING_VALUE = object()
"""The value of a key that is of no part that was read."""


def check_unused_keys(recipe: Any, origins: Origins, rules: Iterable[UnusedKeysRule]) -> None:
    """Raise RecipeError for a key that was said and changes nothing.

    Args:
        recipe: all parts that were read, by name.
        origins: where each key was said.
        rules: by which keys change nothing; those of parts that were not read are passed over.
    """
    problems: dict[str, str] = {}
    for key, row in find_unused_keys(recipe, rules):
        if not _is_made_idle_by_later_layer(key, row, origins):
            cause = " and ".join(
                f"{condition} = {format_value(_plain_value(get_value(recipe, condition)))}"
                for condition in (*row.conditions, *row.other_conditions)
                if get_value(recipe, condition) is not MISSING_VALUE
            )
            problems.setdefault(key, f"has no effect with {cause}: {row.reason}")
    for key, reason in _unused_corpus_keys(recipe):
        problems.setdefault(key, f"has no effect: {reason}")
    for key, text in problems.items():
        origin = describe_origin(tuple(key.split(".")), origins)
        other_keys = [each for each in problems if each != key]
        note = f"\n(and {', '.join(other_keys[:5])}{', ...' if other_keys[5:] else ''})" if other_keys else ""
        raise RecipeError(
            f"{origin}: {key} = {format_value(_plain_value(get_value(recipe, key)))} {text}. Remove it{note}"
        )


def get_value(config: Any, key: str) -> Any:
    """The value of a dotted key, inside tables and lists; MISSING_VALUE if there is none."""
    value = config
    for name in key.split("."):
        if isinstance(value, tuple):  # a single table is a list of one
            value = value[int(name)] if name.isdecimal() else getattr(next(iter(value), None), name, MISSING_VALUE)
        elif isinstance(value, Mapping):
            value = value.get(name, MISSING_VALUE)
        else:
            value = getattr(value, name, MISSING_VALUE)
        if value is MISSING_VALUE:
            break
    return value


def find_unused_keys(recipe: Any, rules: Iterable[UnusedKeysRule]) -> Iterator[tuple[str, UnusedKeysRule]]:
    """Yield each leaf key that is not as by default and changes nothing, and the row of the table that says so."""
    for row in rules:
        values = {key: get_value(recipe, key) for key in row.conditions}
        others = {key: get_value(recipe, key) for key in row.other_conditions}
        if (
            MISSING_VALUE not in values.values()
            and all(row.conditions[key](value) for key, value in values.items())
            and all(value is MISSING_VALUE or row.other_conditions[key](value) for key, value in others.items())
        ):
            for key in row.keys:
                yield from ((leaf, row) for leaf in _non_default_keys(recipe, key))


def _non_default_keys(recipe: Any, key: str) -> Iterator[str]:
    """The leaf keys at a dotted key, or below it, whose values are not the defaults."""
    holder_key, _, name = key.rpartition(".")
    holder, value = get_value(recipe, holder_key) if holder_key else recipe, get_value(recipe, key)
    if isinstance(value, BaseModel):
        for field in type(value).model_fields:
            yield from _non_default_keys(recipe, f"{key}.{field}")
    elif isinstance(holder, BaseModel) and value != type(holder).model_fields[name].get_default(
        call_default_factory=True
    ):
        yield key


def _is_made_idle_by_later_layer(key: str, rule: UnusedKeysRule, origins: Origins) -> bool:
    """Return whether the value that makes the key idle was set in a later layer than the key: then it is left aside."""
    layer = _origin_priority(tuple(key.split(".")), origins)
    return any(
        _origin_priority(tuple(each.split(".")), origins) > layer for each in (*rule.conditions, *rule.other_conditions)
    )


def _origin_priority(key: Key, origins: Origins) -> float:
    """The last layer that sets a key or a part of it; lower than all layers if the key has its default."""
    return max(
        (each.layer for origin_key, each in origins.items() if origin_key[: len(key)] == key[: len(origin_key)]),
        default=-1e9,
    )


def _unused_corpus_keys(recipe: Any) -> Iterator[tuple[str, str]]:
    """The keys of single corpora that change nothing, and why."""
    data = get_value(recipe, "data")
    if data is MISSING_VALUE:
        return
    for name, corpus in data.corpora_by_name.items():
        if corpus.split is not None and corpus.format not in ("huggingface", "generated"):
            yield f"data.{name}.split", f'format = "{corpus.format}" has no splits; huggingface and generated have'
        if corpus.weight != 1 and not name.startswith("train."):
            yield f"data.{name}.weight", "a held-out corpus is read once; only training corpora have weights"
        if corpus.format == "generated" and corpus.path != "languages":
            for side in ("source", "target"):
                if getattr(corpus, side) not in (side, None):
                    yield (
                        f"data.{name}.{side}",
                        'a built-in corpus has no columns; source = "none" omits that side',
                    )


def _plain_value(value: Any) -> Any:
    """A value as it is shown in a message."""
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, Mapping):
        return {name: _plain_value(each) for name, each in value.items()}
    return [_plain_value(each) for each in value] if isinstance(value, (list, tuple)) else value
