"""The samplers of a search, driven through Optuna alone."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.trial import Trial, TrialState

from tfm.pipeline.tuning.config import SearchConfig
from tfm.pipeline.tuning.samplers.draws import scale_from_unit, scale_to_unit, trial_generator
from tfm.pipeline.tuning.samplers.evolution import EvolutionSampler, mutate_value
from tfm.pipeline.tuning.samplers.registry import SAMPLERS, make_sampler
from tfm.pipeline.tuning.samplers.window import WindowSampler


def hill(trial: Trial) -> float:
    """Two keys of 21 values each, best at 17 and 3."""
    return float((trial.suggest_int("a", 0, 20) - 17) ** 2 + (trial.suggest_int("b", 0, 20) - 3) ** 2)


def run(made: BaseSampler, trials: int, objective: Callable[[Trial], float] = hill) -> optuna.Study:
    study = optuna.create_study(sampler=made)
    study.optimize(objective, n_trials=trials)
    return study


def test_each_round_is_drawn_from_a_window_around_the_best_so_far() -> None:
    study = run(WindowSampler(size=5, share=0.3, trials_a_round=6, seed=4), 60)
    for name, middle in (("a", 10), ("b", 10)):
        for begin in range(0, 60, 6):
            before = study.trials[:begin]
            centre = min(before, key=lambda each: (each.value, each.number)).params[name] if before else middle
            left = min(max(centre - 2, 0), 16)
            drawn = [each.params[name] for each in study.trials[begin : begin + 6]]
            assert all(left <= value <= left + 4 for value in drawn), (name, begin)
    assert study.best_value <= 2  # the windows walked there from the middle


def test_a_window_over_a_real_number_keeps_its_width_and_stays_inside() -> None:
    def objective(trial: Trial) -> float:
        return -trial.suggest_float("x", 1e-4, 1.0, log=True)

    study = run(WindowSampler(size=3, share=0.25, trials_a_round=8, seed=2), 40, objective)
    of = FloatDistribution(1e-4, 1.0, log=True)
    for begin in range(0, 40, 8):
        places = [scale_to_unit(each.params["x"], of) for each in study.trials[begin : begin + 8]]
        assert max(places) - min(places) <= 0.25
        assert all(0 <= place <= 1 for place in places)
    assert study.best_params["x"] > 0.5


def test_a_window_over_choices_is_refused() -> None:
    study = optuna.create_study(sampler=WindowSampler(3, 0.3, 4, 1))
    with pytest.raises(ValueError, match="norm has no order"):
        study.ask().suggest_categorical("norm", ["pre", "post"])


def test_children_have_their_parents_values_but_for_mutations() -> None:
    study = run(EvolutionSampler(population=10, survivors=3, mutation=0.0, seed=5), 40)
    for begin in range(10, 40, 10):
        fittest = sorted(study.trials[:begin], key=lambda each: (each.value, each.number))[:3]
        for child in study.trials[begin : begin + 10]:
            pairs = {(one.number, two.number) for one in fittest for two in fittest}
            by = {each.number: each for each in fittest}
            assert any(
                all(child.params[key] in (by[one].params[key], by[two].params[key]) for key in child.params)
                for one, two in pairs
            )


def test_a_mutation_goes_to_a_neighbour_as_often_as_stated() -> None:
    study = run(EvolutionSampler(population=200, survivors=2, mutation=0.3, seed=6), 400)
    parents = sorted(study.trials[:200], key=lambda each: (each.value, each.number))[:2]
    changed = total = 0
    for child in study.trials[200:]:
        for key in ("a", "b"):
            values = {each.params[key] for each in parents}
            if len(values) == 1:
                total += 1
                difference = abs(child.params[key] - next(iter(values)))
                assert difference in (0, 1)
                changed += difference
    assert total >= 200  # both parents agree in one key at least, with this seed
    assert abs(changed / total - 0.3) < 4 * (0.3 * 0.7 / total) ** 0.5


def test_mutations_of_each_kind_of_key() -> None:
    draw = trial_generator(1, 1)
    assert {mutate_value(0, IntDistribution(0, 3), draw) for _ in range(20)} == {1}
    assert {mutate_value(2, IntDistribution(0, 3), draw) for _ in range(50)} == {1, 3}
    assert mutate_value(0, IntDistribution(0, 0), draw) == 0
    assert {mutate_value("a", CategoricalDistribution(["a", "b", "c"]), draw) for _ in range(50)} == {"b", "c"}
    found = [mutate_value(0.5, FloatDistribution(0.0, 1.0), draw) for _ in range(2000)]
    assert np.std(found) == pytest.approx(0.1, rel=0.1)
    assert all(0 <= each <= 1 for each in (mutate_value(0.999, FloatDistribution(0.0, 1.0), draw) for _ in range(50)))


@pytest.mark.parametrize("log", [False, True])
def test_places_of_a_range(log: bool) -> None:
    of = FloatDistribution(0.01, 10.0, log=log)
    assert (scale_to_unit(0.01, of), scale_to_unit(10.0, of)) == (0, 1)
    assert scale_from_unit(0.5, of) == pytest.approx((0.01 * 10) ** 0.5 if log else 5.005)
    for place in (0.0, 0.1, 0.77, 1.0):
        assert scale_to_unit(scale_from_unit(place, of), of) == pytest.approx(place, abs=1e-12)


@pytest.mark.parametrize(
    "method", [pytest.param(each, marks=pytest.mark.slow if each == "gp" else ()) for each in SAMPLERS]
)
def test_stopped_and_gone_on_with_it_draws_the_same(method: str) -> None:
    """The sampler is made anew for each trial, as a worker that starts anew makes it."""
    config = SearchConfig.model_validate(
        {"name": "s", "base": "b", "method": method, "trials": 9, "space": {"a": {"values": [1]}}, "seed": 7}
    )

    def searched(seed: int) -> list[dict[str, float]]:
        study = optuna.create_study()
        for number in range(14):
            study.sampler = make_sampler(config.model_copy(update={"seed": seed}), number)
            trial = study.ask()
            study.tell(trial, hill(trial) + trial.suggest_float("c", 0.0, 1.0))
        return [each.params for each in study.trials]

    assert searched(7) == searched(7)
    assert searched(7) != searched(8)


def test_trials_without_a_figure_are_nobodys_parents() -> None:
    study = optuna.create_study(sampler=EvolutionSampler(population=4, survivors=2, mutation=0.0, seed=1))
    for number in range(4):
        trial = study.ask()
        value = hill(trial)
        study.tell(trial, None if number % 2 else value, state=TrialState.FAIL if number % 2 else TrialState.COMPLETE)
    kept = [each for each in study.trials if each.state == TrialState.COMPLETE]
    drawn: Counter[int] = Counter()
    for _ in range(4):
        trial = study.ask()
        hill(trial)
        drawn[trial.params["a"]] += 1
    assert set(drawn) <= {each.params["a"] for each in kept}
