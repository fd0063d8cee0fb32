"""The values of a recipe or of one part of it, with those of the command line over them, checked against its class."""

import copy
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import NoneType, SimpleNamespace
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError, create_model
from pydantic.fields import FieldInfo

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.credentials import credential_problem
from tfm.pipeline.recipes.messages.error_messages import (
    Key,
    Origin,
    Origins,
    config_of_annotation,
    describe_origin,
    field_at,
    format_value,
    recipe_error,
)
from tfm.pipeline.recipes.overrides import CommandLineSetting, apply_setting, parse_settings
from tfm.pipeline.recipes.unused_keys.check import check_unused_keys
from tfm.pipeline.recipes.unused_keys.outputs import OUTPUT_RULES
from tfm.pipeline.recipes.unused_keys.rule import UnusedKeysRule

COMMAND_LINE_PRIORITY = 1  # the layer of what is said there; a recipe is 0, one that it extends less
Section = TypeVar("Section", bound=BaseModel)


def validate_section(
    schema: type[BaseModel],
    section: type[Section],
    values: Mapping[str, Any],
    settings: Sequence[CommandLineSetting],
    file: str,
    origins: Origins,
    part: str | None = None,
    add_defaults: Callable[[dict[str, Any]], None] = lambda raw: None,
) -> Section:
    """Return the config of a file's values, with settings over them.

    Args:
        schema: the class of a whole recipe.
        section: the class of what is validated: the recipe, or one part of it.
        values: those of the file.
        settings: those of the command line, in their order.
        file: for messages.
        origins: where each key was said; those of the settings are added.
        part: the name of the part; None for a whole recipe.
        add_defaults: adds the values that follow from those that are there.

    Raises:
        RecipeError: a value is not valid.
    """
    prefix = () if part is None else (part,)

    def content_with_settings(applied_settings: Sequence[CommandLineSetting]) -> Any:
        raw = copy.deepcopy(dict(values))
        for setting in applied_settings:
            apply_setting(raw, setting, schema)
        add_defaults(raw)
        return raw if part is None else raw.get(part, {})

    def origin_of_error(error: Any) -> str:
        # the one without which there is no such error; of several one that the error names
        for setting in sorted(settings, key=lambda each: ".".join(each.key) not in error["msg"]):
            with suppress(RecipeError):
                if not _has_same_error(
                    section, content_with_settings([each for each in settings if each is not setting]), error
                ):
                    return setting.label
        return file

    content = content_with_settings(settings)
    origins.update({setting.key: Origin(setting.label, COMMAND_LINE_PRIORITY) for setting in settings})
    try:
        config = section.model_validate_json(_section_json(section, content), strict=True)
    except ValidationError as error:
        raise recipe_error(error.errors(include_url=False), section, prefix, origins, origin_of_error) from None
    except ValueError as error:  # a number that is not finite, or what no file says
        config, reason = None, str(error)
    for key, number in _unusable_numbers(content, prefix):
        origin, name = describe_origin(key, origins) or file, ".".join(key)
        raise RecipeError(f"{origin}: {_number_problem(name, number, field_at(schema, key))}")
    if config is None:
        raise RecipeError(f"{file}: {reason}")
    if (problem := credential_problem(config, prefix)) is not None:
        key, reason = problem
        raise RecipeError(f"{describe_origin(key, origins) or file}: {'.'.join(key)} {reason}")
    return config


def section_from_flags(
    section: type[Section],
    values: Mapping[str, object | None],
    overrides: Sequence[str] = (),
    *,
    other_sections: Sequence[str] = (),
    known_sections: Sequence[BaseModel] = (),
) -> Section:
    """Return one part of a recipe (TokenizerConfig, ...) for a command that was given no recipe.

    The other parts are not imported, as that takes longer than many commands do.

    Args:
        section: the class of the part.
        values: by dotted key inside the part, None if not given.
        overrides: `--set` texts, as in load_recipe.
        other_sections: other parts that the command takes; overrides of them are passed over.
        known_sections: those of the other parts on which it depends whether a key has an effect.

    Raises:
        RecipeError: as load_recipe, and for a part that the command does not take.
    """
    part = section_name(section)
    settings = parse_settings(overrides, {f"{part}.{key}": value for key, value in values.items()})
    accepted_sections = (part, *other_sections)
    for first, label in {each.key[0]: each.label for each in settings}.items():
        if first not in (*accepted_sections, "seed", "name"):
            raise _untaken_section_error(first, label, accepted_sections)
    origins: Origins = {}
    schema: type[BaseModel] = create_model("Part", **{part: (section, ...)})  # type: ignore[call-overload]
    part_settings = [each for each in settings if each.key[0] == part]
    config = validate_section(schema, section, {}, part_settings, "", origins, part)
    sections = {section_name(type(each)): each for each in known_sections}
    check_unused_keys(SimpleNamespace(**sections, **{part: config}), origins, _rules_of_section(part))
    return config


def section_name(section: type[BaseModel]) -> str:
    """The name of a part of a recipe: its class is called by it."""
    return section.__name__.removesuffix("Config").lower()


def _rules_of_section(part: str) -> Sequence[UnusedKeysRule]:
    """The rules that concern this section, perhaps with others."""
    if part in OUTPUT_RULES:
        return OUTPUT_RULES[part]
    from tfm.pipeline.recipes.unused_keys.table import UNUSED_KEYS_RULES

    return UNUSED_KEYS_RULES


def _untaken_section_error(name: str, label: str, accepted_sections: Sequence[str]) -> RecipeError:
    """The error of a setting whose first name is of no part that the command takes."""
    from tfm.pipeline.recipes.recipe import Recipe

    if name in Recipe.model_fields:
        return RecipeError(
            f"--set {name}...: without a recipe this command takes {', '.join(sorted(accepted_sections))}"
        )
    unknown = {"type": "extra_forbidden", "loc": (name,), "msg": "", "input": None}
    return recipe_error([unknown], Recipe, (), {(name,): Origin(label, COMMAND_LINE_PRIORITY)}, str)


def _has_same_error(section: type[BaseModel], content: Any, error: Any) -> bool:
    """Return whether such an error comes up in this content."""
    try:
        section.model_validate_json(_section_json(section, content), strict=True)
    except ValidationError as found:
        return _error_kind(error) in map(_error_kind, found.errors())
    except ValueError:
        return True
    return False


def _error_kind(error: Any) -> tuple[object, ...]:
    return error["type"], error["loc"], re.sub(r'\d+|"[^"]*"', "", error["msg"])


def _section_json(section: type[BaseModel], content: Any) -> str:
    """Return the values as JSON, for validation by strict rules: 8000 is no text, "8000" no number. Raises ValueError
    for a number that is not finite.
    """
    return json.dumps(_replace_none_texts(section, content), default=str, allow_nan=False)


def _unusable_numbers(raw: object, key: Key) -> Iterator[tuple[Key, int | float]]:
    """Yield the numbers that are infinite, undefined or of more than 64 bits, with their keys."""
    if (isinstance(raw, float) and not math.isfinite(raw)) or (isinstance(raw, int) and abs(raw) >= 2**63):
        yield key, raw
    items = raw.items() if isinstance(raw, Mapping) else enumerate(raw) if isinstance(raw, (list, tuple)) else ()
    for name, item in items:
        yield from _unusable_numbers(item, (*key, str(name)))


def _number_problem(name: str, value: int | float, field: FieldInfo | None) -> str:
    """The problem with a number that no key takes; TOML reads the language codes nan and inf as numbers."""
    if isinstance(value, int):
        return f"{name} must be a number below 2^63, and is {format_value(value)}"
    if field is not None and str in (field.annotation, *get_args(field.annotation)):
        return (
            f"{name} = {value} is a number in TOML; a text needs quotation marks: "
            f'{name} = "{value}" in a recipe, --set \'{name}="{value}"\' on the command line'
        )
    return f"{name} must be a finite number"


def _replace_none_texts(annotation: Any, value: Any) -> Any:
    """The value with None for the text "none" wherever its type has a None, and no value that is called so."""
    if value == "none" and NoneType in get_args(annotation):
        literals = (get_args(each) for each in get_args(annotation) if get_origin(each) is Literal)
        return value if any(value in names for names in literals) else None
    if isinstance(value, (list, tuple)):
        return [_replace_none_texts(config_of_annotation(annotation), each) for each in value]
    if not isinstance(value, Mapping):
        return value
    model = config_of_annotation(annotation)
    if model is None or get_origin(annotation) is dict:
        return {name: _replace_none_texts(model, each) for name, each in value.items()}
    types = {name: field.annotation for name, field in model.model_fields.items()}
    return {name: _replace_none_texts(types.get(name), each) for name, each in value.items()}
