"""The result of every metric."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tfm.pipeline.tasks.abilities import LOWER_IS_BETTER

LOWER_IS_BETTER_SIGNATURE = "better:lower"  # in the signature of an external metric for which lower is better
FOUR_DIGIT_METRICS = ("cider_d",)
"""Metrics of tfm whose scores are no percentages but small numbers, and shown with more digits."""


@dataclass(frozen=True)
class Score:
    """A number and everything one must know to compute it again.

    Args:
        score: the number.
        signature: the definition and its settings.
        recall: of an F-score, computed in the same way; None of any other score.
        precision: likewise.
    """

    score: float
    signature: str
    recall: float | None = None
    precision: float | None = None


def mean_of_directions(scores: Mapping[str, Score]) -> Score:
    """Return the mean of a score over directions, by their names, each counting the same.

    The signature of the directions is behind the mark of the mean; once, where it is the same.
    """
    signatures = {name: each.signature for name, each in scores.items()}
    same = len(set(signatures.values())) == 1
    parts = [*signatures.values()][:1] if same else [f"{name}({each})" for name, each in signatures.items()]
    mean = math.fsum(each.score for each in scores.values()) / len(scores)
    return Score(mean, "|".join([f"mean-of:{len(scores)}-directions", *parts]))


def exp_or_inf(value: float) -> float:
    """Compute exp, as for the perplexity of a loss; infinity where a float cannot hold it."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def lower_is_better(name: str, signature: str = "") -> bool:
    """Whether the lower of two scores of a metric is the better one."""
    return name in LOWER_IS_BETTER or LOWER_IS_BETTER_SIGNATURE in signature.split("|")
