"""Automatic metrics on the texts that people judged, and how far they agree with the people."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from tfm.data.errors import format_count
from tfm.data.lines import open_lines
from tfm.pipeline.config import EvaluationConfig, EvaluationMetric
from tfm.pipeline.errors import DataError
from tfm.pipeline.judging.answer_tables import PAIR_SEPARATOR, segment_name
from tfm.pipeline.judging.campaign import Campaign
from tfm.pipeline.judging.findings import Findings
from tfm.pipeline.judging.statistics.correlation import (
    MetricCorrelation,
    MetricScores,
    correlate_metric,
    metric_scores,
    pair_differences,
    reference_columns,
)
from tfm.pipeline.judging.statistics.ratings import NUM_DRAWS, JudgedUnit, Judgment, segment_means
from tfm.pipeline.scoring.metrics.bleu_tokenizer import resolve_tokenizer
from tfm.pipeline.scoring.metrics.inapplicable_metrics import inapplicable_metrics

CORRELATED_METRICS: tuple[EvaluationMetric, ...] = (
    *("bleu", "chrf", "chrf++", "ter"),
    *("rouge1", "rouge2", "rougeL", "meteor", "cider_d", "exact_match"),
)
NO_REFERENCES_WARNING = "the campaign has no references, so there are no{} metrics beside the judges: give --reference"
MIN_CORRELATED_SYSTEMS = 5
PREFERENCE_SCALE = "preference"


def campaign_references(campaign: Campaign) -> dict[str, Sequence[str]]:
    """The references of each segment that has any in the campaign."""
    return {segment_name(item): item.references for item in campaign.items if item.is_counted and item.references}


def read_references(campaign: Campaign, file: Path) -> dict[str, Sequence[str]]:
    """The reference of each segment from the lines of a file. Raises DataError if lines or test sets do not fit."""
    items = [item for item in campaign.items if item.is_counted]
    tests = list(dict.fromkeys(item.test for item in items))
    if len(tests) > 1:
        raise DataError(f"the campaign is of several test sets ({', '.join(tests)}): its lines name none", file=file)
    lines = list(open_lines(file))
    if campaign.num_lines is not None and len(lines) != campaign.num_lines:
        num_lines = format_count(len(lines), "line")
        raise DataError(f"has {num_lines}, but the test set {tests[0]} has {campaign.num_lines:,}", file=file)
    last = max((item.line for item in items), default=0)
    if last > len(lines):
        num_lines = format_count(len(lines), "line")
        raise DataError(f"has {num_lines}, but the campaign has line {last} of {tests[0]}", file=file)
    return {segment_name(item): [lines[item.line - 1]] for item in items}


def add_correlations(
    findings: Findings,
    references: Mapping[str, Sequence[str]],
    config: EvaluationConfig,
    recorded_metrics: Mapping[str, MetricScores] = {},
    on_done: Callable[[str], None] = lambda metric: None,
    num_draws: int = NUM_DRAWS,
) -> Findings:
    """The findings with the correlations of metrics with the judges; notes say what is missing.

    The metrics are those of `config`, where there are references by segment, and those in `recorded_metrics`.
    """
    texts = {unit: text for unit, text in judged_texts(findings).items() if unit[0] in references}
    notes = (
        list(findings.notes)
        if texts
        else [*findings.notes, NO_REFERENCES_WARNING.format(" other" if recorded_metrics else "")]
    )
    columns = reference_columns([references[segment] for segment, _ in texts])
    config = resolve_tokenizer(config, columns)
    lines = {segment_name(answer.item): answer.item.line for answer in findings.answers}
    missing = inapplicable_metrics(list(texts.values()), columns, config, [lines[segment] for segment, _ in texts])
    notes += [f"{metric}: {reason}" for metric, reason in missing.items()]
    correlations: dict[str, list[MetricCorrelation]] = {}
    for metric in (*(config.metrics if texts else ()), *recorded_metrics):
        if metric not in missing:
            scores = (
                recorded_metrics[metric]
                if metric in recorded_metrics
                else metric_scores(metric, texts, references, config)
            )
            for name, human, systems, pairs in _human_scores(findings):
                of_units = replace(scores, by_unit=pair_differences(scores.by_unit, pairs)) if pairs else scores
                correlations.setdefault(name, []).append(correlate_metric(metric, of_units, human, systems, num_draws))
        on_done(metric)
    num = max((each.num_systems for some in correlations.values() for each in some), default=0)
    if 0 < num < MIN_CORRELATED_SYSTEMS:
        system_count = format_count(num, "system")
        notes.append(
            f"correlations by system are of {system_count}: with fewer than {MIN_CORRELATED_SYSTEMS} they mean little"
        )
    return replace(findings, correlations=correlations, notes=notes)


def judged_texts(findings: Findings) -> dict[JudgedUnit, str]:
    """Every text that was judged, by segment and system."""
    return {
        (segment_name(answer.item), shown_text.system): shown_text.text
        for answer in findings.answers
        if answer.item.is_counted
        for shown_text in answer.item.shown
        if shown_text.system is not None
    }


class HumanScores(NamedTuple):
    """Judgments of people on one scale, more being better."""

    scale: str
    by_unit: Mapping[JudgedUnit, float]
    by_system: Mapping[str, float]
    system_pairs: Mapping[str, tuple[str, str]]
    """The two systems of each name in `by_unit`, where units are of pairs."""


def _human_scores(findings: Findings) -> list[HumanScores]:
    """The judgments of people on each scale, and their preferences between two systems."""
    human_scores: list[HumanScores] = []
    for scale in findings.scales:
        sign = -1 if scale.lower_is_better else 1
        systems = {each.system: sign * each.z.value for each in scale.systems if each.z is not None}
        human_scores.append(HumanScores(scale.name, _unit_means(scale.z_scores, sign), systems, {}))
    if findings.choices is not None:
        names = findings.campaign.systems
        pairs = {PAIR_SEPARATOR.join(pair): pair for pair in permutations(names, 2)}
        strengths = {each.strength.system: each.strength.value for each in findings.choices.systems}
        human_scores.append(HumanScores(PREFERENCE_SCALE, _unit_means(findings.choices.pairs, 1), strengths, pairs))
    return human_scores


def _unit_means(judgments: Sequence[Judgment], sign: int) -> dict[JudgedUnit, float]:
    return {
        (segment, system): sign * value
        for system, segments in segment_means(judgments).items()
        for segment, value in segments.items()
    }
