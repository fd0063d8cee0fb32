"""The space of a search: which values each key of the recipe may take, and when it has a value at all.

For Optuna a key with an order is a whole number, the place of its value in the list of them, so that every sampler
knows which values are neighbors; a key without steps is a real number; one without order is a category.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tfm.data.errors import format_names
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.tuning.config import ParameterConfig, ParameterValue

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial

Configuration: TypeAlias = dict[str, ParameterValue]
"""By dotted key of the recipe, those that have a value."""
MAX_VALUES = 10_000


@dataclass(frozen=True)
class Parameter:
    """The values that one key may have. values: all of them, None if there are infinitely many between low and
    high.
    """

    key: str
    values: tuple[ParameterValue, ...] | None
    ordered: bool
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    only_if: tuple[tuple[str, ParameterValue], ...] = ()

    def is_active(self, earlier_values: Mapping[str, ParameterValue]) -> bool:
        """Return whether the key has a value beside those of the keys before it."""
        return all(key in earlier_values and earlier_values[key] == value for key, value in self.only_if)

    def suggest(self, trial: "Trial") -> ParameterValue:
        """The value that a trial of Optuna has for this key, drawn by its sampler if it has none yet."""
        if self.values is None:
            return trial.suggest_float(self.key, self.low, self.high, log=self.log)
        if self.ordered:
            return self.values[trial.suggest_int(self.key, 0, len(self.values) - 1)]
        choice = trial.suggest_categorical(self.key, self.values)
        assert choice is not None
        return choice

    @property
    def distribution(self) -> "BaseDistribution":
        """The distribution from which Optuna draws the key in `suggest`."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.values is None:
            return FloatDistribution(self.low, self.high, log=self.log)
        return IntDistribution(0, len(self.values) - 1) if self.ordered else CategoricalDistribution(self.values)

    def is_valid_draw(self, value: object) -> bool:
        """Return whether a value is one that Optuna draws for the key: the place of one with an order, else the
        value.
        """
        if self.values is None or not self.ordered:
            return self.is_valid_value(value)
        return type(value) is int and 0 <= value < len(self.values)

    def is_valid_value(self, value: object) -> bool:
        """Return whether the key may have a value in a configuration."""
        if self.values is None:
            return type(value) in (int, float) and self.low <= value <= self.high  # type: ignore[operator]
        return any(type(each) is type(value) and each == value for each in self.values)

    def describe_values(self) -> str:
        """Return the values of the key as text for a report."""
        if self.values is None:
            return f"between {self.low:g} and {self.high:g}{', by the logarithm' if self.log else ''}"
        return f"{'' if self.ordered else 'one of '}{', '.join(map(_format_value, self.values))}"


def _format_value(value: ParameterValue) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def make_parameters(space: Mapping[str, ParameterConfig]) -> tuple[Parameter, ...]:
    """The keys of a space in the order in which it was written, with their values listed.

    Raises RecipeError naming a key that never has a value, or that has too many.
    """
    parameters = {key: _make_parameter(key, config) for key, config in space.items()}
    needs: dict[str, dict[str, ParameterValue]] = {}
    for key, parameter in parameters.items():
        needs[key] = dict(parameter.only_if)
        for other_key, value in parameter.only_if:
            location = f'search.space."{key}".only_if: {other_key}'
            if (values := parameters[other_key].values) is None:
                raise RecipeError(
                    f"{location} has no steps, so that it is never exactly {value!r}: give it step or factor"
                )
            if value not in values:
                raise RecipeError(f"{location} is never {value!r}; it is {format_names(map(_format_value, values))}")
            for first, required_value in needs[other_key].items():
                if needs[key].setdefault(first, required_value) != required_value:
                    conflict = (
                        f"{first} = {_format_value(required_value)} and {first} = {_format_value(needs[key][first])}"
                    )
                    raise RecipeError(f'search.space."{key}".only_if is never so: it needs {conflict}')
    return tuple(parameters.values())


def sort_keys_in_draw_order(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """The keys by name, each after those of its condition: draws in this order do not depend on that of a file."""
    rest, parameters_by_key = sorted(parameters, key=lambda each: each.key), dict[str, Parameter]()
    while rest:
        next_parameter = next(each for each in rest if all(other in parameters_by_key for other, _ in each.only_if))
        parameters_by_key[next_parameter.key] = next_parameter
        rest.remove(next_parameter)
    return tuple(parameters_by_key.values())


def _make_parameter(key: str, config: ParameterConfig) -> Parameter:
    condition = tuple(config.only_if.items())
    if config.values is not None or config.choices is not None:
        ordered = config.values is not None
        return Parameter(key, config.values or config.choices, ordered, only_if=condition)
    assert config.low is not None
    assert config.high is not None
    if config.step is None and config.factor is None:
        return Parameter(key, None, True, config.low, config.high, config.log, condition)
    return Parameter(key, tuple(_grid_values(key, config, config.low, config.high)), True, only_if=condition)


def _grid_values(key: str, config: ParameterConfig, low: float, high: float) -> list[ParameterValue]:
    """Return low, low + step, ... or low, low * factor, ... up to high; whole numbers where all of them are."""
    if config.step is not None:
        count = math.floor((high - low) / config.step + 1e-9) + 1
    else:
        assert config.factor is not None
        count = math.floor(math.log(high / low) / math.log(config.factor) + 1e-9) + 1
    if count > MAX_VALUES:
        raise RecipeError(
            f'search.space."{key}" has {count:,} values; at most {MAX_VALUES:,}, or none of step and factor'
        )
    if config.step is not None:
        numbers = [low + number * config.step for number in range(count)]
    else:
        numbers = [low * (config.factor or 1.0) ** number for number in range(count)]
    rounded_numbers = [float(f"{each:.12g}") for each in numbers]  # 0.1 + 2 * 0.1 is meant to be 0.3
    return (
        [int(each) for each in rounded_numbers]
        if all(each.is_integer() for each in rounded_numbers)
        else list(rounded_numbers)
    )


def suggest_configuration(parameters: Sequence[Parameter], trial: "Trial") -> Configuration:
    """The configuration of a trial: a value for each key whose condition holds."""
    configuration: Configuration = {}
    for parameter in parameters:
        if parameter.is_active(configuration):
            configuration[parameter.key] = parameter.suggest(trial)
    return configuration


def list_configurations(parameters: Sequence[Parameter]) -> list[Configuration]:
    """Return all configurations of a finite space, each once, the last key changing fastest.

    Raises RecipeError naming a key that has infinitely many values.
    """
    for parameter in parameters:
        if parameter.values is None:
            raise RecipeError(
                f'search.space."{parameter.key}" has infinitely many values: method = "grid" needs step or factor'
            )
    configurations: list[Configuration] = [{}]
    for parameter in parameters:
        assert parameter.values is not None
        configurations = [
            {**configuration, parameter.key: value} if value is not None else configuration
            for configuration in configurations
            for value in (parameter.values if parameter.is_active(configuration) else (None,))
        ]
    return configurations
