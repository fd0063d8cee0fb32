"""Intervals of shares, which draws of the segments do not give: where all are right, each draw says the same."""

import math

from tfm.pipeline.scoring.alternative_scores import wilson_interval

MIN_SEGMENTS_FOR_SHARE_INTERVAL = 5
"""Fewest segments of which a share has an interval in a comparison."""


def newcombe_interval(both: int, first_only: int, second_only: int, neither: int) -> tuple[float, float]:
    """The limits, in -1..1, of the difference of two shares of the same segments: method 10 of Newcombe 1998.

    With Wilson's limits l, u of the two shares p, q, and φ their correlation (corrected for continuity):
    p - q - √((p - l_p)² - 2 φ (p - l_p) (u_q - q) + (u_q - q)²), and likewise above.

    Args:
        both: segments that both have right.
        first_only: that the first alone has right.
        second_only: that the second alone has right.
        neither: that neither has right.
    """
    count = both + first_only + second_only + neither
    p, q = (both + first_only) / count, (both + second_only) / count
    (low_p, high_p), (low_q, high_q) = (
        wilson_interval(both + first_only, count),
        wilson_interval(both + second_only, count),
    )
    product = both * neither - first_only * second_only
    corrected_product = max(product - count / 2, 0) if product > 0 else product
    margins = (both + first_only) * (second_only + neither) * (both + second_only) * (first_only + neither)
    phi = corrected_product / math.sqrt(margins) if margins else 0.0

    def combined_margin(first_margin: float, second_margin: float) -> float:
        return math.sqrt(max(0.0, first_margin**2 - 2 * phi * first_margin * second_margin + second_margin**2))

    return p - q - combined_margin(p - low_p, high_q - q), p - q + combined_margin(high_p - p, q - low_q)
