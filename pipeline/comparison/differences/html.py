"""The differences between systems as HTML: tables with bars, and sentences with marks. All text is escaped."""

from collections.abc import Sequence

from tfm.pipeline.comparison.differences.breakdowns import Breakdown, BreakdownRow
from tfm.pipeline.comparison.differences.changed_sentences import SentenceChange, SentenceChanges, TextSpan
from tfm.pipeline.comparison.differences.overview import SystemDifferences
from tfm.pipeline.page_frame import escape_corpus_text, escape_html

MIN_BAR_SCALE = 1.0
"""The difference, in points, for which half a bar stands at least: noise shall not look large."""
EMPTY_CELL = "–"
NUMBER_CLASS_ATTRIBUTE = ' class="number"'


def test_set_section(differences: SystemDifferences) -> list[str]:
    """The section of a test set: its tables, and its sentences that changed most."""
    title = "Where they differ" if len(differences.columns) > 1 else "In detail"
    parts = [f"<h2>{title}: {bidi_isolate(differences.test)}</h2>", html_list(differences.notes)]
    for table in (*differences.tables, *differences.words[:1]):
        parts += [f"<h3>{escape_html(table.title)}</h3>", _breakdown_table(table, differences.columns)]
    if differences.words:
        tables = [
            f"<h3>{escape_html(table.title)}</h3>{_breakdown_table(table, differences.columns)}"
            for table in differences.words[1:]
        ]
        parts.append(f"<details><summary>Precision and recall of words</summary>{''.join(tables)}</details>")
    for name, changes in differences.changes.items():
        parts += _changes_section(differences, name, changes)
    return parts


def _breakdown_table(breakdown: Breakdown, columns: Sequence[str]) -> str:
    """The baseline's figure and, of each other system, its own, the difference, and a bar of that."""
    has_counts = any(row.count is not None for row in breakdown.rows)
    heads = [heading_cell(breakdown.rows_are), *([heading_cell(breakdown.counts_are, True)] if has_counts else [])]
    heads.append(f'<th class="number">{bidi_isolate(columns[0])}</th>')
    for name in columns[1:]:
        heads += [f'<th class="number">{bidi_isolate(name)}</th>', heading_cell("difference", True), "<th></th>"]
    scale = max(
        [
            MIN_BAR_SCALE,
            *(abs(each) for row in breakdown.rows for each in _differences_from_first(row) if each is not None),
        ]
    )
    rows = []
    for row in breakdown.rows:
        cells = [
            table_cell(row.name, False),
            *([table_cell("" if row.count is None else f"{row.count:,}")] if has_counts else []),
        ]
        cells.append(table_cell(_format_value(row.values[0])))
        for value, difference in zip(row.values[1:], _differences_from_first(row), strict=True):
            cells += [
                table_cell(_format_value(value)),
                table_cell(_format_value(difference, "+")),
                _difference_bar(difference, scale),
            ]
        rows.append(cells)
    return scrollable_table(breakdown.title, heads, rows)


def _differences_from_first(row: BreakdownRow) -> list[float | None]:
    """The difference of each system from the first, where both have a value."""
    first, *rest = row.values
    return [None if first is None or each is None else each - first for each in rest]


def _format_value(value: float | None, sign: str = "") -> str:
    return EMPTY_CELL if value is None else f"{value:{sign}.2f}"


def _difference_bar(difference: float | None, scale: float) -> str:
    """A bar to the right for a gain, to the left for a loss."""
    if difference is None:
        return "<td></td>"
    side = "more" if difference > 0 else "less"
    width = 50 * abs(difference) / scale
    return f'<td><div class="track"><div class="{side}" style="width: {width:.1f}%"></div></div></td>'


def _changes_section(differences: SystemDifferences, name: str, changes: SentenceChanges) -> list[str]:
    """The numbers of segments that are better and worse, and the segments that changed most."""
    base = differences.columns[0]
    parts = [
        f"<h3>Sentences: {bidi_isolate(base)} and {bidi_isolate(name)}</h3>",
        f'<p class="note">Segments by {changes.metric_name}: better in {bidi_isolate(name)} {changes.num_better:,}, '
        f"worse {changes.num_worse:,}, as good but not the same {changes.num_as_good:,}, "
        f"the same {changes.num_same:,}.</p>",
    ]
    for title, sentences in (("Gained most", changes.gained), ("Lost most", changes.lost)):
        if sentences:
            parts += [
                f"<h4>{title}</h4>",
                *(_sentence_html(each, base, name, changes.metric_name) for each in sentences),
            ]
    return parts


def _sentence_html(change: SentenceChange, baseline_name: str, name: str, metric: str) -> str:
    """One segment as both have it; a language that runs from right to left reads from its own side (dir=auto)."""
    entries = [] if change.source is None else [("source", escape_corpus_text(change.source))]
    entries.append((bidi_isolate(baseline_name), _highlight_spans(change.before, "del")))
    entries.append((bidi_isolate(name), _highlight_spans(change.after, "ins")))
    entries += [("reference", escape_corpus_text(text)) for text in change.references]
    inner = "".join(f'<dt>{title}</dt><dd dir="auto">{text}</dd>' for title, text in entries)
    before, after = change.scores
    heading = f"line {change.line:,}, {metric} {before:.1f} → {after:.1f} ({change.gain:+.1f})"
    return f'<div class="sample"><p>{heading}</p><dl>{inner}</dl></div>'


def _highlight_spans(spans: Sequence[TextSpan], tag: str) -> str:
    texts = ((escape_corpus_text(each.text), each.differs) for each in spans)
    return "".join(f"<{tag}>{text}</{tag}>" if differs else text for text, differs in texts)


def html_list(notes: Sequence[str]) -> str:
    """Small print, line by line."""
    inner = "".join(f"<li>{escape_html(each)}</li>" for each in notes)
    return f'<ul class="notes">{inner}</ul>' if notes else ""


def scrollable_table(
    name: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, has_row_names: bool = False
) -> str:
    """Return a table of whole cells, in a box of its own that scrolls, also by keyboard.

    Args:
        name: of the box, for screen readers.
        heads: the cells of the head, as HTML.
        rows: the cells of each row, as HTML.
        has_row_names: whether the first cells are names.
    """
    kind = ' class="names"' if has_row_names else ""
    lines = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape_html(name)}">'
        f"<table{kind}><tr>{''.join(heads)}</tr>\n{lines}</table></div>"
    )


def heading_cell(text: str, is_number: bool = False) -> str:
    """The heading of a column."""
    return f"<th{NUMBER_CLASS_ATTRIBUTE if is_number else ''}>{escape_html(text)}</th>"


def table_cell(text: str, is_number: bool = True, best: bool = False) -> str:
    """Return the cell of a number, to the right, or of a text.

    Args:
        text: the number or text.
        is_number: whether it is a number.
        best: whether it is the best of its column, which is bold.
    """
    content = escape_html(text) if is_number else bidi_isolate(text)
    return f"<td{NUMBER_CLASS_ATTRIBUTE if is_number else ''}>{f'<strong>{content}</strong>' if best else content}</td>"


def bidi_isolate(text: str) -> str:
    """A name, whose direction changes nothing around it."""
    return f"<bdi>{escape_html(text)}</bdi>"
