"""The settings of runs that are not as in the baseline, as text."""

import json

from tfm.pipeline.comparison.runs import Comparison
from tfm.pipeline.comparison.seeds import ComparisonRow

KEYS_WITH_OWN_COLUMN = ("model.architecture", "model.task")  # they have columns of their own
MAX_VALUE_LENGTH = 40  # characters of a setting


def settings_heading(comparison: Comparison) -> str:
    """The heading of the settings that are not as in the baseline."""
    return f"differs from {comparison.baseline.name}"


def differing_settings(comparison: Comparison, row: ComparisonRow) -> dict[str, str]:
    """The settings of a row that are not as in the baseline, without those that have a column."""
    found = comparison.config_differences(row)
    return {key: format_setting(value) for key, value in found.items() if key not in KEYS_WITH_OWN_COLUMN}


def describe_settings(comparison: Comparison, row: ComparisonRow) -> str:
    """The settings of a row that are not as in the baseline, as one line."""
    return ", ".join(f"{key} = {value}" for key, value in differing_settings(comparison, row).items())


def format_setting(value: object) -> str:
    """A value of a recipe as text, cut where it is long."""
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"
