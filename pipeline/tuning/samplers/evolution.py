"""Evolution: the fittest survive, their children cross their settings, and some settings mutate.

The trials come in generations. The first is drawn at random. The fittest of all trials before a generation are its
parents; each child has two of them, and each of its keys comes from one or the other (uniform crossover). With a
stated probability a key then mutates: a value with an order goes to a neighbor, a number without steps takes a small
normal step, a category becomes another one.
"""

from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial

from tfm.pipeline.tuning.samplers.draws import (
    IndependentSampler,
    finished_trials_before,
    scale_from_unit,
    scale_to_unit,
    trial_generator,
)

MUTATION_STEP = 0.1
"""Deviation of a mutation of a number without steps, as part of its range."""


class EvolutionSampler(IndependentSampler):
    """Sampler of evolution.

    Args:
        population: trials of a generation.
        survivors: parents of the next generation.
        mutation: the probability that a key mutates.
        seed: the seed of the draws.
    """

    def __init__(self, population: int, survivors: int, mutation: float, seed: int) -> None:
        self.population, self.survivors, self.mutation, self.seed = population, survivors, mutation, seed

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return a parent's value of a key, perhaps mutated, or a random one if no parent has one.

        Args:
            study: the study.
            trial: the trial.
            param_name: the key.
            param_distribution: the values of the key.
        """
        draw = trial_generator(self.seed, trial.number, param_name)
        parents = self.parents(study, trial.number)
        candidates = [each for each in parents if param_name in each.params]
        if not candidates:
            return draw_value(param_distribution, draw)
        value = candidates[int(draw.integers(len(candidates)))].params[param_name]
        return mutate_value(value, param_distribution, draw) if draw.random() < self.mutation else value

    def parents(self, study: Study, number: int) -> list[FrozenTrial]:
        """The two parents of a trial, drawn from the fittest before its generation; none in the first."""
        survivors = finished_trials_before(study, number - number % self.population)[: self.survivors]
        if not survivors:
            return []
        indexes = trial_generator(self.seed, number).choice(len(survivors), min(2, len(survivors)), replace=False)
        return [survivors[int(each)] for each in indexes]


def draw_value(distribution: BaseDistribution, rng: np.random.Generator) -> Any:
    """A value drawn uniformly, by the logarithm where the key is."""
    if isinstance(distribution, IntDistribution):
        return int(rng.integers(distribution.low, distribution.high + 1))
    if isinstance(distribution, FloatDistribution):
        return scale_from_unit(float(rng.random()), distribution)
    assert isinstance(distribution, CategoricalDistribution)
    return distribution.choices[int(rng.integers(len(distribution.choices)))]


def mutate_value(value: Any, distribution: BaseDistribution, rng: np.random.Generator) -> Any:
    """Return another value: a neighbour if values are ordered; the same one if there is no other.

    Args:
        value: the value.
        distribution: the values of its key.
        rng: the generator.
    """
    if isinstance(distribution, IntDistribution):
        neighbours = [each for each in (value - 1, value + 1) if distribution.low <= each <= distribution.high]
        return neighbours[int(rng.integers(len(neighbours)))] if neighbours else value
    if isinstance(distribution, FloatDistribution):
        position = scale_to_unit(value, distribution) + MUTATION_STEP * float(rng.standard_normal())
        return scale_from_unit(min(max(position, 0.0), 1.0), distribution)
    assert isinstance(distribution, CategoricalDistribution)
    other_values = [each for each in distribution.choices if each != value]
    return other_values[int(rng.integers(len(other_values)))] if other_values else value
