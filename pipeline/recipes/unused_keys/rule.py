"""A row of the table of unused keys, and the tests that rows are made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tfm.pipeline.tasks.abilities import select_tasks

ValueCondition = Callable[[Any], bool]


@dataclass(frozen=True)
class UnusedKeysRule:
    """`keys` (a table's name includes all its keys) that have no effect if every key of `conditions` passes its test.

    reason: why they have none, and the values with which they would be used. other_conditions: further ones, of parts
    that a command may not read, which then pass.
    """

    conditions: Mapping[str, ValueCondition]
    keys: tuple[str, ...]
    reason: str
    other_conditions: Mapping[str, ValueCondition] = field(default_factory=dict)


def unused_without_metrics(
    metrics: tuple[str, ...], keys: tuple[str, ...], reason: str, conditions: Mapping[str, ValueCondition] | None = None
) -> UnusedKeysRule:
    """Return the rule for keys of metrics that neither evaluation computes, nor validation.

    Args:
        metrics: the metrics that read the keys.
        keys: as `UnusedKeysRule` has them.
        reason: as `UnusedKeysRule` has it.
        conditions: further ones.
    """
    return UnusedKeysRule(
        {**(conditions or {}), "evaluation.metrics": has_none_of(*metrics)},
        keys,
        reason,
        {
            "training.early_stopping.metric": is_none_of(*metrics),
            "training.validation.metrics": has_none_of(*metrics),
        },
    )


def is_one_of(*values: object) -> ValueCondition:
    """Return whether a value is one of these."""
    return lambda value: value in values


def is_none_of(*values: object) -> ValueCondition:
    """Return whether a value is none of these."""
    return lambda value: value not in values


def is_at_most(limit: float) -> ValueCondition:
    """Return whether a number is not above a limit."""
    return lambda value: value <= limit


def has_none_of(*names: str) -> ValueCondition:
    """Return whether a list, if there is one, has none of these."""
    return lambda values: not {*(values or ())} & {*names}


IS_TRANSLATION_TASK = is_one_of(*select_tasks(lambda task: task.translates))
NO_TRANSLATION_CONDITION = {"model.task": is_none_of(*select_tasks(lambda task: task.translates))}
IS_LABEL_TASK = is_one_of(*select_tasks(lambda task: task.labels))
WORD_VECTORS_CONDITION = {"model.architecture": is_one_of("skip_gram", "cbow")}
