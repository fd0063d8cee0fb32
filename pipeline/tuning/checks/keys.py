"""The keys of a search's space: those that a recipe has and a search may vary, with values that a recipe takes."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.messages.error_messages import config_of_annotation, recipe_error
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.stages.train import KEYS_UNUSED_IN_VALIDATION, NON_TRAINING_KEYS
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.training_config import ALWAYS_MEASURED_FIGURES
from tfm.pipeline.tuning.config import ParameterValue, SearchConfig
from tfm.pipeline.tuning.space import Parameter

OTHER_TEXTS_REASON = "figures of different texts do not compare"
OTHER_PREDICTIONS_REASON = "the figures of validation would be of other predictions, and do not compare"
NO_EFFECT_REASON = "it does not change what is learned"
FIXED_KEYS = {
    "name": "each trial has its own",
    "seed": "use search.seed and search.repeats",
    "model.task": "figures of different tasks do not compare",
    "model.block": OTHER_PREDICTIONS_REASON,
    "model.span_corruption": OTHER_PREDICTIONS_REASON,
    "model.word_vectors.window": OTHER_PREDICTIONS_REASON,
    "model.word_vectors.shrink": OTHER_PREDICTIONS_REASON,
    "model.word_vectors.negatives": OTHER_PREDICTIONS_REASON,
    "data.path": OTHER_TEXTS_REASON,
    "data.source": OTHER_TEXTS_REASON,
    "data.target": OTHER_TEXTS_REASON,
    "data.valid": OTHER_TEXTS_REASON,
    "data.ratios": OTHER_TEXTS_REASON,
    "data.split_seed": OTHER_TEXTS_REASON,
    "data.tests": "a search does not look at the tests",
    "data.fold": "search.folds cross-validates",
    "data.limits": "it decides which validation texts count",
    "training.validation": "it decides what is validated, and when",
    "training.early_stopping.metric": "search.metric says it",
    "data.running_text": "it decides which texts are for validation",
    "data.online": NO_EFFECT_REASON,
    "training.lora.publish": NO_EFFECT_REASON,
    "evaluation": "it says how the tests are scored, at which a search does not look",
    "synthesis": "it is of text that a model makes after its training",
} | {f"training.{key}": NO_EFFECT_REASON for key in NON_TRAINING_KEYS - {"init_from", "image_statistics"}}
"""Keys that a search may not vary, and why."""
AVERAGES_BY_KEY = {"training.save_every": "last", "training.keep.last": "last", "training.keep.best": "best"}
"""Keys that say which checkpoints are kept, and the `training.keep.average` with which they change the model."""


def check_keys(parameters: Sequence[Parameter], config: SearchConfig, file: Path, recipe: Recipe) -> None:
    """Raise RecipeError for a key that does not exist, that a search may not vary, without any possible value, or that
    occurs twice.

    Args:
        parameters: the keys with their values.
        config: the search.
        file: has the search.
        recipe: the base recipe.
    """
    names = dict[str, str]()
    for parameter in parameters:
        key = _check_key(parameter, config, file, recipe)
        if key in names:
            raise RecipeError(
                f'{file}: search.space: "{names[key]}" and "{parameter.key}" are one key of the recipe: remove one'
            )
        names[key] = parameter.key
    for key, other_key in itertools.permutations(names, 2):
        if other_key.startswith(f"{key}."):  # by which a table that is taken away would be there again
            raise RecipeError(
                f'{file}: search.space: "{names[key]}" is a table that has "{names[other_key]}", which sets it anyway: '
                "remove one"
            )


def _check_key(parameter: Parameter, config: SearchConfig, file: Path, recipe: Recipe) -> str:
    """Check one key; return its full name, with the number of each item of a list."""
    parts = tuple(parameter.key.split("."))
    location = f'{file}: search.space."{parameter.key}"'
    for length in range(len(parts), 0, -1):
        if reason := FIXED_KEYS.get(".".join(parts[:length])):
            raise RecipeError(f"{location} cannot be varied: {reason}")
    average = AVERAGES_BY_KEY.get(parameter.key)
    if average and "training.keep.average" not in config.space and recipe.training.keep.average != average:
        raise RecipeError(
            f'{location} cannot be varied without training.keep.average = "{average}": {NO_EFFECT_REASON}'
        )
    field, kind, full = _find_field(parts, recipe, location)
    _check_values(parameter, field, kind, f"{file}: search.space")
    if parts == ("model", "architecture") and TASK_SPECS[recipe.model.task].within_window:
        raise RecipeError(f"{location} cannot be varied: {OTHER_PREDICTIONS_REASON}")
    if parts[:2] == ("data", "train") and config.folds is not None and parts[-1] not in ("weight", "epochs"):
        raise RecipeError(f"{location} cannot be varied with search.folds: the folds are of these texts")
    if parts[0] == "tokenizer" and config.metric in ALWAYS_MEASURED_FIGURES:
        raise RecipeError(
            f"{location}: with another vocabulary the {config.metric} is by other pieces and does not compare: "
            'search.metric = "bleu", or another score of texts'
        )
    if parts[0] == "decoding" and config.metric in ALWAYS_MEASURED_FIGURES:
        needs = 'search.metric = "bleu", or another score of texts'
        raise RecipeError(f"{location} has no effect on the {config.metric} of validation: {needs}")
    if parts[0] == "decoding" and parts[1] in KEYS_UNUSED_IN_VALIDATION:
        raise RecipeError(f"{location} has no effect on validation, which uses training.validation")
    return full


def _find_field(parts: Sequence[str], recipe: Recipe, location: str) -> tuple[FieldInfo, Any, str]:
    """The field of a key, its type, or that of an item of its list, and its full name; a list has as many items as in
    the base recipe.
    """
    holder: type[BaseModel] | None = Recipe
    field: FieldInfo | None = None
    value: Any = recipe
    kind: Any = None
    full: list[str] = []
    for number, part in enumerate(parts):
        kinds = [each for each in (kind, *get_args(kind)) if get_origin(each) is tuple]
        is_table = not kinds or (isinstance(value, tuple) and len(value) == 1)  # [data.train] is a list of one
        if holder is not None and part in holder.model_fields and is_table:
            value = value[0] if kinds else value
            full += ["0"] if kinds else []
            field = holder.model_fields[part]
            value, kind, holder = getattr(value, part, None), field.annotation, config_of_annotation(field.annotation)
        elif field is not None and part.isdecimal():
            if not kinds:
                raise RecipeError(f"{location} is not a key of recipes: no list has an item there")
            items = value if isinstance(value, tuple) else field.get_default(call_default_factory=True)
            length = len(items) if isinstance(items, tuple) else 0
            if part not in map(str, range(length)):
                has = "no items" if not length else "one item, 0" if length == 1 else f"items 0 to {length - 1}"
                raise RecipeError(
                    f"{location}: {'.'.join(parts[:number])} has {has} in the base recipe, and not {part}"
                )
            types = get_args(kinds[0])
            value, kind = items[int(part)], types[0] if types[-1] is Ellipsis else types[int(part)]
        else:
            raise RecipeError(f"{location} is not a key of recipes")
        full.append(part)
    if field is None:
        raise RecipeError(f"{location} is not a key of recipes")
    return field, kind if parts[-1].isdecimal() else Annotated[kind, field], ".".join(full)


def _check_values(parameter: Parameter, field: FieldInfo, kind: Any, location: str) -> None:
    """Raise RecipeError if a recipe accepts none of a key's values; values that it rejects are impossible trials."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    values: Sequence[ParameterValue] = parameter.values or ()
    remedy = ""
    if (table := config_of_annotation(field.annotation)) is not None:
        remedy = f'; vary a key of it, such as "{parameter.key}.{next(iter(table.model_fields))}"'
    if parameter.values is None:
        values = [parameter.low + share * (parameter.high - parameter.low) for share in (0.31, 0.71)]
        remedy = remedy or "; without step or factor any number in between is drawn"
    problem = None
    for value in values:
        if value == "none" and (table is None or type(None) in get_args(field.annotation)):  # takes a value away
            return
        try:
            adapter.validate_json(json.dumps(value), strict=True)
            return
        except ValidationError as error:
            key = tuple(parameter.key.split("."))
            errors = [{**each, "loc": (*key, *each["loc"])} for each in error.errors(include_url=False)]
            problem = problem or recipe_error(errors, Recipe, (), {}, lambda _: location)
    raise RecipeError(f"{str(problem).splitlines()[0]}{remedy}")
