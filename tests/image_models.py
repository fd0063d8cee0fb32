"""Small models that read images, of every encoder and every architecture that goes with it."""

from typing import Any

import torch
from torch import Tensor

from tfm.model.build import build
from tfm.model.config import IMAGE_TASKS, ModelConfig
from tfm.model.layout import Layout
from tfm.model.vision.image_shape import ImageShape

V = 17
SHAPE = ImageShape(6, 9, 3)
STACK = {"layers": 1, "dim": 8, "heads": 2, "feed_forward_dim": 12}
ENCODERS: dict[str, dict[str, Any]] = {
    "patches": {"encoder": "patches", "patch": 3},
    "convolution": {"encoder": "convolution", "channels": (4, 6)},
}
NUM_TOKENS = {"patches": 6, "convolution": 15}
DECODERS: dict[str, dict[str, Any]] = {
    "transformer": {"architecture": "transformer"},
    "lstm": {"architecture": "recurrent"},
    "lstm, bahdanau": {"architecture": "recurrent", "recurrent": {"attention": "bahdanau"}, "score": "additive"},
    "gru, luong": {"architecture": "recurrent", "recurrent": {"attention": "luong", "cell": "gru"}},
}
CLASSIFIER = {"architecture": "encoder_only", "task": "classification"}


def config_of(encoder: str, about: dict[str, Any], /, **changes: object) -> ModelConfig:
    """Of a row of ENCODERS, by name, and one of DECODERS, or CLASSIFIER."""
    given = {"encoder": STACK, "decoder": STACK, "tie": "output", "max_length": 16, **about, **changes}
    vision = {**ENCODERS[encoder], **given.pop("vision", {})}  # type: ignore[dict-item]
    assert about["architecture"] in IMAGE_TASKS
    return ModelConfig.model_validate({**given, "vision": vision})


def network(encoder: str, about: dict[str, Any], /, **changes: object) -> Any:
    """In float64, in eval mode."""
    config = config_of(encoder, about, **changes)
    return build(config, source_vocab=0, target_vocab=V, image=SHAPE, seed=3).double().eval()


def images(number: int, seed: int = 0, shape: ImageShape = SHAPE) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(number, shape.channels, shape.height, shape.width, generator=generator, dtype=torch.float64)


def layout_of(model: Any, pixels: Tensor) -> Layout:
    """As tasks and decoding ask for it."""
    found: Layout = model.source_layout(pixels, torch.ones(len(pixels), dtype=torch.long))
    return found
