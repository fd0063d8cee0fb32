"""Keys of [model] that an image makes idle, or that are idle in one encoder of images, are refused with the reason."""

from pathlib import Path

import pytest

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import Recipe, load_recipe

SCENES = 'format = "generated", path = "scenes", size = 9'
BASE = f"""
[data]
train = [{{ {SCENES}, split = "train" }}]
valid = {{ {SCENES}, split = "valid" }}
tests.main = {{ {SCENES}, split = "test" }}
images = {{ height = 48, width = 48 }}
[model]
tie = "output"
vision.encoder = "ENCODER"
encoder = {{ layers = LAYERS, dim = 8, heads = 2, feed_forward_dim = 6 }}
"""
WITHOUT_LAYERS = ("model.vision.encoder=convolution", "model.encoder.layers=0")
LABELS = ("model.architecture=encoder_only", "model.task=classification", "model.tie=all")
LSTM = ("model.architecture=recurrent",)
IDLE = [
    ((), "model.vision.channels=[4]"),
    ((), "model.vision.blocks=2"),
    ((), "model.vision.stride=2"),
    (("model.vision.encoder=convolution",), "model.vision.patch=4"),
    (LABELS, "model.positions=none"),
    (LABELS, "model.window=2"),
    (LABELS, "model.mixing=convolution"),
    (LABELS, "model.scale_embedding=false"),
    (LABELS, "model.embedding_dim=4"),
    (LABELS, "model.decoder.dim=4"),
    ((*LABELS, *WITHOUT_LAYERS), "model.activation=gelu"),
    ((*LABELS, *WITHOUT_LAYERS), "model.score=dot"),
    ((*LABELS, *WITHOUT_LAYERS), "model.dropout.residual=0.3"),
    (WITHOUT_LAYERS, "model.encoder.heads=4"),
    (WITHOUT_LAYERS, "model.encoder.feed_forward_dim=4"),
    (LSTM, "model.positions=none"),
    (LSTM, "model.decoder.feed_forward_dim=4"),
    ((*LSTM, *WITHOUT_LAYERS), "model.score=dot"),
    ((*LSTM, *WITHOUT_LAYERS), "model.activation=gelu"),
]
USED = [
    ((), "model.positions=alibi"),
    ((), "model.mixing=convolution", "model.positions=none"),
    (LABELS, "model.activation=gelu"),
    (WITHOUT_LAYERS, "model.activation=gelu"),
    (WITHOUT_LAYERS, "model.normalization=rms"),
    (LSTM, "model.score=dot"),
    (LSTM, "model.encoder.feed_forward_dim=4"),
    (LSTM, "model.normalization=rms"),
    ((*LSTM, *WITHOUT_LAYERS, "model.recurrent.attention=luong"), "model.score=dot"),
]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    file = tmp_path / "images.toml"
    file.write_text(BASE.replace("ENCODER", "patches").replace("LAYERS", "1"))
    return file


@pytest.mark.parametrize(("beside", "idle"), IDLE, ids=str)
def test_idle_keys_are_refused(base: Path, beside: tuple[str, ...], idle: str) -> None:
    assert isinstance(load_recipe(base, beside), Recipe)
    with pytest.raises(RecipeError, match=rf"^--set {idle.partition('=')[0]}=.* has no effect with .*Remove it"):
        load_recipe(base, [*beside, idle])


@pytest.mark.parametrize("sets", USED, ids=str)
def test_keys_that_are_used_are_not(base: Path, sets: tuple[tuple[str, ...], str]) -> None:
    beside, *more = sets
    assert isinstance(load_recipe(base, [*beside, *more]), Recipe)
