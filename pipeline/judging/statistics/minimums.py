"""The minimum number of segments, and of those that differ, for an interval of 95 %.

With fewer, the interval contains the true figure in less than 93 of 100 cases, if most marks are the best one, or most
texts have no error (`tests/invariants/test_judged_coverage.py`).
"""

from collections import Counter
from collections.abc import Hashable, Sequence

from tfm.data.errors import format_count
from tfm.pipeline.significance.intervals import TOO_FEW_SEGMENTS_REASON

MIN_SEGMENTS = 100
"""Fewest segments of which a mean of marks, a strength, an agreement or a correlation has one; and of each system, the
difference of two whose segments are not the same."""
MIN_ERROR_SEGMENTS = 200
"""...of which a mean of errors has one, or a difference of errors over segments that are not the same;"""
MIN_DIFFERENCES = 20
"""...of which a difference over the same segments has one: differences are less skewed."""
MIN_VALUES_OFF_MODE = 10
"""Fewest segments that have another value than the commonest; of a strength, that a system won, and that it lost."""
TOO_ALIKE_REASON = "another value than the commonest one is in {}, and it needs {}"
TOO_AGREED_REASON = "the judges differ in {}, and it needs {}"
ONE_SIDED_REASON = "{} won in {} and lost in {}, and each system needs {} of both"
SAME_SHARE_REASON = "{} has another share of wins than its commonest one in {}, and each system needs {} of these"
UNDEFINED_REASON = "the figure itself is not defined"
ROUNDING_DIGITS = 12  # of a value by the largest one: what differs by less does not differ


def too_few_segments_problem(num_segments: int, min_segments: int) -> str | None:
    """Why so few segments give no interval."""
    is_enough = num_segments >= min_segments
    return None if is_enough else TOO_FEW_SEGMENTS_REASON.format(format_count(num_segments, "segment"), min_segments)


def no_mean_interval_problem(values: Sequence[float], min_segments: int) -> str | None:
    """Why values, one a segment, give no interval: there are too few, or too few differ from the commonest."""
    return too_few_segments_problem(len(values), min_segments) or too_few_differences_problem(
        sum(differ_from_mode(round_to_digits(values)))
    )


def too_few_differences_problem(num_differing: int, reason: str = TOO_ALIKE_REASON) -> str | None:
    """Why so few segments that differ give no interval."""
    return (
        reason.format(format_count(num_differing, "segment"), MIN_VALUES_OFF_MODE)
        if num_differing < MIN_VALUES_OFF_MODE
        else None
    )


def differ_from_mode(values: Sequence[Hashable]) -> list[bool]:
    """Which values are not the commonest one."""
    common = {value for value, _ in Counter(values).most_common(1)}
    return [value not in common for value in values]


def round_to_digits(values: Sequence[float]) -> list[float]:
    """Values to twelve digits of the largest, so that what differs by rounding alone is equal."""
    largest = max(map(abs, values), default=0.0) or 1.0
    return [round(value / largest, ROUNDING_DIGITS) for value in values]
