"""The page of `tfm compare --html`: figures, tests, and where systems differ, on one self-contained page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tfm.data.errors import format_count, format_names
from tfm.pipeline.artifacts.files import convert_os_errors, write_text_atomically
from tfm.pipeline.comparison.differences.html import (
    heading_cell,
    html_list,
    scrollable_table,
    table_cell,
    test_set_section,
)
from tfm.pipeline.comparison.differences.overview import SystemDifferences, find_differences
from tfm.pipeline.comparison.metric_tests import SignificanceResults
from tfm.pipeline.comparison.runs import Comparison
from tfm.pipeline.comparison.tables.columns import (
    Cell,
    Column,
    difference_columns,
    format_interval,
    make_number_formatter,
    metric_heading,
    row_name,
)
from tfm.pipeline.comparison.tables.legend import agreement_legend, legend_sentences
from tfm.pipeline.comparison.tables.settings import settings_columns
from tfm.pipeline.page_frame import escape_html, frame_page
from tfm.pipeline.runtime.progress import Reporter

PAGE_STYLE = """\
table { width: auto; }
.scroll { margin: 0.6rem 0 1.2rem; }
.scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--bar); outline-offset: 2px; }
th { vertical-align: bottom; } th, td { padding-right: 1.2rem; }
td:first-child { min-width: 4.5rem; max-width: 24rem; overflow-wrap: break-word; }
.names td:first-child { min-width: 9rem; }
.track { position: relative; width: 8rem; height: 1.5rem;
         background: linear-gradient(var(--faint), var(--faint)) center / 1px 100% no-repeat; }
.track div { position: absolute; top: 0.35rem; bottom: 0.35rem; background: var(--bar); border-radius: 2px; }
.track .more { left: 50%; } .track .less { right: 50%; }
ins { background: rgba(46, 160, 67, 0.25); text-decoration: underline; text-underline-offset: 0.2em; }
del { background: rgba(218, 54, 51, 0.22); text-decoration: underline dashed; text-underline-offset: 0.2em; }
summary { cursor: pointer; color: var(--faint); }
ul.notes { color: var(--faint); font-size: 0.85rem; padding-left: 1.2rem; overflow-wrap: anywhere; }
h1, h2, h3, .note, .sample dt { overflow-wrap: anywhere; }
@media (max-width: 32rem) {
  body { padding: 1rem; }
  .sample dl { grid-template-columns: 1fr; } .sample dt { margin-top: 0.4rem; }
}
"""
MAX_TITLE_LENGTH = 120
NO_OUTPUTS_MESSAGE = "where systems differ is not shown: {} has no translations or labels of a test set"


def write_page(file: Path, page: str) -> None:
    """Write a page: at every moment the file is whole, the old or the new. Raises WriteError."""
    with convert_os_errors(file):
        write_text_atomically(file, page)


def comparison_page(
    comparison: Comparison,
    tested: SignificanceResults,
    metrics: Sequence[str],
    main_columns: Sequence[Column],
    reporter: Reporter,
) -> str:
    """Return the page of a comparison that was tested by some metrics.

    Args:
        comparison: the comparison.
        tested: the results of the tests.
        metrics: names of metrics of the main test set.
        main_columns: the main table.
        reporter: shows progress.
    """
    tables = {"Figures": main_columns}
    if settings := settings_columns(comparison):
        tables[f"What differs from {comparison.baseline.name}"] = settings
    if interval := score_interval_columns(comparison, tested, metrics):
        tables[f"Scores on {tested.test}: {format_count(tested.num_segments, 'segment')}"] = interval
    if tests := difference_columns(comparison, tested, metrics):
        tables[f"Is the difference from {comparison.baseline.name} real?"] = tests
    rows = [comparison.baseline, *(row for row in comparison.rows if row is not comparison.baseline)]
    systems = {row.name: [tested.systems[run.name] for run in row.runs if run.name in tested.systems] for row in rows}
    differences = find_differences(systems, comparison.baseline.runs[0], reporter)
    sentences = [
        *legend_sentences(comparison, tested, metrics, main_columns),
        *agreement_legend(comparison, tested, metrics),
    ]
    notes = [*map(str, tested.looked_at), *comparison.notes, *tested.notes]
    notes += [] if differences else [NO_OUTPUTS_MESSAGE.format(comparison.baseline.name)]
    names = format_names((row.name for row in comparison.rows), max_chars=MAX_TITLE_LENGTH)
    return render_page(f"Comparison of {names}", tables, sentences, differences, notes)


def render_page(
    title: str,
    tables: Mapping[str, Sequence[Column]],
    sentences: Sequence[str],
    differences: Sequence[SystemDifferences],
    notes: Sequence[str],
) -> str:
    """Write the page; all text is escaped.

    Args:
        title: of the page.
        tables: those of a comparison, by their headings.
        sentences: the meaning of their marks, without full stop.
        differences: the differences between systems on each test set.
        notes: figures that do not compare, and why.

    Returns:
        HTML.
    """
    parts = []
    for name, columns in tables.items():
        heads = [heading_cell(each.heading, each.numeric) for each in columns]
        cells = ([table_cell(str(one), each.numeric, one.best) for one in each.cells] for each in columns)
        table = scrollable_table(name, heads, list(zip(*cells, strict=True)), has_row_names=True)
        parts += [f"<h2>{escape_html(name)}</h2>", table]
    parts += [html_list(sentences), "<h2>Notes</h2>" if notes else "", html_list(notes)]
    for test_differences in differences:
        parts += test_set_section(test_differences)
    return frame_page(title, "\n".join(part for part in parts if part), style=PAGE_STYLE)


def score_interval_columns(comparison: Comparison, tested: SignificanceResults, metrics: Sequence[str]) -> list[Column]:
    """Return the columns of a table with a row for each score of the main test set that is known by segment, by metric.

    Args:
        comparison: the comparison.
        tested: the results of the tests.
        metrics: names of metrics.

    Returns:
        The columns; none if no score is known by segment.
    """
    rows = [
        (metric_heading(comparison, metric), make_number_formatter(comparison, metric), row_name(row), estimate)
        for metric in metrics
        for row in comparison.rows
        if (estimate := tested.rows.get(metric, {}).get(row.name)) is not None
    ]
    columns = [
        Column("run", [Cell(name) for _, _, name, _ in rows], numeric=False),
        Column("metric", [Cell(metric) for metric, *_ in rows], numeric=False),
        Column("score", [Cell(shown(each.value)) for _, shown, _, each in rows]),
        Column("95 % interval", [Cell(format_interval(each.low, each.high, shown)) for _, shown, _, each in rows]),
    ]
    return columns if rows else []
