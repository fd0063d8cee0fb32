"""Intervals of shares, which draws of the segments do not give: where all are right, each draw says the same."""

import math

from tfm.pipeline.scoring.alternative_scores import wilson_interval

MIN_SHARED_SUCCESSES = 5
"""Fewest segments of which a share has an interval in a comparison."""


def newcombe_interval(both: int, first: int, second: int, neither: int) -> tuple[float, float]:
    """The limits, in -1..1, of the difference of two shares of the same segments: method 10 of Newcombe 1998.

    With Wilson's limits l, u of the two shares p, q, and φ their correlation (corrected for continuity):
    p - q - √((p - l_p)² - 2 φ (p - l_p) (u_q - q) + (u_q - q)²), and likewise above.

    Args:
        both: segments that both have right.
        first: that the first alone has right.
        second: that the second alone has right.
        neither: that neither has right.
    """
    count = both + first + second + neither
    p, q = (both + first) / count, (both + second) / count
    (low_p, high_p), (low_q, high_q) = wilson_interval(both + first, count), wilson_interval(both + second, count)
    product = both * neither - first * second
    corrected = max(product - count / 2, 0) if product > 0 else product
    margins = (both + first) * (second + neither) * (both + second) * (first + neither)
    phi = corrected / math.sqrt(margins) if margins else 0.0

    def around(one: float, other: float) -> float:
        return math.sqrt(max(0.0, one**2 - 2 * phi * one * other + other**2))

    return p - q - around(p - low_p, high_q - q), p - q + around(high_p - p, q - low_q)
