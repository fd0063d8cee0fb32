"""A row of the table of unused keys, and the tests that rows are made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tfm.pipeline.tasks.abilities import select_tasks

ValueCondition = Callable[[Any], bool]


@dataclass(frozen=True)
class UnusedKeysRule:
    """`keys` (a table's name includes all its keys) that have no effect if every key of `conditions` passes its test.

    reason: why they have none, and the values with which they would be used.
    """

    conditions: Mapping[str, ValueCondition]
    keys: tuple[str, ...]
    reason: str


def is_one_of(*values: object) -> ValueCondition:
    """Return whether a value is one of these."""
    return lambda value: value in values


def is_none_of(*values: object) -> ValueCondition:
    """Return whether a value is none of these."""
    return lambda value: value not in values


def has_none_of(*names: str) -> ValueCondition:
    """Return whether a list has none of these."""
    return lambda values: not set(values) & set(names)


IS_TRANSLATION_TASK = is_one_of(*select_tasks(lambda task: task.translates))
NO_TRANSLATION_CONDITION = {"model.task": is_none_of(*select_tasks(lambda task: task.translates))}
IS_LABEL_TASK = is_one_of(*select_tasks(lambda task: task.labels))
WORD_VECTORS_CONDITION = {"model.architecture": is_one_of("skip_gram", "cbow")}
