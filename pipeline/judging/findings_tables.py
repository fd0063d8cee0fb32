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
    error_means = findings.errors if scale.lower_is_better else {}
    columns = ["rank", "system", "mean", "95 %", "z", "95 % of z", *error_means, "segments", "ratings"]
    rows = [
        [
            str(system.rank),
            system.system,
            _format_number(system.mean.value),
            _format_estimate_interval(system.mean),
            _format_number(None if system.z is None else system.z.value),
            _format_estimate_interval(system.z),
            *(_format_number(means[system.system].value) for means in error_means.values()),
            str(system.mean.num_segments),
            str(system.num_ratings),
        ]
        for system in scale.systems
    ]
    ends = SCALE_RANGES[findings.campaign.kind].get(scale.name)
    scale_range = f"{ends[0]} to {ends[1]}" if ends else "minor 1, major 5; lower is better"
    return FindingsTable(f"{scale.name} ({scale_range})", columns, rows)


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
    for rank, strength in ((each.rank, each.strength) for each in choices.systems):
        num = strength.won + strength.tied + strength.lost
        share = f"{100 * (strength.won + strength.tied / 2) / num:.1f} %" if num else EMPTY_CELL
        counts = (str(count) for count in (strength.won, strength.tied, strength.lost))
        rows.append(
            [
                str(rank),
                strength.system,
                _format_number(strength.value),
                _format_interval(strength.low, strength.high),
                share,
                *counts,
            ]
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
    sections: list[tuple[str, ScaleFindings | ChoiceFindings]] = [(each.name, each) for each in findings.scales]
    if findings.choices is not None:
        sections.append(("preferences", findings.choices))
    rows = []
    for name, section in sections:
        values = [kappa.value for kappa in section.kappas if kappa.value is not None]
        ends = (min(values), max(values)) if values else (None, None)
        alpha = [_format_number(section.alpha.value), _format_estimate_interval(section.alpha), section.alpha.level]
        counts = [str(section.alpha.num_units), str(section.alpha.num_values)]
        kappas = [
            _format_number(section.mean_kappa.value),
            _format_estimate_interval(section.mean_kappa),
            *map(_format_number, ends),
            str(len(values)),
        ]
        rows.append([name, *alpha, *counts, *kappas])
    return FindingsTable("agreement (Krippendorff's alpha, Cohen's kappa)", columns, rows)


def _correlations_table(name: str, correlations: Sequence[MetricCorrelation]) -> FindingsTable:
    columns = ("metric", "tau", "95 % of tau", "r", "95 % of r", "units", "tau by system", "r by system", "systems")
    rows = [
        [
            metric_label(correlation.metric, correlation.signature).removesuffix(" ↓"),
            _format_number(correlation.kendall.value),
            _format_estimate_interval(correlation.kendall),
            _format_number(correlation.pearson.value),
            _format_estimate_interval(correlation.pearson),
            str(correlation.num_units),
            _format_number(correlation.system_kendall),
            _format_number(correlation.system_pearson),
            str(correlation.num_systems),
        ]
        for correlation in correlations
    ]
    return FindingsTable(
        f"{name}: correlation of metrics with the judges (Kendall's tau-b, Pearson's r)", columns, rows
    )


def _missing_intervals_table(findings: Findings) -> FindingsTable:
    """Which intervals are not given, and why; figures that are not defined are left out."""
    names_by_reason: dict[tuple[str, str, str], list[str]] = {}
    for scale, figure, name, reason in _missing_statistics(findings):
        if reason is not None and reason != UNDEFINED_REASON:
            names_by_reason.setdefault((scale, figure, reason), []).append(name)
    rows = [
        [scale, figure, ", ".join(filter(None, names)), reason]
        for (scale, figure, reason), names in names_by_reason.items()
    ]
    return FindingsTable("intervals of 95 % that are not given", ("scale", "figure", "of", "why"), rows)


def _missing_statistics(findings: Findings) -> Iterator[tuple[str, str, str, str | None]]:
    """List the intervals of the tables: scale, figure, subject, and the reason if it is missing, or None."""
    parts: list[tuple[str, ScaleFindings | ChoiceFindings]] = [(scale.name, scale) for scale in findings.scales]
    for scale in findings.scales:
        for rating in scale.systems:
            yield scale.name, "mean", rating.system, rating.mean.no_interval_reason
            if rating.z is not None:
                yield scale.name, "z", rating.system, rating.z.no_interval_reason
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
        for correlation in correlations:
            yield name, "tau", correlation.metric, correlation.kendall.no_interval_reason
            yield name, "r", correlation.metric, correlation.pearson.no_interval_reason


def _format_number(value: float | None) -> str:
    return EMPTY_CELL if value is None else f"{value:.2f}"


def _format_estimate_interval(estimate: MeanRating | Estimate | KrippendorffAlpha | None) -> str:
    return EMPTY_CELL if estimate is None else _format_interval(estimate.low, estimate.high)


def _format_interval(low: float | None, high: float | None) -> str:
    return EMPTY_CELL if low is None or high is None else f"{low:.2f} to {high:.2f}"


def _format_share(has_passed: Sequence[bool]) -> str:
    return f"{has_passed.count(True)} of {len(has_passed)}" if has_passed else EMPTY_CELL
