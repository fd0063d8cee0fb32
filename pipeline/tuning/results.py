"""The results of a search: its trials as rows, the best, those that are not worse, and the importance of keys."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState

from tfm.pipeline.tasks.abilities import LOWER_IS_BETTER
from tfm.pipeline.tuning.space import Configuration
from tfm.pipeline.tuning.study import Trials
from tfm.pipeline.tuning.trial_records import DUPLICATE_OF_ATTR, WAITING_STATUS, describe_wait, read_trial_attributes

SIGNIFICANCE_LEVEL = 0.05
MAX_SQUARABLE_FIGURE = 1e100
"""Figures up to this can be squared and summed."""
UNFINISHED_STATE_NAMES = {TrialState.RUNNING: "running", TrialState.WAITING: "waiting"}


@dataclass(frozen=True)
class TrialResult:
    """A trial: its settings, its end with the reason, and its cost.

    value: the figure of validation, the mean over all runs. values: of each run: of each fold, in it of each seed.
    validations: the first run's figure after each validation. began: seconds since 1970. seconds: of work. same_as: the
    earlier trial with this configuration, whose end this one took over without a training.
    """

    number: int
    configuration: Configuration
    ended: str
    reason: str
    value: float | None
    values: tuple[float, ...]
    validations: tuple[float, ...]
    updates: int
    seconds: float
    began: float | None
    same_as: int | None = None

    @property
    def is_repeated(self) -> bool:
        """Whether an earlier trial had the configuration, so that this one took over its end without a training."""
        return self.same_as is not None


@dataclass(frozen=True)
class SearchResults:
    """The trials in order; those with a figure from best to worst; the best with all that are not worse than it."""

    metric: str
    trials: tuple[TrialResult, ...]
    ranked: tuple[TrialResult, ...]
    not_worse: tuple[TrialResult, ...]
    importances: dict[str, float]

    @property
    def best(self) -> TrialResult | None:
        return self.ranked[0] if self.ranked else None

    @property
    def num_trained(self) -> int:
        """The number of trials with a figure of their own, of which the best one is the best."""
        return sum(not each.is_repeated for each in self.ranked)

    def as_json(self) -> dict[str, Any]:
        """Return all results as JSON has them."""
        return {
            "metric": self.metric,
            "best": None if self.best is None else self.best.number,
            "not_worse": [each.number for each in self.not_worse],
            "importances": self.importances,
            "trials": [asdict(each) for each in self.trials],
        }


def summarize_trials(trials: Trials) -> SearchResults:
    """The results so far."""
    trial_results = tuple(map(_trial_result, trials.all_trials()))
    by_number = {each.number: each for each in trial_results}
    ranked = tuple(by_number[each.number] for each in trials.finished_trials())
    metric = trials.config.metric
    return SearchResults(
        metric,
        trial_results,
        ranked,
        tuple(equally_good_trials(ranked, metric, trials.config.folds)),
        _parameter_importances(trials),
    )


def _trial_result(trial: FrozenTrial) -> TrialResult:
    attributes = read_trial_attributes(trial)
    awaited_trial = None if trial.state.is_finished() else attributes.waits_for
    validations = tuple(trial.intermediate_values[step] for step in sorted(trial.intermediate_values))
    return TrialResult(
        number=trial.number,
        configuration=attributes.configuration or {},
        ended=WAITING_STATUS
        if awaited_trial is not None
        else UNFINISHED_STATE_NAMES.get(trial.state) or attributes.ended or "failed",
        reason=attributes.reason if awaited_trial is None else describe_wait(awaited_trial),
        value=trial.value if trial.state == TrialState.COMPLETE else None,
        values=tuple(attributes.values),
        validations=validations,
        updates=attributes.updates,
        seconds=attributes.seconds,
        began=attributes.began,
        same_as=attributes.same_as,
    )


def comparable_trials(ranked: Sequence[TrialResult]) -> list[TrialResult]:
    """The trials after the best that a test can compare with it: both have several figures."""
    return [each for each in ranked[1:] if len(each.values) > 1 and len(ranked[0].values) > 1]


def equally_good_trials(ranked: Sequence[TrialResult], metric: str, folds: int | None = None) -> list[TrialResult]:
    """Return the best trial, and those after it that a one-sided t-test does not find worse at p < 0.05.

    The test is Welch's over seeds or, where trials share folds, the paired one over folds. With one seed a trial and
    no folds there is no such test: the best alone is returned. A trial of the same configuration as an earlier one is
    passed over.

    Args:
        ranked: the trials, best first.
        metric: the metric of the search.
        folds: the number of folds; None for none.
    """
    if not ranked:
        return []
    best, *_ = ranked
    return [
        best,
        *(
            trial
            for trial in comparable_trials(ranked)
            if _not_worse_p_value(best.values, trial.values, metric, folds) >= SIGNIFICANCE_LEVEL
        ),
    ]


def _not_worse_p_value(best: Sequence[float], other: Sequence[float], metric: str, folds: int | None) -> float:
    """Return p of the other trial not being worse than the best; the unit of the figures makes no difference to it."""
    largest = max(map(abs, (*best, *other)))
    if largest > MAX_SQUARABLE_FIGURE:  # the perplexity of a training that diverges
        best, other = ([each / largest for each in values] for values in (best, other))
    if folds is None:
        return welch_not_worse_p_value(best, other, metric)
    return paired_not_worse_p_value(fold_means(best, folds), fold_means(other, folds), metric)


def fold_means(values: Sequence[float], folds: int) -> list[float]:
    """The mean over seeds in each fold, of values that stand fold after fold."""
    repeats = len(values) // folds
    return [math.fsum(values[start : start + repeats]) / repeats for start in range(0, len(values), repeats)]


def paired_not_worse_p_value(best: Sequence[float], other: Sequence[float], metric: str) -> float:
    """Return p of the other's mean not being worse than the best's, by a one-sided t-test on their differences in each
    fold.

    Trainings on k folds share data, so that the variance of the mean difference is more than s²/k; it is taken to be
    s² (1/k + 1/(k - 1)), for test sets 1/(k - 1) as large as the training set (Nadeau and Bengio 2003). No estimate of
    it is unbiased (Bengio and Grandvalet 2004). 0 or 1 where all differences are equal.

    Args:
        best: figures of the best trial, one a fold.
        other: figures of the other trial, one a fold.
        metric: their name.
    """
    from scipy.stats import t

    sign = 1 if metric in LOWER_IS_BETTER else -1
    differences = [sign * (theirs - mine) for mine, theirs in zip(best, other, strict=True)]
    mean, k = math.fsum(differences) / len(differences), len(differences)
    if len(set(differences)) == 1:
        return 0.0 if mean > 0 else 1.0
    squared = math.fsum((each - mean) ** 2 for each in differences) / (k - 1)
    return float(t.sf(mean / math.sqrt(squared * (1 / k + 1 / (k - 1))), k - 1))


def welch_not_worse_p_value(best: Sequence[float], other: Sequence[float], metric: str) -> float:
    """Return p of the other's mean not being worse than the best's, by Welch's one-sided t-test; 0 or 1 without
    spread.

    Args:
        best: figures of the best trial, one a seed.
        other: figures of the other trial, one a seed.
        metric: their name.
    """
    from scipy.stats import ttest_ind

    sign = 1 if metric in LOWER_IS_BETTER else -1
    best_values, other_values = [sign * each for each in best], [sign * each for each in other]
    if len(set(best_values)) == len(set(other_values)) == 1:
        return 0.0 if other_values[0] > best_values[0] else 1.0
    return float(ttest_ind(other_values, best_values, equal_var=False, alternative="greater").pvalue)


def _parameter_importances(trials: Trials) -> dict[str, float]:
    """Return the share of the figure's variance that each key explains by itself (fANOVA: Hutter et al. 2014), of keys
    that all trials have; what keys do together is in no share.

    Each key is on the scale on which it is drawn. The result is empty if there are fewer than four trained trials,
    or all have one figure.
    """
    trained_trials = [each for each in trials.finished_trials() if DUPLICATE_OF_ATTR not in each.user_attrs]
    if len(trained_trials) < 4 or len({each.value for each in trained_trials}) < 2:
        return {}
    import optuna
    from optuna.importance import FanovaImportanceEvaluator

    shared_keys = set.intersection(*({*each.params} for each in trained_trials))
    varied_keys = sorted(key for key in shared_keys if len({each.params[key] for each in trained_trials}) > 1)
    if not varied_keys:
        return {}
    study = optuna.create_study()  # in memory
    for trial in trained_trials:
        pairs = {key: _to_sampling_scale(trial.params[key], trial.distributions[key]) for key in varied_keys}
        params, distributions = ({key: pair[part] for key, pair in pairs.items()} for part in (0, 1))
        study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=trial.value))
    # not by `get_param_importances`, which makes their sum 1
    importances = FanovaImportanceEvaluator(seed=trials.config.seed).evaluate(study, params=varied_keys)
    return {key: value for key, value in importances.items() if math.isfinite(value)}


def _to_sampling_scale(value: Any, distribution: BaseDistribution) -> tuple[Any, BaseDistribution]:
    """A value with its distribution; the logarithm of one that is drawn by it, which Optuna's fANOVA does not take."""
    if isinstance(distribution, FloatDistribution) and distribution.log:
        return math.log(value), FloatDistribution(math.log(distribution.low), math.log(distribution.high))
    return value, distribution
