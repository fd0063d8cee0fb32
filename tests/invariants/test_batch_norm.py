"""Running statistics of batch norm are part of what is trained: saved, resumed, averaged and published with weights."""

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.invariants.test_resume import SignalAt
from tests.killing import result
from tests.tiny_training import MODEL, run, training
from tfm.pipeline.errors import RecipeError, StoppedError
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.training.checks import check_batch_norm

pytestmark = pytest.mark.usefixtures("no_curves")

BATCH = MODEL.model_copy(update={"normalization": "batch"})
KEPT: dict[str, dict[str, Any]] = {
    "last": {},
    "moving average": {"ema": 0.9},
    "mean of checkpoints": {"keep": {"last": 3, "average": "last"}, "save_every": 3},
}


@pytest.mark.parametrize(
    "kept",
    [*(pytest.param(each, marks=pytest.mark.slow) for each in ("last", "mean of checkpoints")), "moving average"],
)
@pytest.mark.slow
def test_resumed_it_is_the_same_to_the_bit(kept: str, dataset: Path, tmp_path: Path) -> None:
    config = training(**KEPT[kept])
    run(dataset, tmp_path / "straight", config, model=BATCH)
    with pytest.raises(StoppedError):
        run(dataset, tmp_path / "resumed", config, model=BATCH, reporter=SignalAt(7, signal.SIGTERM))
    run(dataset, tmp_path / "resumed", config, model=BATCH)
    assert result(tmp_path / "resumed") == result(tmp_path / "straight")


@pytest.mark.few(1)
@pytest.mark.parametrize("kept", KEPT)
def test_what_is_published_has_the_statistics_of_training(kept: str, dataset: Path, tmp_path: Path) -> None:
    made = run(dataset, tmp_path, training(**KEPT[kept]), model=BATCH)
    weights = load_file(made / "model.safetensors")
    statistics = {name: each for name, each in weights.items() if name.endswith((".mean", ".variance"))}
    assert len(statistics) == 2 * (2 + 3 + 2)
    for name, each in statistics.items():
        assert each.isfinite().all()
        assert not torch.allclose(each, torch.full_like(each, float(name.endswith(".variance"))))
    loaded = load_model(made, "cpu").model.state_dict()
    assert all(torch.equal(loaded[name], each) for name, each in weights.items())


@pytest.mark.parametrize(
    ("changes", "processes", "reason"),
    [
        ({"accumulate": 3}, 1, "training.accumulate must be 1, not 3"),
        ({"batch_growth": {"steps": [5]}}, 1, "remove training.batch_growth"),
        ({"r_drop": 1.0}, 1, "with training.r_drop a batch is read twice"),
        ({"layout": "flat"}, 1, 'training.layout = "flat" adds filler'),
        ({}, 2, "it needs one process, not 2"),
    ],
)
def test_what_takes_its_statistics_apart_is_refused(
    changes: dict[str, Any], processes: int, reason: str, dataset: Path, tmp_path: Path
) -> None:
    config = training(**changes)
    with pytest.raises(RecipeError, match=reason):
        check_batch_norm("model.normalization", config, processes)
    check_batch_norm(None, config, processes)
    if processes > 1:
        return
    with pytest.raises(RecipeError, match=reason):
        run(dataset, tmp_path, config, model=BATCH)
    recipe = tmp_path / "some.toml"
    recipe.write_text('data.path = "corpora"\nmodel.normalization = "batch"\n', "utf-8")
    load_recipe(recipe)
    ((key, value),) = changes.items()
    as_toml = "{ steps = [5] }" if isinstance(value, dict) else value
    with pytest.raises(RecipeError, match=reason):
        load_recipe(recipe, [f"training.{key}={as_toml}"])
