"""What is said before the first update of a training that will hardly do what is hoped for."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recording_reporter import Listening
from tests.tiny_training import run, training, write_dataset
from tfm.model.config import ModelConfig
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.training.recipe_warnings import recipe_warnings
from tfm.pipeline.training.schedules import SCHEDULES, ScheduleContext
from tfm.pipeline.update_config import ScheduleConfig

ROOT = Path(__file__).parents[4]


def said(total_steps: int = 1000, parameters: int = 1, tokens: int = 1, **schedule: Any) -> list[str]:
    found = ScheduleConfig.model_validate({"warmup_steps": 0, **schedule})
    return list(recipe_warnings(found, total_steps=total_steps, parameters=parameters, tokens=tokens))


def best_rate(config: ScheduleConfig, total_steps: int) -> float:
    return max(SCHEDULES[config.name](step, config, ScheduleContext(total_steps)) for step in range(1, total_steps + 1))


@given(
    st.sampled_from(["constant", "noam", "inverse_sqrt", "plateau", "warmup_stable_decay"]),
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(1, 60),
)
def test_a_peak_that_is_never_reached_is_doubted_and_what_is_advised_reaches_it(
    name: Any, total: int, warmup: int, decay: int
) -> None:
    config = ScheduleConfig(name=name, warmup_steps=warmup, decay_steps=decay, peak=1.0)
    top = best_rate(config.model_copy(update={"decay_steps": 1}), 10_000)  # of a training without an end
    reached = best_rate(config, total) / top
    found = said(total, name=name, warmup_steps=warmup, decay_steps=decay)
    assert bool(found) == (reached < 1 - 1e-9)
    if warmup > total:
        assert f"reaches {total / warmup:.1%} of its peak" in found[0]
        if name != "warmup_stable_decay":
            assert f"{reached:.1%}" in found[0]
    if found and total >= 10:
        better = {"warmup_steps": total // 10, "decay_steps": total // 5}
        assert not said(total, name=name, **better)


def test_a_model_too_large_for_the_data_is_doubted() -> None:
    assert (
        "44,000,000 parameters and an epoch 4,000 tokens, 11,000 a token"
        in said(parameters=44_000_000, tokens=4_000)[0]
    )
    assert not said(parameters=44_000_000, tokens=400_000)


@pytest.mark.slow
def test_it_is_said_once_before_the_first_update(tmp_path: Path) -> None:
    dataset, reporter = write_dataset(tmp_path / "dataset"), Listening()
    schedule = {"name": "linear", "peak": 1e-3, "warmup_steps": 4000}
    config = training(max_steps=2, schedule=schedule, validation={"every_steps": 2, "bleu": False})
    model = ModelConfig.model_validate({"encoder": {"layers": 1}, "decoder": {"layers": 1}})
    run(dataset, tmp_path, config, model=model, reporter=reporter)
    assert len(reporter.warnings) == 3  # the last one is of the model, which has learned nothing
    assert "or has hardly begun" in reporter.warnings[2]
    assert "reaches 0.1% of its peak" in reporter.warnings[0]
    assert "will probably memorise the training data" in reporter.warnings[1]
    again = Listening()
    run(dataset, tmp_path, config.model_copy(update={"log_every": 1}), model=model, reporter=again)
    assert not again.warnings


RECIPES = sorted(file for file in (ROOT / "recipes").rglob("*.toml") if "[search]" not in file.read_text("utf-8"))


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_no_recipe_of_ours_has_a_warm_up_longer_than_its_training(file: Path) -> None:
    recipe = load_recipe(file)
    if recipe.training.max_steps is not None:
        assert not said(recipe.training.max_steps, **recipe.training.schedule.model_dump())


@pytest.mark.slow
def test_a_model_of_a_diverged_training_is_published_with_a_warning(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "dataset")
    warnings = []
    for name, rate in ("fine", 1e-3), ("diverged", 1e3):
        listening = Listening()
        config = training(max_steps=20, schedule={"name": "constant", "peak": rate, "warmup_steps": 0})
        folder = run(dataset, tmp_path / name, config, reporter=listening)
        assert (folder / "manifest.json").exists()
        warnings.append([text for text in listening.warnings if "the training diverged" in text])
    assert not warnings[0]
    (text,) = warnings[1]
    assert text.startswith(f"{tmp_path / 'diverged' / 'model'}: its validation loss is ")
