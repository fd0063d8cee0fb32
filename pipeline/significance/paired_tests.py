"""Tests whether a system is better than a baseline on a test set: scores with intervals, differences with p-values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tfm.data.errors import DataError
from tfm.pipeline.significance.holm import SIGNIFICANCE_LEVEL, holm_correction
from tfm.pipeline.significance.intervals import difference_interval, score_interval
from tfm.pipeline.significance.resampling import (
    RESAMPLES,
    TRIALS,
    bootstrap_p,
    bootstrap_scores,
    mean_and_half_width,
    randomisation_p_values,
    resampling_seed,
)
from tfm.pipeline.significance.segment_statistics import Array, SegmentStatistics


@dataclass(frozen=True)
class PairedDifference:
    """A system's score less the baseline's, in the units of the metric.

    Args:
        difference: the difference.
        low: the lower end of its 95 % interval, a percentile of the bootstrap, of two shares Newcombe's; None if
            there is a no_interval_reason.
        high: the upper end.
        p_bootstrap: of BLEU, chrF and TER the p-value of `sacrebleu --paired-bs`.
        p_randomisation: of BLEU, chrF and TER the p-value of `sacrebleu --paired-ar`.
        num_apart: segments in which the systems differ.
        p: the p-value that decides, by randomization with ties counted (`randomisation_p_values`); of BLEU, chrF and
            TER it differs from p_randomisation where few segments do.
        p_holm: p after Holm's correction over all systems given for this metric.
        better: whether the system is better; None if neither is.
        no_interval_reason: why there is no interval.
    """

    difference: float
    low: float | None
    high: float | None
    p_bootstrap: float
    p_randomisation: float
    num_apart: int
    p: float
    p_holm: float
    better: bool | None
    no_interval_reason: str | None = None

    @property
    def is_significant(self) -> bool:
        """Whether the difference is significant at 5 % after correction."""
        return self.p_holm < SIGNIFICANCE_LEVEL


@dataclass(frozen=True)
class SystemResult:
    """A system's score by one metric.

    Args:
        value: the score.
        low: the lower end of its 95 % interval, the 2.5th percentile of the bootstrap, of a share Wilson's; None if
            there is a no_interval_reason.
        high: the upper end, the 97.5th percentile.
        mean: of sacrebleu's metrics the number that it prints in "μ = mean ± half_width", of others likewise the mean
            of the resamples; the score need not lie in the middle.
        half_width: the other number, of others half the distance from low to high.
        versus: the test against the baseline; None of the baseline, and of a single segment.
        no_interval_reason: why there is no interval.
    """

    value: float
    low: float | None
    high: float | None
    mean: float
    half_width: float | None
    versus: PairedDifference | None = None
    no_interval_reason: str | None = None


def compare_systems(
    systems: Sequence[SegmentStatistics],
    *,
    resamples: int = RESAMPLES,
    trials: int = TRIALS,
    on_done: Callable[[], None] | None = None,
) -> list[SystemResult]:
    """Score systems on the same segments, and test each against the first, the baseline.

    The two tests are those of `sacrebleu.significance`, with its draws (`resampling`). All systems here are one
    family for Holm's correction: the claims "better by this metric" about several systems are read together and the
    best one is picked, whereas another metric answers another question.

    Two systems that are the same in every segment have p-values of 1, where sacrebleu gives its least one. There is no
    test of a single segment: there is but one draw of it.

    Args:
        systems: the statistics of each system, the baseline first.
        resamples: the number of resamples of the bootstrap.
        trials: the number of trials of the randomization.
        on_done: called after each system.

    Raises:
        DataError: the numbers of segments differ or are 0.
        RecipeError: SACREBLEU_SEED is wrong.
    """
    lengths = sorted({len(system) for system in systems})
    if len(lengths) != 1 or not lengths[0]:
        raise DataError(f"systems of {' and '.join(map(str, lengths))} segments: compare them on the same ones")
    for row in (row for system in systems for row in np.flatnonzero(~np.isfinite(system.rows).all(-1))):
        raise DataError(f"line {row + 1} has no finite number of a metric: its systems cannot be compared")
    baseline, seed = systems[0], resampling_seed()
    scores = bootstrap_scores(systems, resamples=resamples, seed=seed)
    rounded = scores
    if baseline.sacrebleu is not None:
        rounded = bootstrap_scores(systems, resamples=resamples, seed=seed, precision=np.float32)
    p_values = randomisation_p_values(baseline, systems[1:], trials=trials, seed=seed)
    results = []
    for index, system in enumerate(systems):
        result = _score_result(system, scores[index])
        with np.errstate(invalid="ignore"):  # two infinite perplexities
            differences, p_bootstrap = (
                scores[index] - scores[0],
                bootstrap_p(baseline, system, rounded[index] - rounded[0]),
            )
        if baseline.sacrebleu is not None:
            mean, half_width = mean_and_half_width(rounded[index])
            result = replace(result, mean=mean, half_width=half_width)
        if index and len(system) > 1:
            versus = _make_difference(baseline, system, differences, p_bootstrap, p_values[index - 1])
            result = replace(result, versus=versus)
        results.append(result)
        if on_done is not None:
            on_done()
    return _correct_p_values(results)


def _score_result(system: SegmentStatistics, draws: Array) -> SystemResult:
    """The score of a system and its interval, if it has one."""
    reason, low, high = score_interval(system, draws)
    with np.errstate(invalid="ignore"):  # infinite perplexities
        mean = float(draws.mean())
    half_width = None if low is None or high is None else 0.5 * (high - low)
    return SystemResult(system.value, low, high, mean, half_width, no_interval_reason=reason)


def _make_difference(
    baseline: SegmentStatistics,
    system: SegmentStatistics,
    draws: Array,
    p_bootstrap: float,
    p_randomisation: tuple[float, float],
) -> PairedDifference:
    difference = system.value - baseline.value
    num_apart = int((baseline.rows != system.rows).any(-1).sum())
    p, p_without_ties = p_randomisation
    if not num_apart or not np.isfinite(difference):
        p_bootstrap = p_without_ties = p = 1.0
    elif baseline.sacrebleu is None:
        p_without_ties = p
    better = None if not difference or np.isnan(difference) else (difference > 0) == system.higher_is_better
    reason, low, high = difference_interval(baseline, system, draws)
    return PairedDifference(difference, low, high, p_bootstrap, p_without_ties, num_apart, p, p, better, reason)


def _correct_p_values(results: Sequence[SystemResult]) -> list[SystemResult]:
    """The results with Holm's correction over all systems that were tested."""
    p_values = iter(holm_correction([result.versus.p for result in results if result.versus is not None]))
    return [
        result if result.versus is None else replace(result, versus=replace(result.versus, p_holm=next(p_values)))
        for result in results
    ]
