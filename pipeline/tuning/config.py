"""The `[search]` of a recipe of searches: the keys that vary, the method, and the limits of the search."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, Field, ValidationError, field_validator, model_validator

from tfm.pipeline.config import STRICT_CONFIG
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.credentials import credential_problem
from tfm.pipeline.recipes.messages.error_messages import recipe_error
from tfm.pipeline.recipes.recipe_files import parse_toml
from tfm.pipeline.training_config import ValidationMetric

ParameterValue: TypeAlias = bool | int | float | str
FiniteFloat = Annotated[float, Field(allow_inf_nan=False)]
Method = Literal["grid", "random", "window", "evolution", "tpe", "gp"]
Pruner = Literal["none", "median", "hyperband"]


def _check_folder_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", name):
        raise ValueError(
            f"{name!r:.120} becomes the name of a folder, and is the file's where search.name is not set: set it to at "
            "most 100 letters from a to z, digits, `.`, `_` and `-`, not beginning with `.` or `-`"
        )
    return name


class ParameterConfig(BaseModel):
    """The values of one key of a recipe: one of `values` or `choices`, or between `low` and `high`."""

    model_config = STRICT_CONFIG

    values: tuple[ParameterValue, ...] | None = Field(None, min_length=1, description="in order: neighbours are alike")
    choices: tuple[ParameterValue, ...] | None = Field(None, min_length=1, description="without order")
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    step: FiniteFloat | None = Field(None, gt=0, description="low, low + step, ...; none: any number in between")
    factor: FiniteFloat | None = Field(None, gt=1, description="low, low * factor, ...; none: any number in between")
    log: bool = Field(False, description="draw by the logarithm: as many between 1 and 10 as between 10 and 100")
    only_if: dict[str, ParameterValue] = Field({}, description="other keys of the space, and what they must be")

    @field_validator("values", "choices", "only_if", mode="before")
    @classmethod
    def _check_values_are_scalars(cls, values: Any) -> Any:
        items = values.items() if isinstance(values, Mapping) else enumerate(values) if isinstance(values, list) else ()
        for key, value in items:
            if not isinstance(value, (bool, int, float, str)):
                raise ValueError(
                    f"{key}: {json.dumps(value):.60} must be a number, a text, true or false; an item of a list is "
                    'varied by its number, as in "training.optimizer.betas.1"'
                )
        return tuple(values) if isinstance(values, list) else values  # after Python code a strict field takes no list

    @model_validator(mode="after")
    def _check_values_or_range(self) -> "ParameterConfig":
        kinds = [self.values is not None, self.choices is not None, self.low is not None or self.high is not None]
        if sum(kinds) != 1:
            raise ValueError("give one of values, choices, or low and high")
        for name in ("values", "choices"):
            items = getattr(self, name)
            for value in items or ():
                if isinstance(value, float) and not math.isfinite(value):
                    raise ValueError(f"{name} has {value}, which is no finite number")
            if items is not None and len(set(items)) < len(items):  # to Optuna 1, 1.0 and true are one category
                raise ValueError(f"{name} has one of them twice (1, 1.0 and true are equal)")
        of_range = self.step is not None or self.factor is not None or self.log
        if not kinds[2]:
            if of_range:
                raise ValueError("step, factor and log belong to low and high")
            return self
        if self.low is None or self.high is None or self.low >= self.high:
            raise ValueError("low must be given and below high")
        if sum([self.step is not None, self.factor is not None, self.log]) > 1:
            raise ValueError("give one of step, factor and log")
        if self.low <= 0 and (self.factor is not None or self.log):
            raise ValueError(f"low ({self.low:g}) must be above 0 for a logarithm")
        return self


class WindowConfig(BaseModel):
    """Settings of method = "window": rounds of random trials, after each of which the windows move."""

    model_config = STRICT_CONFIG

    size: int = Field(3, ge=1, description="values in the window of a key with steps")
    share: float = Field(
        0.3, gt=0, le=1, description="width of the window of a key without steps, as part of its range"
    )
    trials_a_round: int = Field(8, ge=1)


class EvolutionConfig(BaseModel):
    """Settings of method = "evolution"."""

    model_config = STRICT_CONFIG

    population: int = Field(12, ge=2, description="configurations of a generation")
    survivors: int = Field(4, ge=2, description="the fittest, from which the next generation comes")
    mutation: float = Field(0.2, ge=0, le=1, description="probability that a key of a child changes")

    @model_validator(mode="after")
    def _check_survivors(self) -> "EvolutionConfig":
        if self.survivors >= self.population:
            raise ValueError(f"survivors ({self.survivors}) must be fewer than the population ({self.population})")
        return self


class SearchConfig(BaseModel):
    """A search over the settings of a recipe. Used by `tfm search`."""

    model_config = STRICT_CONFIG

    name: Annotated[str, AfterValidator(_check_folder_name)] = Field(
        description="the search is in runs/NAME; default: the file's name without .toml"
    )
    base: str = Field(description="the recipe that is varied, relative to this file")
    space: dict[str, ParameterConfig] = Field(min_length=1, description="by dotted key of the recipe")
    metric: ValidationMetric = Field("loss", description="of validation, of the best checkpoint")
    method: Method = "tpe"
    pruning: Pruner = Field("none", description="end trials whose validations fall behind those of others")
    trials: int | None = Field(
        None, ge=1, description="as many in all; the first limit that is reached ends the search"
    )
    hours: float | None = Field(
        None, gt=0, description="of work in all, summed over workers: datasets, training, validation"
    )
    updates: int | None = Field(None, ge=1, description="in all")
    seed: int = Field(1, ge=0, lt=2**32)
    repeats: int = Field(1, ge=1, description="seeds a configuration is trained with; the mean counts")
    folds: int | None = Field(
        None, ge=2, le=1000, description="cross-validation on the training data, in so many folds; the mean counts"
    )
    keep: int = Field(3, ge=1, description="trials whose models stay on disk: the best so far")
    window: WindowConfig = WindowConfig()
    evolution: EvolutionConfig = EvolutionConfig()

    @model_validator(mode="after")
    def _check_budget_and_conditions(self) -> "SearchConfig":
        if self.method != "grid" and self.trials is None and self.hours is None and self.updates is None:
            raise ValueError("give an end: trials, hours or updates")
        for key, parameter in self.space.items():
            for other_key, value in parameter.only_if.items():
                if other_key not in self.space or other_key == key:
                    raise ValueError(f'space."{key}".only_if: {other_key} is no other key of the space')
                if list(self.space).index(other_key) > list(self.space).index(key):
                    raise ValueError(f'space."{key}".only_if: {other_key} must stand before {key}')
                allowed = self.space[other_key].values or self.space[other_key].choices
                if allowed is not None and value not in allowed:
                    raise ValueError(f'space."{key}".only_if: {other_key} is never {value!r}')
        return self


def load_search(path: Path) -> SearchConfig:
    """The `[search]` of a TOML file. Raises RecipeError, whose message names file, key and allowed values."""
    try:
        content = parse_toml(path)
    except FileNotFoundError:
        raise RecipeError(f"{path}: there is no such file") from None
    except RecipeError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise RecipeError(f"{path}: cannot be read as a recipe of a search: {reason}") from None
    if content and "search" not in content:
        raise RecipeError(f"{path}: has no [search]; a recipe is trained by `tfm run`")
    if set(content) != {"search"} or not isinstance(content["search"], Mapping):
        other_tables = ", ".join(sorted(set(content) - {"search"}))
        problem = (
            f"has {other_tables} beside [search]; settings belong to the base recipe"
            if other_tables
            else "has no [search]"
        )
        raise RecipeError(f"{path}: {problem}")
    raw: dict[str, Any] = {"name": path.stem, **content["search"]}
    space = raw.get("space")
    for key, value in space.items() if isinstance(space, Mapping) else ():
        if (nested_key := _join_nested_key(key, value)) != key:
            raise RecipeError(
                f'{path}: search.space: write "{nested_key}" in quotation marks: TOML reads its dots as tables'
            )
    try:
        config = SearchConfig.model_validate_json(json.dumps(raw, default=str), strict=True)
    except ValidationError as error:
        raise recipe_error(
            error.errors(include_url=False), SearchConfig, ("search",), {}, lambda _: str(path)
        ) from None
    if (credential := credential_problem(config, ("search",))) is not None:
        raise RecipeError(f"{path}: {'.'.join(credential[0])} {credential[1]}")
    return config


def _join_nested_key(key: str, value: object) -> str:
    """The key as it was meant where TOML read its dots as tables: down to the first table that says what it may be."""
    name = key
    while isinstance(value, Mapping) and value and not value.keys() & ParameterConfig.model_fields.keys():
        inner, value = next(iter(value.items()))
        name = f"{name}.{inner}"
    return name if isinstance(value, Mapping) and value else key
