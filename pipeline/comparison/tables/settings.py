"""The settings of runs that are not as in the baseline: a column beside figures, or a table of their own."""

import json

from tfm.pipeline.comparison.runs import Comparison
from tfm.pipeline.comparison.seeds import ComparisonRow
from tfm.pipeline.comparison.tables.columns import EMPTY_CELL, Cell, Column, row_name

KEYS_WITH_OWN_COLUMN = ("model.architecture", "model.task")
MAX_VALUE_LENGTH = 40  # characters of a setting


def settings_columns(comparison: Comparison) -> list[Column]:
    """Return the columns of a table with a row for each setting of a run that is not as in the baseline; none if all
    are.
    """
    base = comparison.baseline.runs[0].config
    rows = [
        (row_name(row), key, value, _format_value(base[key]) if key in base else EMPTY_CELL)
        for row in comparison.rows
        for key, value in _differing_settings(comparison, row).items()
    ]
    headings = ("run", "setting", "value", f"in {comparison.baseline.name}")
    return [
        Column(heading, [*map(Cell, texts)], numeric=False)
        for heading, texts in zip(headings, zip(*rows, strict=True), strict=False)
    ]


def settings_beside_figures(comparison: Comparison) -> list[Column]:
    """Return one column, with the settings of each row that are not as in the baseline; none if all are."""
    cells = [
        Cell(", ".join(f"{key} = {value}" for key, value in _differing_settings(comparison, row).items()))
        for row in comparison.rows
    ]
    has_any = any(cell.text for cell in cells)
    return [Column(f"differs from {comparison.baseline.name}", cells, numeric=False)] if has_any else []


def _differing_settings(comparison: Comparison, row: ComparisonRow) -> dict[str, str]:
    differences = comparison.config_differences(row)
    return {key: _format_value(value) for key, value in differences.items() if key not in KEYS_WITH_OWN_COLUMN}


def _format_value(value: object) -> str:
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"
