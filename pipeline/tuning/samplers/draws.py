"""The parts that our samplers share: draws that depend on seed, trial and key alone, and finished trials from best to
worst.
"""

import math
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState


class IndependentSampler(BaseSampler):
    """A sampler of Optuna's that draws each key by itself: it has `sample_independent` alone."""

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return no keys: none is drawn together with others."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return no values: no key is drawn together with others.

        Args:
            study: unused.
            trial: unused.
            search_space: unused.
        """
        return {}


def trial_generator(seed: int, number: int, name: str = "") -> np.random.Generator:
    """Return a generator of its own for each trial and key, so that a draw does not depend on the draws before it.

    Args:
        seed: the seed of the search.
        number: number of the trial.
        name: the key.
    """
    words = np.frombuffer(sha256(f"{seed} {number} {name}".encode()).digest(), np.uint32)
    return np.random.default_rng(words)


def finished_trials_before(
    study: Study, number: int, predicate: Callable[[FrozenTrial], bool] = lambda trial: True
) -> list[FrozenTrial]:
    """Return the finished trials before a trial that have a finite value, the best first; of equals the earlier.

    Args:
        study: the study.
        number: number of the trial.
        predicate: (trial) -> whether it counts.
    """
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    sign = -1 if study.direction == StudyDirection.MAXIMIZE else 1
    ranked_trials = [(sign * each.value, each.number, each) for each in trials if each.value is not None]
    rows = [row for row in ranked_trials if row[1] < number and math.isfinite(row[0]) and predicate(row[2])]
    return [each for _, _, each in sorted(rows, key=lambda row: row[:2])]


def scale_to_unit(value: float, distribution: FloatDistribution) -> float:
    """A real number as its place in its range, from 0 to 1, by the logarithm where it is drawn so."""
    low, high = (
        (math.log(distribution.low), math.log(distribution.high))
        if distribution.log
        else (distribution.low, distribution.high)
    )
    return ((math.log(value) if distribution.log else value) - low) / (high - low)


def scale_from_unit(unit_value: float, distribution: FloatDistribution) -> float:
    """The number at a place from 0 to 1 of a range."""
    low, high = (
        (math.log(distribution.low), math.log(distribution.high))
        if distribution.log
        else (distribution.low, distribution.high)
    )
    number = low + unit_value * (high - low)
    return min(max(math.exp(number) if distribution.log else number, distribution.low), distribution.high)
