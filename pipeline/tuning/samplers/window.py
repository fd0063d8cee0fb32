"""The shifting window: random search in windows that move to where the best trial so far was.

Ben Roth's method, as his lecture on hyperparameter optimization has it: the values of each key stand in order; of each
a window is open, at first in the middle. In each round N' trials draw every key uniformly from its window. Then each
window moves so that the key's value in the best trial so far lies in its center; at an edge it stays inside the range.
"""

from typing import Any

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


class WindowSampler(IndependentSampler):
    """Sampler of the shifting window.

    Args:
        size: values in the window of a key with steps.
        share: width of the window of a key without steps, as a share of its range.
        trials_a_round: trials of a round, after which the windows move.
        seed: the draws are a function of the seed and of the trial's number.
    """

    def __init__(self, size: int, share: float, trials_a_round: int, seed: int) -> None:
        self.size, self.share, self.trials_a_round, self.seed = size, share, trials_a_round, seed

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Draw uniformly inside the window of a key in the round of a trial.

        Args:
            study: the study.
            trial: the trial.
            param_name: the key.
            param_distribution: the values of the key.

        Raises:
            ValueError: the key is a category.
        """
        draw = trial_generator(self.seed, trial.number, param_name)
        round_began = trial.number - trial.number % self.trials_a_round
        best = next(iter(finished_trials_before(study, round_began, lambda each: param_name in each.params)), None)
        if isinstance(param_distribution, IntDistribution):
            low, values = param_distribution.low, param_distribution.high - param_distribution.low + 1
            width = min(self.size, values)
            centre = values // 2 if best is None else int(best.params[param_name]) - low
            begin = min(max(centre - width // 2, 0), values - width)
            return low + begin + int(draw.integers(width))
        if isinstance(param_distribution, FloatDistribution):
            middle = 0.5 if best is None else scale_to_unit(best.params[param_name], param_distribution)
            start = min(max(middle - self.share / 2, 0.0), 1 - self.share)
            return scale_from_unit(start + self.share * float(draw.random()), param_distribution)
        assert isinstance(param_distribution, CategoricalDistribution)
        raise ValueError(f"{param_name} has no order, and a window needs one")
