"""Judges who seem careless, named with reasons: nobody is left out because of them.

Each rule compares a judge with the panel, so it says nothing if most of a panel is careless.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from scipy.stats import fisher_exact, norm

from tfm.pipeline.judging.statistics.agreement import values_by_judge
from tfm.pipeline.judging.statistics.correlation import pearson
from tfm.pipeline.judging.statistics.ratings import JudgedUnit, Judgment, z_scores

MIN_FAILED_CHECKS, MIN_FAILED_SHARE = 2, 1 / 3
"""A judge is named who failed so many attention checks, and so large a share of their own."""
SIGNIFICANCE_LEVEL = 0.01
"""...who repeats their answers less often than the others, with a p below this divided by the number of judges (so that
of a hundred panels of equal judges one has somebody named);"""
MIN_CORRELATED_UNITS = 10
"""...whose correlation with the others is less than half the median of all, and below it at the same level;"""
MIN_SAME_ANSWERS = 10
"""...who gave one and the same answer to so many items."""
MIN_MEDIAN_TIME_RATIO = 1 / 3
"""...who took less than this share of the median judge's time for an item."""


@dataclass(frozen=True)
class JudgeStats:
    """How a judge worked: items given and answered; attention checks; repeated items, answered alike or not; seconds
    an item, where known; the answers to the items as they stood on the screen; and ties that were not shown."""

    judge: str
    num_items: int
    num_answered: int
    checks: Sequence[bool] = ()
    repeats: Sequence[bool] = ()
    seconds: Sequence[float] = ()
    answers: Sequence[str] = ()
    num_ties: int = 0

    @property
    def median_seconds(self) -> float | None:
        """Seconds an item, where any is known."""
        return median(self.seconds) if self.seconds else None


@dataclass(frozen=True)
class CarelessnessVerdict:
    """A judge's conduct in figures, and why they seem careless; no reason is no suspicion.

    correlation: Pearson's r with the mean of the other judges over `num_units` units; None if it is not defined.
    """

    conduct: JudgeStats
    correlation: float | None
    num_units: int
    reasons: list[str] = field(default_factory=list)


def judge_verdicts(stats_of_judges: Sequence[JudgeStats], judgments: Sequence[Judgment]) -> list[CarelessnessVerdict]:
    """A verdict on each judge, in the order given; `judgments` are what the judges are compared by.

    Correlations come last, the lowest first, and no longer with a judge who was named: careless answers among the
    others would lower everyone's.
    """
    reasons: dict[str, list[str]] = {}
    for stats in stats_of_judges:
        checks = (
            _failed_checks_reason(stats),
            _inconsistent_repeats_reason(stats, stats_of_judges),
            _same_answer_reason(stats),
            _too_fast_reason(stats, stats_of_judges),
        )
        reasons[stats.judge] = [reason for reason in checks if reason]
    table = values_by_judge(
        z_scores(judgments)[0]
    )  # so that nobody weighs more among the others for using the whole scale
    while worst := _find_outlier_judge(table, [judge for judge, some in reasons.items() if not some]):
        judge, reason = worst
        reasons[judge].append(reason)
    trusted_judges = {judge: values for judge, values in table.items() if not reasons.get(judge)}
    verdicts = []
    for stats in stats_of_judges:
        judge_values, other_means = pair_with_means_of_other_judges(
            table.get(stats.judge, {}), trusted_judges, stats.judge
        )
        verdicts.append(
            CarelessnessVerdict(stats, pearson(judge_values, other_means), len(judge_values), reasons[stats.judge])
        )
    return verdicts


def _find_outlier_judge(
    table: Mapping[str, Mapping[JudgedUnit, float]], judges: Sequence[str]
) -> tuple[str, str] | None:
    """The judge, of those not yet named, with the lowest correlation with the rest, if it is far too low, and why."""
    values_by_judge = {judge: table[judge] for judge in judges if judge in table}
    pairs = {judge: pair_with_means_of_other_judges(table[judge], values_by_judge, judge) for judge in values_by_judge}
    comparable = {judge: pair for judge, pair in pairs.items() if len(pair[0]) >= MIN_CORRELATED_UNITS}
    correlations = {judge: r for judge, pair in comparable.items() if (r := pearson(*pair)) is not None}
    if len(correlations) < 3:
        return None
    judge, typical = min(correlations, key=lambda name: correlations[name]), median(correlations.values())
    r, num = correlations[judge], len(pairs[judge][0])
    # Fisher's z: atanh r is normal with deviation 1 / √(n − 3)
    margin = float(norm.ppf(1 - SIGNIFICANCE_LEVEL / len(correlations))) / math.sqrt(num - 3)
    high = math.tanh(math.atanh(min(max(r, -1 + 1e-12), 1 - 1e-12)) + margin)
    if typical <= 0 or r >= typical / 2 or high >= typical:
        return None
    return judge, f"correlation {r:.2f} with the other judges (median {typical:.2f})"


def pair_with_means_of_other_judges(
    judge_values: Mapping[JudgedUnit, float], table: Mapping[str, Mapping[JudgedUnit, float]], judge: str
) -> tuple[list[float], list[float]]:
    """A judge's values and the means of the others in `table`, over the units that the judge and another one have."""
    values, means = [], []
    for unit, value in judge_values.items():
        other_values = [theirs[unit] for name, theirs in table.items() if name != judge and unit in theirs]
        if other_values:
            values.append(value)
            means.append(math.fsum(other_values) / len(other_values))
    return values, means


def _failed_checks_reason(judge_stats: JudgeStats) -> str | None:
    failed, num = judge_stats.checks.count(False), len(judge_stats.checks)
    if failed >= MIN_FAILED_CHECKS and failed >= MIN_FAILED_SHARE * num:
        return f"failed {failed} of {num} attention checks"
    return None


def _inconsistent_repeats_reason(judge_stats: JudgeStats, stats_of_judges: Sequence[JudgeStats]) -> str | None:
    """Fisher's exact test: does this judge repeat answers less often than all others together?"""
    other_repeats = [alike for each in stats_of_judges if each is not judge_stats for alike in each.repeats]
    repeats = list(judge_stats.repeats)
    if not repeats or not other_repeats:
        return None
    table = [[repeats.count(True), repeats.count(False)], [other_repeats.count(True), other_repeats.count(False)]]
    if fisher_exact(table, alternative="less").pvalue >= SIGNIFICANCE_LEVEL / len(stats_of_judges):
        return None
    rate = 100 * other_repeats.count(True) / len(other_repeats)
    return f"answered {repeats.count(True)} of {len(repeats)} repeated questions alike (the others {rate:.0f} %)"


def _same_answer_reason(judge_stats: JudgeStats) -> str | None:
    num = len(judge_stats.answers)
    if num >= MIN_SAME_ANSWERS and len(set(judge_stats.answers)) == 1:
        return f"gave the same answer to all {num} items"
    return None


def _too_fast_reason(judge_stats: JudgeStats, stats_of_judges: Sequence[JudgeStats]) -> str | None:
    seconds = judge_stats.median_seconds
    other_seconds = [
        each.median_seconds for each in stats_of_judges if each is not judge_stats and each.median_seconds is not None
    ]
    if seconds is None or len(other_seconds) < 2 or seconds >= MIN_MEDIAN_TIME_RATIO * median(other_seconds):
        return None
    return f"took {seconds:.1f} s an item (the median of the others {median(other_seconds):.1f} s)"
