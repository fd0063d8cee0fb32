"""Each key of [model.vision] changes the network, or is refused with the reason where it would not."""

from typing import Any

import pytest
import torch

from tests.image_models import CLASSIFIER, SHAPE, config_of, images, layout_of, network
from tfm.model.build import build
from tfm.model.config import ModelConfig, VisionConfig
from tfm.model.vision.image_shape import ImageShape, num_tokens, shape_problem

CHANGES: dict[str, tuple[str, object]] = {
    "patch": ("patches", 1),
    "channels": ("convolution", (4, 6, 8)),
    "blocks": ("convolution", 2),
    "stride": ("convolution", 2),
    "positions": ("patches", "sinusoidal"),
}


def features(encoder: str, **vision: object) -> torch.Tensor:
    model, pixels = network(encoder, CLASSIFIER, vision=vision), images(2)
    found: torch.Tensor = model(pixels, layout_of(model, pixels))
    return found


@pytest.mark.parametrize("key", CHANGES)
def test_each_key_changes_the_network(key: str) -> None:
    encoder, other = CHANGES[key]
    assert set(CHANGES) | {"encoder"} == set(VisionConfig.model_fields)
    assert not torch.equal(features(encoder), features(encoder, **{key: other}))
    assert torch.equal(features(encoder), features(encoder))


@pytest.mark.parametrize("encoder", ["patches", "convolution"])
def test_each_scheme_of_positions_is_another(encoder: str) -> None:
    found = [features(encoder, positions=each) for each in ("none", "learned", "sinusoidal")]
    assert not any(torch.allclose(one, other) for one, other in ((found[0], found[1]), (found[1], found[2])))


@pytest.mark.parametrize("sizes", [{"channels": (4,)}, {"channels": (4, 4, 4)}, {"stride": 3}, {"stride": 2}])
@pytest.mark.parametrize("encoder", ["patches", "convolution"])
@pytest.mark.few(4)
def test_the_number_of_tokens_is_known_without_the_network(encoder: str, sizes: dict[str, Any]) -> None:
    config = config_of(encoder, CLASSIFIER, vision=sizes)
    assert config.vision is not None
    for shape in (SHAPE, ImageShape(3, 12, 1), ImageShape(27, 15, 3)):
        model: Any = build(config, source_vocab=0, target_vocab=9, image=shape)
        assert model.embedding.num_tokens == num_tokens(config.vision, shape)
        pixels = images(2, shape=shape).float()
        assert len(model.encode(pixels, layout_of(model, pixels))) == 2 * num_tokens(config.vision, shape)


@pytest.mark.parametrize("shape", [ImageShape(7, 9, 3), ImageShape(6, 10, 3)])
def test_patches_that_do_not_divide_an_image_are_refused(shape: ImageShape) -> None:
    config = ModelConfig.model_validate({"vision": {"patch": 3}, "tie": "output"})
    assert config.vision is not None
    problem = shape_problem(config.vision, shape)
    assert problem is not None
    assert f"patch = 3 does not divide images of {shape.height} x {shape.width}" in problem
    with pytest.raises(ValueError, match="does not divide"):
        build(config, source_vocab=0, target_vocab=9, image=shape)
    assert shape_problem(config.vision, SHAPE) is None
    assert shape_problem(VisionConfig(encoder="convolution"), shape) is None


def test_images_and_text_are_not_taken_for_one_another() -> None:
    with pytest.raises(ValueError, match="needs the shape"):
        build(ModelConfig.model_validate({"vision": {}, "tie": "output"}), source_vocab=9, target_vocab=9)
    with pytest.raises(ValueError, match=r"images need \[model.vision\]"):
        build(ModelConfig(), source_vocab=9, target_vocab=9, image=SHAPE)
