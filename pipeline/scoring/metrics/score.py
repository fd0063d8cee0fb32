"""The result of every metric."""

import math
from dataclasses import dataclass

from tfm.pipeline.tasks.abilities import LOWER_IS_BETTER

LOWER = "better:lower"  # in the signature of a metric that is not of ours and of which the lower is the better
FOUR_DIGITS = ("cider_d",)
"""Metrics of ours whose scores are no percentages but small numbers, and shown with more digits."""


@dataclass(frozen=True)
class Score:
    """A number and everything one must know to compute it again.

    recall, precision: those of an F-score, computed as it is; None of any other score.
    """

    score: float
    signature: str
    recall: float | None = None
    precision: float | None = None


def exp_or_inf(value: float) -> float:
    """exp, as perplexity is of a loss, and infinity where a float cannot hold it."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def lower_is_better(name: str, signature: str = "") -> bool:
    """Whether the lower of two scores of a metric is the better one."""
    return name in LOWER_IS_BETTER or LOWER in signature.split("|")
