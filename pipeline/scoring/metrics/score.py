"""The result of every metric."""

import math
from dataclasses import dataclass


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
