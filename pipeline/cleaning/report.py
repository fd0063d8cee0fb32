"""The report on a cleaning: a table, and the same with examples on one self-contained page."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfm.data.scripts import MIN_SCRIPT_SHARE, SPACELESS_SCRIPTS, letters_by_script
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.decisions import Decisions, RuleResult
from tfm.pipeline.cleaning.limits import Limit
from tfm.pipeline.cleaning.output import CleanTextSummary, RuleExample
from tfm.pipeline.errors import format_count
from tfm.pipeline.page_frame import escape_corpus_text, escape_html, frame_page

TABLE_COLUMNS = ("rule", "limit", "looked at", "alone", "after others", "changed")
CORPUS_COLUMNS = ("corpus", "read", "kept")


def rule_rows(results: Sequence[RuleResult]) -> list[list[object]]:
    """The rows of the table: a rule, its limits, and how many pairs it drops."""
    return [
        [
            result.name,
            describe_limits(result.limits),
            f"{result.measured:,}",
            "–" if result.changed is not None else f"{result.alone:,}",
            "–" if result.changed is not None else f"{result.dropped:,}",
            "–" if result.changed is None else f"{result.changed:,}",
        ]
        for result in results
    ]


def corpus_rows(text: CleanTextSummary, corpora: Sequence[str]) -> list[list[object]]:
    """The rows of the table of corpora: how many pairs each has, and how many stay."""
    counts = zip(corpora, text.read, text.kept, strict=True)
    return [[name, f"{read:,}", f"{kept:,}"] for name, read, kept in counts]


def describe_limits(limits: Sequence[Limit]) -> str:
    """The limits of a rule in a few signs: "≥ 0.5", "1 to 150"."""
    lows = [limit.low for limit in limits if limit.low is not None]
    highs = [limit.high for limit in limits if limit.high is not None]
    parts = f"{lows[0]:.4g} to {highs[0]:.4g}" if lows and highs else ""
    parts = parts or (f"≥ {lows[0]:.4g}" if lows else f"≤ {highs[0]:.4g}" if highs else "")
    percentiles = [f" (percentile {limit.percentile:g})" for limit in limits if limit.percentile is not None]
    return (parts + "".join(percentiles)).strip()


def summary_line(text: CleanTextSummary) -> str:
    """How many pairs stay, in a sentence."""
    num_read, num_kept = sum(text.read), sum(text.kept)
    share = f" ({num_kept / num_read:.1%})" if num_read else ""
    return f"{format_count(num_read, 'pair')} read, {num_kept:,} kept{share}"


def lost_corpus_warnings(decisions: Decisions, text: CleanTextSummary, corpora: Sequence[str]) -> list[str]:
    """Which corpora have no pair left, each with the rule that dropped most of it."""
    warnings, begin = [], 0
    for name, num_read, num_kept in zip(corpora, text.read, text.kept, strict=True):
        fates = decisions.dropped_by[begin : begin + num_read]
        begin += num_read
        if num_read and not num_kept:
            rule = decisions.results[int(np.bincount(fates).argmax()) - 1].name
            warnings.append(
                f"{name}: no pair is left of {format_count(num_read, 'pair')}, above all by the rule {rule}, "
                "so nothing is learned from this corpus"
            )
    return warnings


def nothing_left_problem(config: CleanConfig, decisions: Decisions, text: CleanTextSummary) -> str:
    """Why no pair is left: how many each rule dropped; and what to change.

    Args:
        config: the [clean] part of a recipe.
        decisions: the fate of each pair.
        text: the pairs that each rule dropped.
    """
    counts = ", ".join(f"{each.name}: {each.dropped:,}" for each in decisions.results if each.dropped)
    strictest = max(decisions.results, key=lambda each: each.dropped).name
    remedy = spaceless_warning(config, text) or f"change {strictest} in [clean], or give other texts"
    return f"no training pair is left; dropped: {counts}; {remedy}"


def spaceless_warning(config: CleanConfig, text: CleanTextSummary) -> str | None:
    """Why `length` or `ratio` should not count words: most of what it dropped is in a script without spaces.

    None if it is not, or where they count characters.
    """
    remedies = {
        "length": 'set clean.length.unit = "character", with min and max for these languages, or clean.length.min = 1',
        "ratio": 'set clean.ratio.unit = "character", with a max for these languages, or clean.ratio = "none"',
    }
    for name, remedy in remedies.items():
        rule, examples = getattr(config, name), text.examples.get(name, [])
        if rule is not None and rule.unit == "word" and 2 * sum(map(_has_spaceless_side, examples)) > len(examples):
            return (
                f"clean.{name} counts words between spaces, and most pairs that it dropped are in a script without "
                f"spaces, where a sentence is one word: {remedy}"
            )
    return None


def _has_spaceless_side(example: RuleExample) -> bool:
    return any(
        sum(letters[name] for name in SPACELESS_SCRIPTS) > MIN_SCRIPT_SHARE * letters.total()
        for letters in (letters_by_script([side]) for side in (example.source, example.target))
    )


def report_as_json(results: Sequence[RuleResult], text: CleanTextSummary, corpora: Sequence[str]) -> dict[str, Any]:
    """The contents of report.json."""
    return {
        "corpora": [
            {"corpus": name, "read": read, "kept": kept}
            for name, read, kept in zip(corpora, text.read, text.kept, strict=True)
        ],
        "rules": [
            {
                "rule": result.name,
                "limits": [_limit_as_json(limit) for limit in result.limits],
                "measured": result.measured,
                "alone": result.alone,
                "dropped": result.dropped,
                "changed": result.changed,
                "examples": [vars(example) for example in text.examples.get(result.name, [])],
            }
            for result in results
        ],
    }


def report_page(results: Sequence[RuleResult], text: CleanTextSummary, corpora: Sequence[str], *, is_dry: bool) -> str:
    """Return the report as an HTML page."""
    intro = "Nothing was written: each rule looked at every pair." if is_dry else (
        "“Alone”: pairs that a rule would drop by itself, of those that it looked at; “after others”: those that it "
        "dropped, of what the rules above it had left."
    )  # fmt: skip
    parts = [f"<p>{escape_html(summary_line(text))}. {intro}</p>", "<h2>Corpora</h2>"]
    parts.append(_table_html(CORPUS_COLUMNS, corpus_rows(text, corpora)))
    parts += ["<h2>Rules</h2>", _table_html(TABLE_COLUMNS, rule_rows(results))]
    for result in results:
        if examples := text.examples.get(result.name):
            action = "changed" if result.changed is not None else "dropped"
            parts.append(f"<h3>{escape_html(result.name)}: pairs that it {action}</h3>")
            parts += [_example_html(example, corpora[example.corpus]) for example in examples]
    return frame_page("Cleaning", "\n".join(parts))


def _limit_as_json(limit: Limit) -> dict[str, object]:
    values = {"low": limit.low, "high": limit.high, "percentile": limit.percentile}
    # a percentile of scores that are infinite is a limit that JSON has no number for
    numbers = {name: value for name, value in values.items() if value is not None and math.isfinite(value)}
    return {"score": limit.column, **numbers}


def _table_html(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{escape_html(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td{_cell_css_class(str(cell))}>{escape_html(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _cell_css_class(cell: str) -> str:
    return ' class="number"' if cell.replace(",", "").isdecimal() or cell == "–" else ""


def _example_html(example: RuleExample, corpus: str) -> str:
    scores = ", ".join(
        f"{name} {'–' if score is None or math.isnan(score) else f'{score:.4g}'}"
        for name, score in example.scores.items()
    )
    description = f"{corpus}, pair {example.pair:,}: {scores}"
    rows = [("source", example.source), ("target", example.target)]
    texts = "".join(f"<dt>{name}</dt><dd>{escape_corpus_text(text)}</dd>" for name, text in rows if text)
    return f'<div class="sample"><p>{escape_html(description)}</p><dl>{texts}</dl></div>'
