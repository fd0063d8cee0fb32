"""The findings of a campaign: every statistic of its answers, put together."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tfm.data.errors import format_count
from tfm.pipeline.artifacts.canonical_json import to_jsonable
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.judging.answer_tables import (
    RatingValue,
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
from tfm.pipeline.judging.statistics.agreement import (
    CohenKappa,
    KrippendorffAlpha,
    MeasurementLevel,
    estimate_alpha,
    pairwise_kappas,
)
from tfm.pipeline.judging.statistics.careless import CarelessnessVerdict, judge_verdicts
from tfm.pipeline.judging.statistics.correlation import MetricCorrelation
from tfm.pipeline.judging.statistics.differences import DifferenceTest, difference_tests
from tfm.pipeline.judging.statistics.minimums import MIN_ERROR_SEGMENTS, MIN_SEGMENTS
from tfm.pipeline.judging.statistics.preferences import (
    Preference,
    SignTest,
    SystemStrength,
    bradley_terry_strengths,
    connected_groups,
    sign_tests,
    win_counts,
)
from tfm.pipeline.judging.statistics.ranks import contradiction_messages, rank_clusters_by_pairs, significant_pairs
from tfm.pipeline.judging.statistics.ratings import Estimate, Judgment, MeanRating, mean_ratings, z_scores

MEASUREMENT_LEVELS: Mapping[str, MeasurementLevel] = {
    "adequacy": "ordinal",
    "fluency": "ordinal",
    "score": "interval",
    "errors": "interval",
}
"""The level of measurement of each scale, for agreement."""
LOWER_IS_BETTER_SCALES = ("errors",)
METHOD_DESCRIPTIONS: Mapping[str, str] = {
    "means": "of segments, each by the mean of its judges; intervals by Student's t, of 100 segments (errors: 200)",
    "z": "(value - mean of the judge) / standard deviation of the judge",
    "differences": "of z; paired: approximate randomisation; unpaired: permutation test; 10,000 trials, two-sided; "
    "intervals by Student's or Welch's t, of 20 segments, of unpaired 100 each (errors: 200)",
    "strengths": "Bradley and Terry, ties half a win, one tie added to each pair; intervals as those of alpha",
    "preferences": "sign test of the majority of each segment, exact, two-sided",
    "p_holm": "Holm's correction over all pairs of systems of a scale, level 0.05",
    "alpha": "Krippendorff's; intervals by 1,000 draws of 100 segments or more, expanded percentiles",
    "kappas": "Cohen's, of each two judges; weights quadratic, or none where the level is nominal; intervals likewise",
    "correlations": "Kendall's tau-b and Pearson's r with z or preferences; intervals as those of alpha",
    "no_interval_reason": "why there is no interval: fewer than 93 of 100 would hold the true figure; at least 10 "
    "segments must differ from the commonest value (strengths: be won, and be lost, by each system; a tie is both)",
}
"""How each figure is found."""
ERROR_SCALE = "errors"
"""Beside the scales of ESA: the weight of the errors marked."""


@dataclass(frozen=True)
class SystemRating:
    """A system on one scale. rank: its cluster; z: the mean of the judges' z-scores, None where no judge has any."""

    system: str
    rank: int
    mean: MeanRating
    z: MeanRating | None
    num_ratings: int


@dataclass(frozen=True)
class ScaleFindings:
    """One scale: systems, the best first; tests and correlations are on z-scores, agreement on the values as given."""

    name: str
    lower_is_better: bool
    systems: Sequence[SystemRating]
    tests: Sequence[DifferenceTest]
    alpha: KrippendorffAlpha
    kappas: Sequence[CohenKappa]
    mean_kappa: Estimate
    z_scores: Sequence[Judgment]
    without_z: Sequence[str]


@dataclass(frozen=True)
class SystemPreference:
    """A system by preferences. rank: its cluster, by the sign tests."""

    rank: int
    strength: SystemStrength


@dataclass(frozen=True)
class ChoiceFindings:
    """Preferences: systems, the strongest first, and the tests of each pair; pairs: of items that were shown."""

    systems: Sequence[SystemPreference]
    tests: Sequence[SignTest]
    alpha: KrippendorffAlpha
    kappas: Sequence[CohenKappa]
    mean_kappa: Estimate
    pairs: Sequence[Judgment]


@dataclass(frozen=True)
class Findings:
    """All of it. answers: those that count; judges: every judge who answered, also those left out; errors: of ESA, how
    many of each severity a text has on average, by system; correlations: by scale, or "preference"."""

    campaign: Campaign
    answers: Sequence[Answer]
    without: Sequence[str]
    judges: Sequence[CarelessnessVerdict]
    scales: Sequence[ScaleFindings]
    errors: Mapping[str, Mapping[str, MeanRating]]
    choices: ChoiceFindings | None
    notes: Sequence[str]
    correlations: Mapping[str, Sequence[MetricCorrelation]] = field(default_factory=dict)

    def as_json(self) -> Any:
        """Everything but the single ratings."""
        return to_jsonable(
            {
                "campaign": self.campaign.fingerprint,
                "kind": self.campaign.kind,
                "without": list(self.without),
                "judges": [_verdict_json(each) for each in self.judges],
                "scales": {each.name: _scale_json(each) for each in self.scales},
                "errors": {name: {s: asdict(mean) for s, mean in by.items()} for name, by in self.errors.items()},
                "preferences": self.choices and _choices_json(self.choices),
                "correlations": {name: [asdict(each) for each in some] for name, some in self.correlations.items()},
                "methods": METHOD_DESCRIPTIONS,
                "notes": list(self.notes),
            }
        )


def _scale_json(scale: ScaleFindings) -> dict[str, Any]:
    given = {key: value for key, value in asdict(scale).items() if key not in ("name", "z_scores")}
    return {**given, "tests": [{**asdict(test), "stands": test.is_significant} for test in scale.tests]}


def _choices_json(choices: ChoiceFindings) -> dict[str, Any]:
    given = {key: value for key, value in asdict(choices).items() if key != "pairs"}
    systems = [{"rank": each.rank, **asdict(each.strength)} for each in choices.systems]
    return {
        **given,
        "systems": systems,
        "tests": [{**asdict(test), "stands": test.is_significant} for test in choices.tests],
    }


def _verdict_json(verdict: CarelessnessVerdict) -> dict[str, Any]:
    conduct = verdict.conduct
    return {
        "judge": conduct.judge,
        "items": conduct.num_items,
        "answered": conduct.num_answered,
        "checks": len(conduct.checks),
        "checks_passed": conduct.checks.count(True),
        "repeats": len(conduct.repeats),
        "repeats_alike": conduct.repeats.count(True),
        "median_seconds": conduct.median_seconds,
        "correlation": verdict.correlation,
        "correlation_units": verdict.num_units,
        "seems_careless": verdict.reasons,
    }


def analyze_answers(campaign: Campaign, answers: Sequence[Answer], excluded_judges: Sequence[str] = ()) -> Findings:
    """Every statistic of the answers but for correlations; of the judges in `without` only their conduct is told.

    The order of the answers changes nothing. Raises RecipeError where `without` names a judge who did not answer, or
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
    scales = [_analyze_scale(name, list_judgments(used, value)) for name, value in _judged_scales(campaign)]
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


def _judged_scales(campaign: Campaign) -> list[tuple[str, RatingValue]]:
    found = [(name, make_scale_reader(name)) for name in SCALE_RANGES[campaign.kind]]
    return [*found, (ERROR_SCALE, error_weight)] if campaign.kind == "esa" else found


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
