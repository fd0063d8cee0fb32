"""The tables of a comparison: a row for each run or several seeds of it, and the tests against the baseline."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tfm.data.errors import format_names
from tfm.pipeline.comparison.human_agreement import look_up_human_agreement
from tfm.pipeline.comparison.metric_tests import SignificanceResults
from tfm.pipeline.comparison.runs import Comparison, is_lower_better
from tfm.pipeline.comparison.seeds import ComparisonRow
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.reports.evaluation_report import metric_label
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS
from tfm.pipeline.scoring.metrics.score import FOUR_DIGIT_METRICS
from tfm.pipeline.scoring.summaries import SUMMARY_METRICS
from tfm.pipeline.significance.holm import format_p_value
from tfm.pipeline.significance.paired_tests import PairedDifference
from tfm.pipeline.significance.seeds import SeedDifference

EMPTY_CELL = "–"
SIGNIFICANT_MARK, NOT_COMPARABLE_MARK = "*", "†"
SPLITS_WITH_STDEV = ("valid", "test")  # of these figures the scatter over seeds is shown
MAX_VALUE_WITH_MORE_DECIMALS = 2.0  # scores below are shown with more digits: bits a character, COMET
MIN_SCIENTIFIC_VALUE = (
    1e9  # scores from here on, such as a perplexity of what a model never says, are shown as 1.04e+99
)
P_VALUE_COLUMNS = ("p bootstrap", "p randomisation", "p over seeds", "p corrected")
NumberFormatter = Callable[[float], str]


@dataclass(frozen=True)
class Cell:
    """A figure as a table shows it.

    Args:
        text: its value.
        spread: the text after ±.
        is_significant: whether it differs from the baseline's.
        comparable: whether it compares with the baseline's.
        best: whether none of its column is better.
    """

    text: str
    spread: str = ""
    is_significant: bool = False
    comparable: bool = True
    best: bool = False

    def __str__(self) -> str:
        spread = f" ± {self.spread}" if self.spread else ""
        return self.text + spread + SIGNIFICANT_MARK * self.is_significant + NOT_COMPARABLE_MARK * (not self.comparable)


@dataclass(frozen=True)
class Column:
    heading: str
    cells: Sequence[Cell]
    numeric: bool = True


def all_metrics(comparison: Comparison) -> list[str]:
    """The metrics of the main test set that any run has."""
    names = dict.fromkeys(name for run in comparison.runs for name in run.figures)
    return [name.removeprefix("test.") for name in names if name.startswith("test.")]


def match_metric_names(texts: Sequence[str], comparison: Comparison) -> list[str]:
    """The metrics of the main test set that are meant; where none is named, those of the tasks that runs have.

    Raises RecipeError for one that no run has.
    """
    metrics = all_metrics(comparison)
    if not texts:
        return [
            name
            for name in (figure.removeprefix("test.") for figure in comparison.main_test_metrics)
            if name in metrics
        ]
    names = list(dict.fromkeys(text.removeprefix("test.") for text in texts))
    for name in names:
        if name not in metrics:
            notes = (
                note for run in comparison.runs for note in run.notes if note.startswith(f"{name} is not computed")
            )
            problem = next(notes, f"these runs have {format_names(metrics) or 'no scores'}")
            raise RecipeError(f"--metric {name}: {problem}")
    return names


def comparison_columns(
    comparison: Comparison, tested: SignificanceResults, metrics: Sequence[str], *, format_duration: NumberFormatter
) -> list[Column]:
    """Return the columns of a row for each run, or for several seeds of it, without insignificant columns.

    Args:
        comparison: the comparison.
        tested: the results of the tests.
        metrics: names of metrics of the main test set.
        format_duration: shows a number of seconds.
    """
    rows = comparison.rows
    columns = [Column("run", [Cell(row_name(row)) for row in rows], numeric=False)]
    for heading, texts in (
        ("architecture", [row.runs[0].architecture for row in rows]),
        ("task", [row.runs[0].task for row in rows]),
    ):
        if len(set(texts)) > 1:
            columns.append(Column(heading, [*map(Cell, texts)], numeric=False))
    costs: dict[str, tuple[str, NumberFormatter]] = {
        "parameters": ("parameters", "{:,.0f}".format),
        "tokens_per_second": ("tokens/s", "{:,.0f}".format),
        "updates": ("updates", "{:,.0f}".format),
        "seconds": ("training", format_duration),
        "valid.loss": ("valid loss ↓", "{:.4f}".format),
        "valid.perplexity": ("valid perplexity ↓", "{:,.2f}".format),
        "valid.accuracy": ("valid accuracy", lambda share: f"{100 * share:.1f} %"),
        "valid.bleu": ("valid BLEU", "{:.2f}".format),
    }
    names = dict.fromkeys(name for run in comparison.runs for name in run.figures)
    metric_names = [name for name in names if name.startswith("valid.") and name not in costs]
    costs |= {name: (f"valid {metric_label(name.removeprefix('valid.'))}", "{:.2f}".format) for name in metric_names}
    columns += [
        Column(heading, figure_cells(comparison, tested, name, format_number))
        for name, (heading, format_number) in costs.items()
    ]
    columns += score_columns(comparison, tested, metrics)
    return [column for column in columns if any(cell.text not in ("", EMPTY_CELL) for cell in column.cells)]


def score_columns(comparison: Comparison, tested: SignificanceResults, metrics: Sequence[str]) -> list[Column]:
    """Return a column for each metric of the main test set.

    Args:
        comparison: the comparison.
        tested: the results of the tests.
        metrics: names of metrics.
    """
    return [
        Column(
            metric_heading(comparison, metric),
            figure_cells(comparison, tested, f"test.{metric}", make_number_formatter(comparison, metric)),
        )
        for metric in metrics
    ]


def make_number_formatter(comparison: Comparison, metric: str, sign: str = "") -> NumberFormatter:
    """Choose the digits of a metric's scores: two; four for those that are no percentages and all small.

    Args:
        comparison: the comparison with the scores.
        metric: the name of the metric.
        sign: "+" to show the sign of positive numbers too.

    Returns:
        A function from a number to text.
    """
    values = [abs(value) for row in comparison.rows for value in row.values(f"test.{metric}")]
    is_large = metric in METRIC_FUNCTIONS or max(values, default=0) >= MAX_VALUE_WITH_MORE_DECIMALS
    digits = 2 if is_large and metric not in FOUR_DIGIT_METRICS else 4

    def format_number(value: float) -> str:
        if not math.isfinite(value):
            return EMPTY_CELL if math.isnan(value) else f"{value:{sign}}".replace("inf", "∞")
        return f"{value:{sign},.{digits}f}" if abs(value) < MIN_SCIENTIFIC_VALUE else f"{value:{sign}.2e}"

    return format_number


def metric_heading(comparison: Comparison, metric: str) -> str:
    """The name of a metric of the main test set."""
    return metric_label(metric, metric_signature(comparison, metric))


def metric_signature(comparison: Comparison, metric: str) -> str:
    """The signature of a metric of the main test set, of the first run that has it."""
    figures = (run.figures.get(f"test.{metric}") for run in (*comparison.baseline.runs, *comparison.runs))
    return next((figure.signature for figure in figures if figure is not None), "")


def figure_cells(
    comparison: Comparison, tested: SignificanceResults, name: str, format_number: NumberFormatter
) -> list[Cell]:
    """Return the cells of a figure, one for each row.

    Args:
        comparison: the comparison.
        tested: the results of the tests.
        name: of the figure, such as test.bleu.
        format_number: shows a number.
    """
    cells = [_score_cell(comparison, tested, row, name, format_number) for row in comparison.rows]
    means = [
        row.mean(name) if comparison.is_row_comparable(row, name) and not row.runs_without(name) else None
        for row in comparison.rows
    ]
    values = [mean for mean in means if mean is not None]
    if len(values) < 2 or name.partition(".")[0] not in SPLITS_WITH_STDEV or name.partition(".")[2] in SUMMARY_METRICS:
        return cells
    best = (min if is_lower_better(name, comparison.runs) else max)(values)
    return [replace(cell, best=mean == best) for cell, mean in zip(cells, means, strict=True)]


def format_interval(low: float | None, high: float | None, format_number: NumberFormatter) -> str:
    """Format the ends of an interval; empty if there is none.

    Args:
        low: the lower end.
        high: the upper end.
        format_number: shows a number.
    """
    return EMPTY_CELL if low is None or high is None else f"{format_number(low)} to {format_number(high)}"


def row_name(row: ComparisonRow) -> str:
    """The name of a row, with the number of its seeds."""
    return row.name if len(row.runs) == 1 else f"{row.name} ({len(row.runs)} seeds)"


def _score_cell(
    comparison: Comparison, tested: SignificanceResults, row: ComparisonRow, name: str, format_number: NumberFormatter
) -> Cell:
    mean = row.mean(name)
    if mean is None:
        return Cell(EMPTY_CELL)
    part, _, metric = name.partition(".")
    estimate = tested.rows.get(metric, {}).get(row.name) if part == "test" else None
    spread = row.deviation(name) if part in SPLITS_WITH_STDEV else None
    if estimate is not None:
        spread = estimate.spread
    return Cell(
        _format_number(mean, format_number),
        "" if spread is None or not math.isfinite(spread) else _format_number(spread, format_number),
        estimate is not None and estimate.versus is not None and estimate.versus.is_significant,
        comparison.is_row_comparable(row, name),
    )


def _format_number(value: float, format_finite: NumberFormatter) -> str:
    return "∞" if value == math.inf else format_finite(value)


def difference_columns(comparison: Comparison, tested: SignificanceResults, metrics: Sequence[str]) -> list[Column]:
    """Return the columns of a table with a row for each test against the baseline, by row and metric.

    Args:
        comparison: the comparison.
        tested: the results of the tests.
        metrics: names of metrics.

    Returns:
        The columns; none if nothing was tested.
    """
    lines = []
    for row in comparison.rows:
        for metric in metrics:
            estimate = tested.rows.get(metric, {}).get(row.name)
            if estimate is not None and estimate.versus is not None:
                lines.append((row, metric, estimate.versus))
    signed = [(make_number_formatter(comparison, metric, sign="+"), each) for _, metric, each in lines]
    columns = [
        Column("run", [Cell(row_name(row)) for row, _, _ in lines], numeric=False),
        Column("metric", [Cell(metric_heading(comparison, metric)) for _, metric, _ in lines], numeric=False),
        Column(
            "difference",
            [
                Cell(format_number(each.difference), is_significant=each.is_significant)
                for format_number, each in signed
            ],
        ),
        Column(
            "95 % interval",
            [Cell(format_interval(each.low, each.high, format_number)) for format_number, each in signed],
        ),
    ]
    p_values = [_p_values(each) for _, _, each in lines]
    columns += [
        Column(kind, [Cell(format_p_value(each[kind]) if kind in each else EMPTY_CELL) for each in p_values])
        for kind in P_VALUE_COLUMNS
    ]
    people = [
        look_up_human_agreement(metric, metric_signature(comparison, metric), versus.difference)
        for _, metric, versus in lines
    ]
    columns.append(Column("people agree", [Cell(EMPTY_CELL if each is None else str(each)) for each in people]))
    shown_always = columns[:4] if lines else []  # an interval that is not given is seen not to be
    return [column for column in columns if column in shown_always or any(c.text != EMPTY_CELL for c in column.cells)]


def _p_values(difference: PairedDifference | SeedDifference) -> dict[str, float]:
    """The p-values of a test over segments, or of one over seeds and segments; and the one that decides, after Holm."""
    if isinstance(difference, SeedDifference):
        return {"p over seeds": difference.p, "p corrected": difference.p_holm}
    p_values = {"p bootstrap": difference.p_bootstrap, "p randomisation": difference.p_randomisation}
    return {**p_values, "p corrected": difference.p_holm}
