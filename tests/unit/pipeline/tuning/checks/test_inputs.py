"""Inputs and a base recipe that are not as they were: a search says whose fault it is."""

import json
from pathlib import Path
from typing import Any

import optuna
import pytest

from tfm.pipeline.artifacts.artifact import Input
from tfm.pipeline.errors import DataError
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.tuning.checks.inputs import _fingerprints_by_label, check_base_recipe_unchanged, varies_inputs
from tfm.pipeline.tuning.config import SearchConfig
from tfm.pipeline.tuning.space import make_parameters
from tfm.pipeline.tuning.study import SEARCH_ATTR, Trials


@pytest.mark.parametrize(
    ("key", "is_so"),
    [
        ("data.train.weight", True),
        ("data.batch_tokens", False),
        ("data.temperature", False),
        ("clean.length.min", True),
        ("tokenizer.vocab_size", True),
        ("training.init_from", True),
        ("model.source_vectors", True),
        ("training.guided_alignment.links", True),
        ("model.norm", False),
        ("training.schedule.peak", False),
    ],
)
def test_only_keys_that_say_what_is_read_are_at_fault_where_that_fails(key: str, is_so: bool) -> None:
    assert varies_inputs({"model.dropout.residual": 0.1, key: 1}) == is_so


def test_a_trial_that_starts_from_another_model_is_no_change() -> None:
    """Each path is an input of its own, whichever trial reads it; columns of a dataset are told by keys of the data."""
    models = [{"training.init_from": Input(f"of {name}", name), "train: a": Input("1", None)} for name in "pq"]
    first, second = (_fingerprints_by_label(inputs, "") for inputs in models)
    assert all(second[key] == value for key, value in first.items() if key in second)
    assert first.keys() != second.keys()
    assert _fingerprints_by_label(models[0], '{"data.train.target": "b"}').keys() & first.keys() == {
        "training.init_from: p"
    }


def test_a_key_that_came_later_is_no_change_of_the_base(tmp_path: Path) -> None:
    """A search begun by a tfm that did not have the key goes on; a value that was changed is named."""
    base = tmp_path / "base.toml"
    base.write_text('[data]\npath = "corpus"\n', encoding="utf-8")
    recipe: dict[str, Any] = json.loads(load_recipe(base).model_dump_json(exclude={"name"}))
    recipe["training"].pop("recompute")
    config = SearchConfig.model_validate(
        {"name": "s", "base": "base.toml", "trials": 1, "space": {"model.norm": {"choices": ["pre"]}}}
    )
    study = optuna.create_study()
    study.set_user_attr(SEARCH_ATTR, {"recipe": recipe})
    trials = Trials(config, make_parameters(config.space), tmp_path, study, shares_folder=True)
    check_base_recipe_unchanged(trials, base, ())
    with pytest.raises(DataError, match=r"was changed since this search began \(recipe\.training\.label_smoothing\)"):
        check_base_recipe_unchanged(trials, base, ("training.label_smoothing=0.3",))
