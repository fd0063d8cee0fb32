"""Tables of an error rate to read: edits of each kind, and the commonest confusions of units."""

from collections.abc import Mapping

from tfm.pipeline.scoring.metrics.error_rates import EditCounts
from tfm.pipeline.scoring.tables.labels import MAX_CONFUSIONS, NO_LABEL, Table


def error_tables(errors: Mapping[str, EditCounts]) -> list[Table]:
    """Tables of the edits of each kind that each error rate counts, and of the units that are confused."""
    if not errors:
        return []
    rows = [
        [
            name,
            counts.unit,
            f"{counts.units:,}",
            f"{counts.insertions:,}",
            f"{counts.deletions:,}",
            f"{counts.substitutions:,}",
        ]
        for name, counts in errors.items()
    ]
    tables: list[Table] = [
        ("errors", ("error rate", "unit", "units", "insertions", "deletions", "substitutions"), rows)
    ]
    return tables + [_confusion_table(name, counts) for name, counts in errors.items() if counts.confusions]


def _confusion_table(name: str, errors: EditCounts) -> Table:
    commonest = errors.confusions[:MAX_CONFUSIONS]
    rows = [
        [_format_unit(reference), _format_unit(hypothesis), f"{count:,}"] for reference, hypothesis, count in commonest
    ]
    return f"commonest confusions of {name}", ("reference", "given", "count"), rows


def _format_unit(unit: str) -> str:
    """A unit as it is shown; white space by its name."""
    return repr(unit) if unit.isspace() else unit or NO_LABEL
