"""The analysis of a campaign: its answers to findings."""

import shlex
from collections.abc import Mapping, Sequence

from tfm.data.errors import format_count
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.judging.answer_tables import (
    choice_judgments,
    error_weight,
    judge_stats,
    list_judgments,
    list_preferences,
    make_error_counter,
    make_scale_reader,
    mean_of_scales,
    preferences_as_judgments,
)
from tfm.pipeline.judging.answers import Answer, sort_answers
from tfm.pipeline.judging.campaign import SCALE_RANGES, Campaign
from tfm.pipeline.judging.findings import ChoiceFindings, Findings, ScaleFindings, SystemPreference, SystemRating
from tfm.pipeline.judging.statistics.agreement import MeasurementLevel, estimate_alpha, pairwise_kappas
from tfm.pipeline.judging.statistics.careless import CarelessnessVerdict, judge_verdicts
from tfm.pipeline.judging.statistics.differences import difference_tests
from tfm.pipeline.judging.statistics.minimums import MIN_ERROR_SEGMENTS, MIN_SEGMENTS
from tfm.pipeline.judging.statistics.preferences import (
    Preference,
    bradley_terry_strengths,
    connected_groups,
    sign_tests,
    win_counts,
)
from tfm.pipeline.judging.statistics.ranks import contradiction_messages, rank_clusters_by_pairs, significant_pairs
from tfm.pipeline.judging.statistics.ratings import Judgment, mean_ratings, z_scores

MEASUREMENT_LEVELS: Mapping[str, MeasurementLevel] = {
    "adequacy": "ordinal",
    "fluency": "ordinal",
    "score": "interval",
    "errors": "interval",
}
"""The level of measurement of each scale, for agreement."""
LOWER_IS_BETTER_SCALES = ("errors",)
ERROR_SCALE = "errors"
"""Beside the scales of ESA: the weight of the errors marked."""


def analyze_answers(campaign: Campaign, answers: Sequence[Answer], excluded_judges: Sequence[str] = ()) -> Findings:
    """Every statistic of the answers but for correlations; of excluded judges only their conduct counts.

    The order of the answers changes nothing. Raises RecipeError if a judge to exclude did not answer, or if nobody is
    left.
    """
    answers = sort_answers(campaign, answers)
    names = list(dict.fromkeys(answer.judge for answer in answers))
    for name in excluded_judges:
        if name not in names:
            raise RecipeError(f"--without {name}: no such judge; answers are from {', '.join(names)}")
    counted_answers = [answer for answer in answers if answer.judge not in excluded_judges]
    if not any(answer.item.is_counted for answer in counted_answers):
        raise RecipeError("no answer on the systems is left: give more files, or fewer --without")
    values = _comparison_judgments(campaign, answers)
    judges = judge_verdicts(judge_stats(campaign, answers), values)
    scales = [
        _analyze_scale(name, list_judgments(counted_answers, make_scale_reader(name)))
        for name in SCALE_RANGES[campaign.kind]
    ]
    if campaign.kind == "esa":
        scales.append(_analyze_scale(ERROR_SCALE, list_judgments(counted_answers, error_weight)))
    errors = {
        f"{severity} errors": mean_ratings(
            list_judgments(counted_answers, make_error_counter(severity)), MIN_ERROR_SEGMENTS
        )
        for severity in ("minor", "major")
        if campaign.kind == "esa"
    }
    choices = None if scales else _analyze_choices(campaign, counted_answers)
    notes = [*_judge_warnings(judges, excluded_judges), *_scale_warnings(scales)]
    if choices is not None:
        order, basis = [each.strength.system for each in choices.systems], "strength, from every answer"
        tested = "the sign test, by the majority of each segment,"
        notes += contradiction_messages("preferences", order, significant_pairs(choices.tests), basis, tested)
        notes += _system_strength_warnings(choices, list_preferences(counted_answers, campaign.systems))
    return Findings(campaign, counted_answers, excluded_judges, judges, scales, errors, choices, notes)


def _comparison_judgments(campaign: Campaign, answers: Sequence[Answer]) -> list[Judgment]:
    """The values by which judges are compared: the mean of the scales, or what they preferred."""
    if SCALE_RANGES[campaign.kind]:
        return list_judgments(answers, mean_of_scales)
    return choice_judgments(campaign.kind, answers, campaign.systems)


def _analyze_scale(name: str, judgments: Sequence[Judgment]) -> ScaleFindings:
    standardized, constant_judges = z_scores(judgments)
    min_segments = MIN_ERROR_SEGMENTS if name == ERROR_SCALE else MIN_SEGMENTS
    raw, z = mean_ratings(judgments, min_segments), mean_ratings(standardized, min_segments)
    sign = _direction_sign(name)
    estimates = z if z.keys() == raw.keys() else raw
    order = sorted(raw, key=lambda system: -sign * estimates[system].value)
    tests = difference_tests(standardized, order, min_segments)
    places = rank_clusters_by_pairs(order, significant_pairs(tests, sign))
    ratings = [
        SystemRating(system, rank, raw[system], z.get(system), sum(each.system == system for each in judgments))
        for system, rank in zip(order, places, strict=True)
    ]
    level = MEASUREMENT_LEVELS[name]
    agreement = estimate_alpha(judgments, level), *pairwise_kappas(judgments, level)
    return ScaleFindings(name, sign < 0, ratings, tests, *agreement, standardized, constant_judges)


def _analyze_choices(campaign: Campaign, answers: Sequence[Answer]) -> ChoiceFindings:
    preferences = list_preferences(answers, campaign.systems)
    systems = [
        system for system in campaign.systems if any(system in (each.first, each.second) for each in preferences)
    ]
    strengths = bradley_terry_strengths(preferences, systems)
    order = [each.system for each in strengths]
    tests = sign_tests(preferences, order)
    places = rank_clusters_by_pairs(order, significant_pairs(tests))
    judgments = choice_judgments(campaign.kind, answers, campaign.systems)
    ranking = [SystemPreference(rank, each) for rank, each in zip(places, strengths, strict=True)]
    pairs = preferences_as_judgments(list_preferences([answer for answer in answers if answer.shown], campaign.systems))
    return ChoiceFindings(
        ranking, tests, estimate_alpha(judgments, "nominal"), *pairwise_kappas(judgments, "nominal"), pairs
    )


def _judge_warnings(judges: Sequence[CarelessnessVerdict], excluded_judges: Sequence[str]) -> list[str]:
    """Who is left out, who stopped early, and who seems careless."""
    messages = []
    for verdict in judges:
        conduct = verdict.conduct
        if conduct.judge in excluded_judges:
            messages.append(f"{conduct.judge} is left out (--without)")
            continue
        if conduct.num_answered < conduct.num_items:
            counts = "counts" if conduct.num_ties == 1 else "count"
            tied = format_count(conduct.num_ties, "tie")
            ties = f"; {tied} between equal texts, never shown, {counts} all the same"
            progress = f"{conduct.judge} answered {conduct.num_answered} of {format_count(conduct.num_items, 'item')}"
            messages.append(progress + ties if conduct.num_ties else progress)
        if verdict.reasons:
            messages.append(
                f"{conduct.judge} seems careless: {'; '.join(verdict.reasons)}. "
                f"The answers count; --without {shlex.quote(conduct.judge)} leaves them out"
            )
    return messages


def _scale_warnings(scales: Sequence[ScaleFindings]) -> list[str]:
    messages = [
        f"{scale.name}: {judge} gave one value only, and has no z-score: not in z, tests and correlations"
        for scale in scales
        for judge in scale.without_z
    ]
    for scale in scales:
        order, pairs = (
            [each.system for each in scale.systems],
            significant_pairs(scale.tests, _direction_sign(scale.name)),
        )
        basis, tested = "its mean over all of its segments", "the test, of z on the segments that both have,"
        messages += contradiction_messages(scale.name, order, pairs, basis, tested)
    return messages


def _direction_sign(scale: str) -> int:
    """1 where more is better, -1 where less is."""
    return -1 if scale in LOWER_IS_BETTER_SCALES else 1


def _system_strength_warnings(findings: ChoiceFindings, preferences: Sequence[Preference]) -> list[str]:
    """Notes on strengths that the data do not determine, since no or every comparison of some systems went one way."""
    systems = [each.strength.system for each in findings.systems]
    counts = win_counts(preferences, systems)[1].sum(0)
    components, clusters = connected_groups(counts, systems, "weak"), connected_groups(counts, systems, "strong")
    if len(components) > 1:
        return [f"never compared, so that no order between them follows: {_format_groups(components)}"]
    if len(clusters) > 1:
        return [
            f"in {_format_groups(clusters)} one group won every comparison with another: how far apart they are is not "
            "measured, only limited by the prior"
        ]
    return []


def _format_groups(groups_of_systems: Sequence[Sequence[str]]) -> str:
    return " | ".join(", ".join(group) for group in groups_of_systems)
