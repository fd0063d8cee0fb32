"""The samplers that choose the configurations of a search, by the name of the method; all have Optuna's interface."""

import warnings
from collections.abc import Callable, Mapping, Sequence

from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.tuning.config import SearchConfig
from tfm.pipeline.tuning.samplers.draws import trial_generator
from tfm.pipeline.tuning.samplers.evolution import EvolutionSampler
from tfm.pipeline.tuning.samplers.window import WindowSampler
from tfm.pipeline.tuning.space import Parameter


def _window_sampler(config: SearchConfig, seed: int) -> BaseSampler:
    window = config.window
    return WindowSampler(window.size, window.share, window.trials_a_round, config.seed)


def _evolution_sampler(config: SearchConfig, seed: int) -> BaseSampler:
    evolution = config.evolution
    return EvolutionSampler(evolution.population, evolution.survivors, evolution.mutation, config.seed)


def _gp_sampler(config: SearchConfig, seed: int) -> BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return GPSampler(seed=seed)


SAMPLERS: Mapping[str, Callable[[SearchConfig, int], BaseSampler]] = {
    "grid": lambda config, seed: RandomSampler(seed),  # all its trials are there from the start: nothing is drawn
    "random": lambda config, seed: RandomSampler(seed),
    "window": _window_sampler,
    "evolution": _evolution_sampler,
    "tpe": lambda config, seed: TPESampler(seed=seed),
    "gp": _gp_sampler,
}
PRUNERS: Mapping[str, Callable[[], BasePruner]] = {
    "none": NopPruner,
    "median": lambda: MedianPruner(n_warmup_steps=2),  # while the learning rate still rises, figures say little
    "hyperband": HyperbandPruner,
}


def make_sampler(config: SearchConfig, number: int) -> BaseSampler:
    """Return the sampler that draws trial `number`.

    A sampler has no memory: each draw is a function of the seed of the search, of the number, and of the trials so
    far, also where the search was stopped in between.
    """
    return SAMPLERS[config.method](config, int(trial_generator(config.seed, number).integers(2**31)))


def check_method(config: SearchConfig, parameters: Sequence[Parameter]) -> None:
    """Raise RecipeError for a key that the method cannot vary."""
    if config.method == "window" and (unordered_keys := [each.key for each in parameters if not each.ordered]):
        raise RecipeError(
            f'search.method = "window" moves windows over ordered values, and {", ".join(unordered_keys)} has choices '
            "without order: give values in order, or another method"
        )
