"""A finished hypothesis as a search returns it, and the next pieces of texts that are not finished."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfm.data.arrays import Ints
from tfm.data.errors import DataError

NON_FINITE_MESSAGE = "the model gives no finite probabilities: its weights are broken (did training diverge?)"


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Target pieces without the end token, with their score and log-probability.

    `log_prob` is the sum of the log-probabilities of every piece and of the end token, `score` is that sum after
    length normalization (see `limits.LENGTH_NORMS`).
    """

    ids: tuple[int, ...]
    score: float
    log_prob: float

    @property
    def num_tokens(self) -> int:
        """Tokens that `log_prob` sums over: the pieces and the end token."""
        return len(self.ids) + 1


@dataclass(frozen=True)
class NextPieces:
    """One more piece of each unfinished text: the numbers of the texts, their pieces, and log-probabilities of
    these.
    """

    texts: list[int]
    pieces: list[int]
    log_probs: list[float]


EMPTY_HYPOTHESIS = Hypothesis((), 0.0, 0.0)
"""The translation of a source without pieces. No model is asked."""


def check_not_nan(values: NDArray[Any]) -> None:
    """Raise DataError if what a model gives is no number: a sum that leaves NaN out would praise broken weights."""
    if np.isnan(values).any():
        raise DataError(NON_FINITE_MESSAGE)


def restore_ids(hypotheses: list[Hypothesis], candidates: Ints) -> list[Hypothesis]:
    """Return the hypotheses of a network whose pieces are places among some candidates (U,), with the ids of these."""
    return [replace(each, ids=tuple(candidates[np.array(each.ids, np.int64)].tolist())) for each in hypotheses]


def select_n_best(hypotheses: list[Hypothesis], n_best: int) -> list[Hypothesis]:
    """The `n_best` hypotheses by score, best first; among equals the one found first.

    Raises DataError if the model's probabilities were not numbers.
    """
    if not hypotheses or not all(math.isfinite(hypothesis.log_prob) for hypothesis in hypotheses):
        raise DataError(NON_FINITE_MESSAGE)
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[:n_best]
