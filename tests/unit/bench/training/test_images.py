"""The plain loop over images trains the network that ours is, and what it has not is refused."""

from typing import Any

import pytest
import torch

from bench.peers.training.train_images import PlainNetwork
from bench.training.images import check_model
from tests.image_models import CLASSIFIER, DECODERS, SHAPE, V, config_of, images
from tfm.model.build import build, num_parameters
from tfm.pipeline.errors import RecipeError
from tfm.tokenizer.special import PAD_ID


@pytest.mark.parametrize("sizes", [{}, {"blocks": 2, "stride": 2, "channels": (4, 6, 6)}])
@pytest.mark.parametrize("about", [CLASSIFIER, DECODERS["transformer"]], ids=["labels", "captions"])
@pytest.mark.parametrize("encoder", ["patches", "convolution"])
def test_the_plain_network_is_ours(encoder: str, about: dict[str, Any], sizes: dict[str, Any]) -> None:
    config = config_of(encoder, about, vision=sizes)
    check_model(config)
    shape = (SHAPE.height, SHAPE.width, SHAPE.channels)
    plain = PlainNetwork(config.model_dump(mode="json"), shape, V).train()
    assert num_parameters(plain) == num_parameters(build(config, source_vocab=0, target_vocab=V, image=SHAPE))
    captions = torch.tensor([[1, 5, 6], [1, 7, PAD_ID]])
    logits = plain(images(2).float(), captions)
    assert logits.shape == (2, 1 if about is CLASSIFIER else 3, V)
    logits.sum().backward()
    assert all(each.grad is not None for each in plain.parameters())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"norm": "post"}, "model.norm"),
        ({"vision": {"positions": "none"}}, "learned"),
        ({"tie": "none"}, 'tie = "output"'),
        ({"architecture": "recurrent"}, "architecture"),
    ],
)
def test_what_the_plain_loop_has_not_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        check_model(config_of("patches", DECODERS["transformer"], **change))
