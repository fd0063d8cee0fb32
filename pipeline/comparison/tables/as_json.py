"""A comparison as JSON: each run with its figures, each row, and the tests against the baseline."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tfm.pipeline.artifacts.canonical_json import to_jsonable
from tfm.pipeline.comparison.human_agreement import look_up_human_agreement
from tfm.pipeline.comparison.metric_tests import ScoreEstimate, SignificanceResults, significance_test_settings
from tfm.pipeline.comparison.runs import Comparison
from tfm.pipeline.comparison.seeds import ComparisonRow
from tfm.pipeline.comparison.tables.columns import metric_signature
from tfm.pipeline.reports.run_summary import RunSummary
from tfm.pipeline.scoring.ledger import num_test_uses
from tfm.pipeline.significance.human_agreement_table import TABLE_SOURCE, Agreement
from tfm.pipeline.significance.paired_tests import PairedDifference
from tfm.pipeline.significance.seeds import SeedDifference


def comparison_as_json(comparison: Comparison, tested: SignificanceResults) -> dict[str, Any]:
    """Return the comparison as JSON, without the curves.

    Figures of the main test set have an interval where segments are known, and `versus` where they were tested: of runs
    against the first run of the baseline, of rows against the baseline.
    """
    return {
        "baseline": comparison.baseline.name,
        "test": {"name": tested.test, "segments": tested.num_segments},
        "tests": significance_test_settings(),
        "looked_at": [
            {
                "test": usage.test,
                "folder": str(usage.folder),
                "times": num_test_uses(usage.entries),
                "models": usage.num_models,
                "unlisted": list(usage.unlisted),
            }
            for usage in tested.looked_at
        ],
        "runs": [_run_json(comparison, tested, run) for run in comparison.runs],
        "rows": [_row_json(comparison, tested, row) for row in comparison.rows],
        "notes": [*comparison.notes, *tested.notes, *tested.without_interval],
    }


def _run_json(comparison: Comparison, tested: SignificanceResults, run: RunSummary) -> dict[str, Any]:
    return {
        "name": run.name,
        "model": str(run.model.path),
        "fingerprint": run.model.fingerprint,
        "architecture": run.architecture,
        "task": run.task,
        "seed": run.model.seed,
        "differs": to_jsonable(comparison.differs[run.name]),
        "figures": {
            name: {
                "value": to_jsonable(figure.score),
                "signature": figure.signature,
                "comparable": comparison.is_comparable(run, name),
                **_tests_json(comparison, name, run.name, tested.runs),
            }
            for name, figure in run.figures.items()
        },
    }


def _row_json(comparison: Comparison, tested: SignificanceResults, row: ComparisonRow) -> dict[str, Any]:
    names = dict.fromkeys(name for run in row.runs for name in run.figures)
    return {
        "name": row.name,
        "runs": [run.name for run in row.runs],
        "seeds": row.seeds,
        "differs": to_jsonable(comparison.config_differences(row)),
        "figures": {
            name: {
                "mean": to_jsonable(row.mean(name)),
                "deviation": row.deviation(name),
                "num_runs": len(row.values(name)),
                "comparable": comparison.is_row_comparable(row, name),
                **_tests_json(comparison, name, row.name, tested.rows),
            }
            for name in names
        },
    }


def _tests_json(
    comparison: Comparison, figure: str, name: str, tests: Mapping[str, Mapping[str, ScoreEstimate]]
) -> dict[str, Any]:
    """The 95 % interval (low, high), spread (the number after ± in a table) and test of a figure, if any."""
    part, _, metric = figure.partition(".")
    estimate = tests.get(metric, {}).get(name) if part == "test" else None
    if estimate is None:
        return {}
    interval = {
        "low": to_jsonable(estimate.low),
        "high": to_jsonable(estimate.high),
        "spread": to_jsonable(estimate.spread),
    }
    if estimate.versus is None:
        return interval
    people = look_up_human_agreement(metric, metric_signature(comparison, metric), estimate.versus.difference)
    return {**interval, "versus": _difference_json(estimate.versus, people)}


def _difference_json(
    paired_difference: PairedDifference | SeedDifference, agreement: Agreement | None
) -> dict[str, Any]:
    """A test as JSON: its fields, whether the difference stands, and the chance that people agree."""
    return {
        **{name: to_jsonable(value) for name, value in asdict(paired_difference).items()},
        "stands": paired_difference.is_significant,
        "people_agree": None
        if agreement is None
        else {"percent": agreement.percent, "bound": agreement.bound, "source": TABLE_SOURCE},
    }
