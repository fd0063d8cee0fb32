"""Attributes of a study's trials, checked: Optuna keeps any value, and a study may have come from somebody else."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from optuna.trial import FrozenTrial, TrialState
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tfm.data.errors import escape_unprintable, format_count
from tfm.pipeline.tuning.config import FiniteFloat, ParameterValue
from tfm.pipeline.tuning.space import Configuration, Parameter

CONFIGURATION_ATTR = "configuration"
"""The attribute of a trial that has all its settings, written when all are drawn."""
DUPLICATE_OF_ATTR = "same_as"
"""The attribute of a trial that says which earlier one had its configuration, so that it was not trained again."""
WAITS_FOR_ATTR = "waits_for"
"""The attribute of a trial that says which other one has its configuration and is run, so that it ends after that."""
WAITING_STATUS = "waiting"
"""The status of a trial whose configuration another worker runs under an earlier number: it ends after that one."""
OPTUNA_ATTRIBUTE_PREFIXES = ("fixed_params", "constraints", "completed_rung_")
"""Attributes of Optuna's own that its samplers and pruners read, by how they begin."""
MAX_STEP = 10**6
Count: TypeAlias = Annotated[int, Field(ge=0, le=2**53)]
Seconds: TypeAlias = Annotated[float, Field(ge=0, le=1e12)]


class TrialAttributes(BaseModel):
    """The attributes of a trial that `trial.py` writes; others, such as a dashboard's, are left alone.

    updates_of: by the name of a run. validated: the updates after which its first run was validated.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    configuration: dict[str, ParameterValue] | None = None
    same_as: Count | None = None
    waits_for: Count | None = None
    began: Seconds | None = None
    ended: Literal["finished", "pruned", "impossible", "failed"] | None = None
    reason: Annotated[str, Field(max_length=100_000)] = ""
    values: list[FiniteFloat] = []
    updates: Count = 0
    seconds: Seconds = 0.0
    updates_of: dict[str, Count] = {}
    validated: list[Count] = []
    behind: bool = False


def read_trial_attributes(trial: FrozenTrial) -> TrialAttributes:
    """The attributes of a trial. Raises ValueError, naming the attribute and its value, if one is none of tfm's."""
    try:
        return TrialAttributes.model_validate(trial.user_attrs)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        attribute = escape_unprintable(f"{'.'.join(map(str, first['loc'])):.100}")
        raise ValueError(f"{attribute}: {first['input']!r:.60}: {first['msg']:.200}") from None


def describe_wait(number: int) -> str:
    """The reason for which a trial waits for another one, by the number of that."""
    return f"to take over the end of trial {number}, which has the same configuration"


def check_trials(trials: Sequence[FrozenTrial], parameters: Sequence[Parameter], num_runs: int) -> None:
    """Check the records of a study's trials.

    Args:
        trials: all of them, in its order.
        parameters: the space of the search.
        num_runs: trainings of a trial, over folds and seeds.

    Raises:
        ValueError: a trial is none that this search has; the error names it, with the problem.
    """
    for index, trial in enumerate(trials):
        if trial.number != index:
            raise ValueError(f"trial {trial.number!r:.20} is at position {index}")
        try:
            _check_attributes(trial, parameters, num_runs)
            _check_trial_values(trial)
            _check_parameters(trial, parameters)
        except ValueError as error:
            raise ValueError(f"trial {index}: {error}") from None


def _check_attributes(trial: FrozenTrial, parameters: Sequence[Parameter], num_runs: int) -> None:
    attributes = read_trial_attributes(trial)
    if len(attributes.values) not in (0, num_runs):
        raise ValueError(
            f"values: has {format_count(len(attributes.values), 'figure')}; its trainings are {num_runs:,}"
        )
    if attributes.configuration is not None and (
        problem := configuration_problem(attributes.configuration, parameters)
    ):
        raise ValueError(f"{CONFIGURATION_ATTR}: {problem}")
    if trial.state == TrialState.COMPLETE and attributes.configuration is None and attributes.ended is not None:
        raise ValueError(f"{CONFIGURATION_ATTR}: is missing")


def configuration_problem(configuration: Configuration, parameters: Sequence[Parameter]) -> str | None:
    """Why settings are none of a space: a key that it does not have, or that has no value here, or another value."""
    expected = {each.key: each for each in parameters if each.is_active(configuration)}
    for key in configuration.keys() | expected.keys():
        if key not in configuration:
            return f"{key} is missing"
        if key not in expected:
            return f"{key!r:.80} is not a key of this search, or has no value although others have"
        if not expected[key].is_valid_value(configuration[key]):
            return f"{key} = {configuration[key]!r:.60}, which is not in its space"
    return None


def _check_trial_values(trial: FrozenTrial) -> None:
    values = trial.values
    if values is not None and (not isinstance(values, list) or len(values) != 1 or not _is_finite(values[0])):
        raise ValueError(f"value: {values!r:.60} is not one finite number")
    if trial.state == TrialState.COMPLETE and not values:
        raise ValueError("is finished and has no value")
    for step, value in trial.intermediate_values.items():
        if type(step) is not int or not 0 <= step <= MAX_STEP or not _is_finite(value):
            raise ValueError(f"validation {step!r:.20}: {value!r:.60} is not a finite number")


def _check_parameters(trial: FrozenTrial, parameters: Sequence[Parameter]) -> None:
    parameters_by_key = {each.key: each for each in parameters}
    for key, value in trial.params.items():
        if key not in parameters_by_key or trial.distributions[key] != parameters_by_key[key].distribution:
            raise ValueError(f"parameter {key!r:.80} is not one of this search, or is drawn from another space")
        if not parameters_by_key[key].is_valid_draw(value):
            raise ValueError(f"parameter {key}: {value!r:.60} is not in its space")
    for key, value in trial.system_attrs.items():
        if key.startswith(OPTUNA_ATTRIBUTE_PREFIXES) and not _is_optuna_attribute(key, value, parameters_by_key):
            raise ValueError(f"{key:.80}: {value!r:.60} is nothing that Optuna keeps there in a search")


def _is_optuna_attribute(key: str, value: Any, parameters: Mapping[str, Parameter]) -> bool:
    """Return whether an attribute is one that a search lets Optuna write: a grid's settings, or a rung of
    Hyperband's.
    """
    if key == "fixed_params":
        return isinstance(value, dict) and all(
            name in parameters and parameters[name].is_valid_draw(draw) for name, draw in value.items()
        )
    return key != "constraints" and _is_finite(value)


def _is_finite(value: object) -> bool:
    """Return whether a value is a number that is finite as a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
