"""The findings of a campaign, as tables for people."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tfm.pipeline.judging.campaign import SCALE_RANGES
from tfm.pipeline.judging.findings import ChoiceFindings, Findings, ScaleFindings
from tfm.pipeline.judging.statistics.agreement import KrippendorffAlpha
from tfm.pipeline.judging.statistics.correlation import MetricCorrelation
from tfm.pipeline.judging.statistics.minimums import UNDEFINED_REASON
from tfm.pipeline.judging.statistics.ratings import Estimate, MeanRating
from tfm.pipeline.reports.evaluation_report import metric_label
from tfm.pipeline.significance.holm import format_p_value

EMPTY_CELL = "–"


class FindingsTable(NamedTuple):
    """A title, headings, and rows of text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables_of_findings(findings: Findings) -> Iterator[FindingsTable]:
    """All tables: systems, tests, judges, agreement, metrics beside the judges, intervals that are not given."""
    for scale in findings.scales:
        yield _scale_table(findings, scale)
        if scale.tests:
            yield _scale_tests_table(scale)
    if findings.choices is not None:
        yield _choices_table(findings.choices)
        yield _choice_tests_table(findings.choices)
    yield _judges_table(findings)
    yield _agreement_table(findings)
    for name, correlations in findings.correlations.items():
        yield _correlations_table(name, correlations)
    missing = _missing_intervals_table(findings)
    if missing.rows:
        yield missing


def _scale_table(findings: Findings, scale: ScaleFindings) -> FindingsTable:
    """Systems on a scale; of the errors of ESA also how many there are."""
    more = findings.errors if scale.lower_is_better else {}
    columns = ["rank", "system", "mean", "95 %", "z", "95 % of z", *more, "segments", "ratings"]
    rows = [
        [
            str(each.rank),
            each.system,
            _format_number(each.mean.value),
            _format_estimate_interval(each.mean),
            _format_number(None if each.z is None else each.z.value),
            _format_estimate_interval(each.z),
            *(_format_number(by[each.system].value) for by in more.values()),
            str(each.mean.num_segments),
            str(each.num_ratings),
        ]
        for each in scale.systems
    ]
    ends = SCALE_RANGES[findings.campaign.kind].get(scale.name)
    about = f"{ends[0]} to {ends[1]}" if ends else "minor 1, major 5; lower is better"
    return FindingsTable(f"{scale.name} ({about})", columns, rows)


def _scale_tests_table(scale: ScaleFindings) -> FindingsTable:
    columns = ("first", "second", "difference of z", "95 %", "test", "segments", "p", "p corrected", "significant")
    rows = [
        [
            test.first,
            test.second,
            _format_number(test.difference),
            _format_interval(test.low, test.high),
            "paired" if test.paired else "unpaired",
            str(test.num_first) if test.paired else f"{test.num_first} + {test.num_second}",
            format_p_value(test.p),
            format_p_value(test.p_holm),
            "yes" if test.is_significant else "no",
        ]
        for test in scale.tests
    ]
    return FindingsTable(
        f"{scale.name}: differences (approximate randomisation; unpaired: permutation test)", columns, rows
    )


def _choices_table(choices: ChoiceFindings) -> FindingsTable:
    columns = ("rank", "system", "strength", "95 %", "preferred", "won", "tied", "lost")
    rows = []
    for rank, each in ((each.rank, each.strength) for each in choices.systems):
        num = each.won + each.tied + each.lost
        share = f"{100 * (each.won + each.tied / 2) / num:.1f} %" if num else EMPTY_CELL
        counts = (str(count) for count in (each.won, each.tied, each.lost))
        rows.append(
            [str(rank), each.system, _format_number(each.value), _format_interval(each.low, each.high), share, *counts]
        )
    return FindingsTable("preferences (Bradley and Terry; ties are half a win)", columns, rows)


def _choice_tests_table(choices: ChoiceFindings) -> FindingsTable:
    strength = {each.strength.system: each.strength.value for each in choices.systems}
    columns = ("first", "second", "chance of first", "won", "tied", "lost", "p", "p corrected", "significant")
    rows = [
        [
            test.first,
            test.second,
            f"{100 / (1 + math.exp(strength[test.second] - strength[test.first])):.1f} %",
            *(str(count) for count in (test.won, test.tied, test.lost)),
            format_p_value(test.p),
            format_p_value(test.p_holm),
            "yes" if test.is_significant else "no",
        ]
        for test in choices.tests
    ]
    return FindingsTable("preferences: sign tests over segments", columns, rows)


def _judges_table(findings: Findings) -> FindingsTable:
    columns = ("judge", "answered", "of", "checks passed", "repeats alike", "r with others", "seconds", "careless?")
    rows = []
    for verdict in findings.judges:
        conduct = verdict.conduct
        left_out = "left out" if conduct.judge in findings.without else "yes" if verdict.reasons else ""
        rows.append(
            [
                conduct.judge,
                str(conduct.num_answered),
                str(conduct.num_items),
                _format_share(conduct.checks),
                _format_share(conduct.repeats),
                _format_number(verdict.correlation),
                EMPTY_CELL if conduct.median_seconds is None else f"{conduct.median_seconds:.1f}",
                left_out,
            ]
        )
    return FindingsTable("judges", columns, rows)


def _agreement_table(findings: Findings) -> FindingsTable:
    columns = ("of", "alpha", "95 %", "level", "units", "values", "mean kappa", "95 %", "from", "to", "pairs")
    found: list[tuple[str, ScaleFindings | ChoiceFindings]] = [(each.name, each) for each in findings.scales]
    if findings.choices is not None:
        found.append(("preferences", findings.choices))
    rows = []
    for name, of in found:
        values = [kappa.value for kappa in of.kappas if kappa.value is not None]
        ends = (min(values), max(values)) if values else (None, None)
        alpha = [_format_number(of.alpha.value), _format_estimate_interval(of.alpha), of.alpha.level]
        counts = [str(of.alpha.num_units), str(of.alpha.num_values)]
        kappas = [
            _format_number(of.mean_kappa.value),
            _format_estimate_interval(of.mean_kappa),
            *map(_format_number, ends),
            str(len(values)),
        ]
        rows.append([name, *alpha, *counts, *kappas])
    return FindingsTable("agreement (Krippendorff's alpha, Cohen's kappa)", columns, rows)


def _correlations_table(name: str, correlations: Sequence[MetricCorrelation]) -> FindingsTable:
    columns = ("metric", "tau", "95 % of tau", "r", "95 % of r", "units", "tau by system", "r by system", "systems")
    rows = [
        [
            metric_label(each.metric, each.signature).removesuffix(" ↓"),
            _format_number(each.kendall.value),
            _format_estimate_interval(each.kendall),
            _format_number(each.pearson.value),
            _format_estimate_interval(each.pearson),
            str(each.num_units),
            _format_number(each.system_kendall),
            _format_number(each.system_pearson),
            str(each.num_systems),
        ]
        for each in correlations
    ]
    return FindingsTable(
        f"{name}: correlation of metrics with the judges (Kendall's tau-b, Pearson's r)", columns, rows
    )


def _missing_intervals_table(findings: Findings) -> FindingsTable:
    """Which intervals are not given, and why; figures that are not defined are left out."""
    of: dict[tuple[str, str, str], list[str]] = {}
    for scale, figure, name, reason in _missing_statistics(findings):
        if reason is not None and reason != UNDEFINED_REASON:
            of.setdefault((scale, figure, reason), []).append(name)
    rows = [[scale, figure, ", ".join(filter(None, names)), why] for (scale, figure, why), names in of.items()]
    return FindingsTable("intervals of 95 % that are not given", ("scale", "figure", "of", "why"), rows)


def _missing_statistics(findings: Findings) -> Iterator[tuple[str, str, str, str | None]]:
    """Each interval of the tables: its scale, figure and of what it is, and why it is not given, or None."""
    parts: list[tuple[str, ScaleFindings | ChoiceFindings]] = [(scale.name, scale) for scale in findings.scales]
    for scale in findings.scales:
        for rated in scale.systems:
            yield scale.name, "mean", rated.system, rated.mean.no_interval_reason
            if rated.z is not None:
                yield scale.name, "z", rated.system, rated.z.no_interval_reason
        for test in scale.tests:
            yield scale.name, "difference", f"{test.first} - {test.second}", test.no_interval_reason
    if findings.choices is not None:
        parts.append(("preferences", findings.choices))
        for strength in (each.strength for each in findings.choices.systems):
            yield "preferences", "strength", strength.system, strength.no_interval_reason
    for name, part in parts:
        yield name, "alpha", "", part.alpha.no_interval_reason
        yield name, "mean kappa", "", part.mean_kappa.no_interval_reason
    for name, correlations in findings.correlations.items():
        for each in correlations:
            yield name, "tau", each.metric, each.kendall.no_interval_reason
            yield name, "r", each.metric, each.pearson.no_interval_reason


def _format_number(value: float | None) -> str:
    return EMPTY_CELL if value is None else f"{value:.2f}"


def _format_estimate_interval(estimate: MeanRating | Estimate | KrippendorffAlpha | None) -> str:
    return EMPTY_CELL if estimate is None else _format_interval(estimate.low, estimate.high)


def _format_interval(low: float | None, high: float | None) -> str:
    return EMPTY_CELL if low is None or high is None else f"{low:.2f} to {high:.2f}"


def _format_share(passed: Sequence[bool]) -> str:
    return f"{passed.count(True)} of {len(passed)}" if passed else EMPTY_CELL
