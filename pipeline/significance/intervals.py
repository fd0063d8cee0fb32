"""The 95 % interval of a score, and of a difference of two: by draws of the segments, of shares by formula; or why not.

An interval that holds the true figure in fewer than 93 of 100 cases says more than is known, and is not given
(`tests/invariants/test_coverage.py`).
"""

from typing import TypeAlias

import numpy as np

from tfm.data.errors import format_count
from tfm.pipeline.scoring.alternative_scores import proportion_interval
from tfm.pipeline.significance.resampling import percentile_interval
from tfm.pipeline.significance.segment_statistics import Array, SegmentStatistics
from tfm.pipeline.significance.shares import MIN_SEGMENTS_FOR_SHARE_INTERVAL, newcombe_interval

MIN_SEGMENTS, MIN_DIFFERING_SEGMENTS = 100, 20
"""Fewest segments of which percentiles of the bootstrap are given, and fewest that differ between two systems: below,
they hold the true figure in fewer than 93 of 100 cases where few segments make most of it."""
MIN_LABEL_SEGMENTS = 20
"""Fewest segments with the rarest label of which macro F1 has an interval: a rare label is in some draws not at all."""
RARE_LABEL_REASON = "its rarest label is in {}, and it needs {}"
ONE_SEGMENT_REASON = "one segment alone: there is nothing to resample"
TOO_FEW_SEGMENTS_REASON = "{}, and it needs {}"
IDENTICAL_DRAWS_REASON = "every draw of the segments gives the same"
INFINITE_DRAWS_REASON = "some draws of the segments are infinite"
TOO_FEW_DIFFERENCES_REASON = "the systems differ in {}, and it needs {}"
ROUNDING_TOLERANCE = 1e-12  # of the scores: what varies by less does not vary
IntervalOrReason: TypeAlias = tuple[str | None, float | None, float | None]
"""The reason why there is no interval, or None; its ends, or None."""


def score_interval(system: SegmentStatistics, draws: Array) -> IntervalOrReason:
    """The interval of a score, of which there are draws: of a share `proportion_interval`, else percentiles."""
    if len(system) == 1:
        return ONE_SEGMENT_REASON, None, None
    if system.is_share:
        right, count = (int(each) for each in system.rows.sum(0))
        if count < MIN_SEGMENTS_FOR_SHARE_INTERVAL:
            return (
                TOO_FEW_SEGMENTS_REASON.format(format_count(count, "segment"), MIN_SEGMENTS_FOR_SHARE_INTERVAL),
                None,
                None,
            )
        low, high = proportion_interval(right, count)
        return None, 100 * low, 100 * high
    if system.rarest is not None and system.rarest < MIN_LABEL_SEGMENTS:
        return RARE_LABEL_REASON.format(format_count(system.rarest, "segment"), MIN_LABEL_SEGMENTS), None, None
    return _percentile_interval(len(system), draws)


def difference_interval(baseline: SegmentStatistics, system: SegmentStatistics, draws: Array) -> IntervalOrReason:
    """Compute the interval of a system's score less the baseline's: for shares of the same segments Newcombe's.

    Args:
        baseline: the statistics of one system.
        system: those of the other, on the same segments.
        draws: the differences of their scores in the resamples.
    """
    differs = (baseline.rows != system.rows).any(-1)
    if not differs.any():
        return IDENTICAL_DRAWS_REASON, None, None
    if baseline.is_share and system.is_share and (baseline.rows[:, 1] == system.rows[:, 1]).all():
        return _proportion_difference_interval(baseline, system)
    if len(system) >= MIN_SEGMENTS and differs.sum() < MIN_DIFFERING_SEGMENTS:
        return (
            TOO_FEW_DIFFERENCES_REASON.format(format_count(int(differs.sum()), "segment"), MIN_DIFFERING_SEGMENTS),
            None,
            None,
        )
    return _percentile_interval(len(system), draws)


def _proportion_difference_interval(baseline: SegmentStatistics, system: SegmentStatistics) -> IntervalOrReason:
    mask = system.rows[:, 1] > 0
    system_right, baseline_right = system.rows[mask, 0] > 0, baseline.rows[mask, 0] > 0
    if len(system_right) < MIN_SEGMENTS_FOR_SHARE_INTERVAL:
        return (
            TOO_FEW_SEGMENTS_REASON.format(format_count(len(system_right), "segment"), MIN_SEGMENTS_FOR_SHARE_INTERVAL),
            None,
            None,
        )
    low, high = newcombe_interval(
        *(
            int(each.sum())
            for each in (
                system_right & baseline_right,
                system_right & ~baseline_right,
                ~system_right & baseline_right,
                ~system_right & ~baseline_right,
            )
        )
    )
    return None, 100 * low, 100 * high


def _percentile_interval(num_segments: int, draws: Array) -> IntervalOrReason:
    if num_segments < MIN_SEGMENTS:
        return TOO_FEW_SEGMENTS_REASON.format(format_count(num_segments, "segment"), MIN_SEGMENTS), None, None
    if not np.isfinite(draws).all():
        return INFINITE_DRAWS_REASON, None, None
    if np.ptp(draws) <= ROUNDING_TOLERANCE * np.abs(draws).max():
        return IDENTICAL_DRAWS_REASON, None, None
    return None, *percentile_interval(draws)
