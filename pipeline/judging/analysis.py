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
    """Every statistic of the answers but for correlations; of the judges in `without` only their conduct is told.

    The order of the answers changes nothing. Raises RecipeError if `without` names a judge who did not answer, or
    leaves nobody.
    """
    answers = sort_answers(campaign, answers)
    names = list(dict.fromkeys(answer.judge for answer in answers))
    for name in excluded_judges:
        if name not in names:
            raise RecipeError(f"--without {name}: no such judge; answers are from {', '.join(names)}")
    used = [answer for answer in answers if answer.judge not in excluded_judges]
    if not any(answer.item.is_counted for answer in used):
        raise RecipeError("no answer is left that says something of the systems: give more files, or fewer --without")
    values = _comparison_judgments(campaign, answers)
    judges = judge_verdicts(judge_stats(campaign, answers), values)
    scales = [
        _analyze_scale(name, list_judgments(used, make_scale_reader(name))) for name in SCALE_RANGES[campaign.kind]
    ]
    if campaign.kind == "esa":
        scales.append(_analyze_scale(ERROR_SCALE, list_judgments(used, error_weight)))
    errors = {
        f"{severity} errors": mean_ratings(list_judgments(used, make_error_counter(severity)), MIN_ERROR_SEGMENTS)
        for severity in ("minor", "major")
        if campaign.kind == "esa"
    }
    preferred = None if scales else _analyze_choices(campaign, used)
    notes = [*_judge_warnings(judges, excluded_judges), *_scale_warnings(scales)]
    if preferred is not None:
        order, by = [each.strength.system for each in preferred.systems], "strength, from every answer"
        tested = "the sign test, by the majority of each segment,"
        notes += contradiction_messages("preferences", order, significant_pairs(preferred.tests), by, tested)
        notes += _system_strength_warnings(preferred, list_preferences(used, campaign.systems))
    return Findings(campaign, used, excluded_judges, judges, scales, errors, preferred, notes)


def _comparison_judgments(campaign: Campaign, answers: Sequence[Answer]) -> list[Judgment]:
    """The values by which judges are compared: the mean of the scales, or what they preferred."""
    if SCALE_RANGES[campaign.kind]:
        return list_judgments(answers, mean_of_scales)
    return choice_judgments(campaign.kind, answers, campaign.systems)


def _analyze_scale(name: str, judgments: Sequence[Judgment]) -> ScaleFindings:
    standardized, unvaried = z_scores(judgments)
    fewest = MIN_ERROR_SEGMENTS if name == ERROR_SCALE else MIN_SEGMENTS
    raw, z = mean_ratings(judgments, fewest), mean_ratings(standardized, fewest)
    sign = _direction_sign(name)
    by = z if z.keys() == raw.keys() else raw
    order = sorted(raw, key=lambda system: -sign * by[system].value)
    tests = difference_tests(standardized, order, fewest)
    places = rank_clusters_by_pairs(order, significant_pairs(tests, sign))
    rated = [
        SystemRating(system, rank, raw[system], z.get(system), sum(each.system == system for each in judgments))
        for system, rank in zip(order, places, strict=True)
    ]
    level = MEASUREMENT_LEVELS[name]
    agreed = estimate_alpha(judgments, level), *pairwise_kappas(judgments, level)
    return ScaleFindings(name, sign < 0, rated, tests, *agreed, standardized, unvaried)


def _analyze_choices(campaign: Campaign, answers: Sequence[Answer]) -> ChoiceFindings:
    given = list_preferences(answers, campaign.systems)
    met = [system for system in campaign.systems if any(system in (each.first, each.second) for each in given)]
    found = bradley_terry_strengths(given, met)
    order = [each.system for each in found]
    tests = sign_tests(given, order)
    places = rank_clusters_by_pairs(order, significant_pairs(tests))
    chosen = choice_judgments(campaign.kind, answers, campaign.systems)
    preferred = [SystemPreference(rank, each) for rank, each in zip(places, found, strict=True)]
    pairs = preferences_as_judgments(list_preferences([answer for answer in answers if answer.shown], campaign.systems))
    return ChoiceFindings(
        preferred, tests, estimate_alpha(chosen, "nominal"), *pairwise_kappas(chosen, "nominal"), pairs
    )


def _judge_warnings(judges: Sequence[CarelessnessVerdict], excluded_judges: Sequence[str]) -> list[str]:
    """Who is left out, who stopped early, and who seems careless."""
    found = []
    for verdict in judges:
        conduct = verdict.conduct
        if conduct.judge in excluded_judges:
            found.append(f"{conduct.judge} is left out (--without)")
            continue
        if conduct.num_answered < conduct.num_items:
            counts = "counts" if conduct.num_ties == 1 else "count"
            tied = format_count(conduct.num_ties, "tie")
            ties = f"; {tied} between equal texts, never shown, {counts} all the same"
            said = f"{conduct.judge} answered {conduct.num_answered} of {format_count(conduct.num_items, 'item')}"
            found.append(said + ties if conduct.num_ties else said)
        if verdict.reasons:
            found.append(
                f"{conduct.judge} seems careless: {'; '.join(verdict.reasons)}. "
                f"The answers count; --without {shlex.quote(conduct.judge)} leaves them out"
            )
    return found


def _scale_warnings(scales: Sequence[ScaleFindings]) -> list[str]:
    found = [
        f"{scale.name}: {judge} gave one value only, and has no z-score: not in z, tests and correlations"
        for scale in scales
        for judge in scale.without_z
    ]
    for scale in scales:
        order, better = (
            [each.system for each in scale.systems],
            significant_pairs(scale.tests, _direction_sign(scale.name)),
        )
        by, tested = "its mean over all of its segments", "the test, of z on the segments that both have,"
        found += contradiction_messages(scale.name, order, better, by, tested)
    return found


def _direction_sign(scale: str) -> int:
    """1 where more is better, -1 where less is."""
    return -1 if scale in LOWER_IS_BETTER_SCALES else 1


def _system_strength_warnings(findings: ChoiceFindings, preferences: Sequence[Preference]) -> list[str]:
    """Notes on strengths that the data do not determine, since no or every comparison of some systems went one way."""
    systems = [each.strength.system for each in findings.systems]
    counts = win_counts(preferences, systems)[1].sum(0)
    apart, bounded = connected_groups(counts, systems, "weak"), connected_groups(counts, systems, "strong")
    if len(apart) > 1:
        return [f"never compared, so that no order between them follows: {_format_groups(apart)}"]
    if len(bounded) > 1:
        return [
            f"in {_format_groups(bounded)} one group won every comparison with another: how far apart they are is not "
            "measured, only limited by the prior"
        ]
    return []


def _format_groups(groups_of_systems: Sequence[Sequence[str]]) -> str:
    return " | ".join(", ".join(group) for group in groups_of_systems)
