"""Names that other toolkits have for what keys of recipes say."""

import re
from pathlib import Path

import pytest

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.messages.error_messages import _section_keys, field_at
from tfm.pipeline.recipes.messages.other_names import OTHER_NAMES, keys_of_other_name
from tfm.pipeline.recipes.recipe import Recipe, load_recipe

NAMES = sorted({name for names in OTHER_NAMES.values() for name in names.split()})


def problem(folder: Path, key: str) -> str:
    (folder / "r.toml").write_text('data.path = "corpus"\n')
    with pytest.raises(RecipeError) as caught:
        load_recipe(folder / "r.toml", [f"{key}=1"])
    return str(caught.value)


@pytest.mark.parametrize("key", OTHER_NAMES)
def test_each_name_is_told_its_key(tmp_path: Path, key: str) -> None:
    assert field_at(Recipe, tuple(key.split("."))) is not None
    for name in OTHER_NAMES[key].split():
        said = problem(tmp_path, f"{key.split('.')[0]}.{name}" if "." in key else name)
        assert re.search(rf"is not a key of recipes; did you mean .*\b{re.escape(key)}\b", said)


def test_no_name_is_a_key_of_recipes() -> None:
    assert not {key[-1] for key in _section_keys(Recipe, ())} & set(NAMES)


@pytest.mark.parametrize("key", OTHER_NAMES)
def test_no_name_stands_twice(key: str) -> None:
    names = OTHER_NAMES[key].split()
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("model.num_heads", "model.encoder.heads or model.decoder.heads"),
        ("model.decoder.num_heads", "model.decoder.heads"),
        ("model.encoder.d_ff", "model.encoder.feed_forward_dim"),
        ("training.lr", "training.schedule.peak"),
        ("training.optimizer.lr", "training.schedule.peak"),
        ("lr", "training.schedule.peak"),
        ("decoding.num_beams", "decoding.beam"),
        ("training.beam_size", "decoding.beam"),
        # keys of that name in the section are nearer than neighbors that are spelt nearly so
        ("training.warmup_steps", "training.schedule.warmup_steps"),
        ("training.patience", "training.schedule.patience or training.early_stopping.patience"),
        ("model.rotari", "model.rotary"),
    ],
)
def test_the_nearest_keys_are_told(tmp_path: Path, key: str, meant: str) -> None:
    assert problem(tmp_path, key).endswith(f"did you mean {meant}?")


def test_a_name_may_have_several_keys() -> None:
    assert list(keys_of_other_name("d_model")) == [("model", "encoder", "dim"), ("model", "decoder", "dim")]
    assert not list(keys_of_other_name("d"))
