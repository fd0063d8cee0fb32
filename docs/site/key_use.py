"""The use of a recipe key: by which tasks, since which version, and with which other values it has none."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tfm.model.config import CHARACTER_TASKS, IMAGE_TASKS, SUPPORTED_TASKS
from tfm.pipeline.recipes.unused_keys.rule import UnusedKeysRule
from tfm.pipeline.recipes.unused_keys.table import UNUSED_KEYS_RULES
from tfm.pipeline.tasks.abilities import TASK_SPECS, select_tasks

FIRST_VERSION = "0.1.0"
KIND = {"model.architecture", "model.task"}
TASKS_BY_TABLE: Mapping[str, tuple[str, ...]] = {
    "data.images": tuple({task for tasks in IMAGE_TASKS.values() for task in tasks}),
    "model.vision": tuple({task for tasks in IMAGE_TASKS.values() for task in tasks}),
    "model.canine": tuple({task for tasks in CHARACTER_TASKS.values() for task in tasks}),
    "model.span_corruption": select_tasks(lambda task: task.hides_spans),
    "model.word_vectors": select_tasks(lambda task: task.within_window),
}
"""Tables that are refused where the task does not read them."""


def tasks_of(key: str) -> tuple[str, ...]:
    """The tasks that read a key in one architecture at least, in the order of the table of tasks."""
    given = next((tasks for table, tasks in TASKS_BY_TABLE.items() if is_at_or_below(key, table)), tuple(TASK_SPECS))
    return tuple(task for task in TASK_SPECS if task in given and any(map(_reader(key, task), _architectures(task))))


def idle_reasons(key: str) -> list[str]:
    """The other keys whose values may leave a key without effect, each with the reason."""
    found: dict[str, list[str]] = {}
    for rule in _rules_of(key):
        others = [
            each for each in rule.conditions if each not in KIND and each not in {key, "model.vision", "model.canine"}
        ]
        if others:
            found.setdefault(rule.reason, others)
    return [f"{' and '.join(f'`{each}`' for each in others)}: {why}" for why, others in found.items()]


def since(key: str, changelog: str) -> str:
    """The version that a key came with: that of the changelog's entry that begins with the key, else the first."""
    parts = re.split(r"^## \[", changelog, flags=re.MULTILINE)[1:]
    for part in parts[:-1]:  # the last one is the first version: all that it has is as old
        additions = part.partition("### Added\n")[2].partition("\n### ")[0]
        if re.search(rf"^- `{re.escape(key)}\b", additions, re.MULTILINE):
            return part.partition("]")[0].lower()
    return FIRST_VERSION


def is_at_or_below(key: str, table: str) -> bool:
    """Return whether a key is a table, or in it."""
    return key == table or key.startswith(f"{table}.")


def _rules_of(key: str) -> Iterator[UnusedKeysRule]:
    yield from (rule for rule in UNUSED_KEYS_RULES if any(is_at_or_below(key, each) for each in rule.keys))


def _architectures(task: str) -> list[str]:
    return [name for name, tasks in SUPPORTED_TASKS.items() if task in tasks]


def _reader(key: str, task: str) -> Any:
    """The test whether an architecture reads a key in training a task, whatever the other keys are."""

    def reads(architecture: str) -> bool:
        kind = {"model.architecture": architecture, "model.task": task}
        decided = (rule for rule in _rules_of(key) if rule.conditions.keys() <= KIND)
        return not any(all(test(kind[name]) for name, test in rule.conditions.items()) for rule in decided)

    return reads
