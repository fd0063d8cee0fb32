"""The run that a search makes of its best trial: what is said of the figure that chose it, and when it is refused."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.pipeline.tuning.test_trial import played
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes import chain
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.tuning import search
from tfm.pipeline.tuning.config import SearchConfig
from tfm.pipeline.tuning.search import Search, describe_averaged_runs, train_best
from tfm.pipeline.tuning.trial_records import CONFIGURATION_ATTR

SPACE = {"model.norm": {"choices": ["pre", "post"]}}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, ""),
        ({"repeats": 2}, ", the mean of 2 seeds"),
        ({"folds": 5}, ", the mean of 5 folds"),
        ({"folds": 5, "repeats": 3}, ", the mean of 5 folds and 3 seeds"),
    ],
)
def test_a_figure_of_several_runs_is_called_their_mean(settings: dict[str, int], words: str) -> None:
    about = {"name": "some", "base": "b.toml", "method": "grid", "space": SPACE, **settings}
    assert describe_averaged_runs(SearchConfig.model_validate(about)) == words


@pytest.mark.parametrize("repeats", [1, 2])
def test_used_tests_are_refused_once_their_dataset_is_made_and_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeats: int
) -> None:
    trials, stages = played(tmp_path / "s", repeats=repeats), []
    with trials.claim_trial() as claimed:
        assert claimed is not None
        claimed.trial.set_user_attr(CONFIGURATION_ATTR, {"a": claimed.trial.suggest_int("a", 0, 39)})
        trials.study.tell(claimed.trial, 1.0)
    recipe = Recipe.model_validate({"name": "s-final", "data": {"path": "corpus"}, "training": {"max_steps": 5}})

    def refuse(run: Any, *, again: bool, fingerprint: str | None = None) -> None:
        raise RecipeError(f"{run.folder.name} is refused")

    def run_chain(each: Recipe, *, only: tuple[str, ...] = ("train",), **_: object) -> None:
        stages.append((each.name, only))

    monkeypatch.setattr(search, "make_trial_recipe", lambda *given: recipe)
    monkeypatch.setattr(search, "check_inputs_unchanged", lambda *given: None)
    monkeypatch.setattr(search, "check_tests_unused", refuse)
    monkeypatch.setattr(chain, "run_recipe_stages", run_chain)
    found = Search(trials.config, trials, Path("b"), (), {})
    names = ["s-final"] if repeats == 1 else ["s-final-1", "s-final-2"]
    with pytest.raises(RecipeError, match=f"{names[0]} is refused"):
        train_best(found, (), NullReporter())
    assert stages == [(name, chain.SHARED_STAGES) for name in names]
