"""Every decoder after every encoder of images decodes what reading all anew at every step finds."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.image_models import DECODERS, ENCODERS, SHAPE, layout_of, network
from tfm.data.images.channel_statistics import ChannelStatistics
from tfm.data.images.decoding import ImageSize
from tfm.data.images.preparation import ImageTransform
from tfm.data.images.row_images import RowImages
from tfm.data.images.store import ImageStore
from tfm.model.layout import Layout
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

LONGEST = 6


def some_images(number: int) -> RowImages:
    shape = ImageSize(SHAPE.height, SHAPE.width, SHAPE.channels)
    pixels = np.random.default_rng(1).integers(0, 256, (number, shape.height, shape.width, 3), np.uint8)
    statistics = ChannelStatistics.from_pixels(pixels)
    return RowImages(ImageStore(pixels, np.arange(number), statistics, {}), ImageTransform(shape, statistics))


def by_reading_anew(model: Any, pixels: torch.Tensor) -> list[int]:
    """Greedy search for one image by teacher forcing."""
    found = [BOS_ID]
    while found[-1] != EOS_ID:
        layout = Layout.from_lengths(torch.tensor([len(found)]))
        hidden = model(pixels, layout_of(model, pixels), torch.tensor(found), layout)
        log_probs = model.log_probs(hidden)[-1]
        log_probs[[PAD_ID, BOS_ID]] = -torch.inf
        found.append(EOS_ID if len(found) > LONGEST else int(log_probs.argmax()))
    return found[1:-1]


@pytest.mark.few(3)
@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_what_is_searched_is_what_the_model_says(encoder: str, decoder: str) -> None:
    model, images = network(encoder, DECODERS[decoder]).float(), some_images(5)
    with torch.no_grad():
        for each in model.parameters():
            each.mul_(2)  # surer than a beginner
    ready = images.preparation(torch.from_numpy(images.take(np.arange(5))))
    with torch.inference_mode():
        wanted = [by_reading_anew(model, each[None]) for each in ready]
    greedy = DecodingConfig(beam=1, max_length=LONGEST)
    for together in (2, 5):
        found = decode(model, images, greedy.model_copy(update={"batch_sentences": together}))
        assert [list(best.ids) for best, *_ in found] == wanted
    assert len({round(best.log_prob, 3) for best, *_ in found}) == 5  # it matters which image it is
    beam = DecodingConfig(beam=4, max_length=LONGEST, length_norm="none")
    together, few = (decode(model, images, beam.model_copy(update={"batch_sentences": each})) for each in (5, 2))
    for (one, *_), (other, *_) in zip(together, few, strict=True):
        assert one.ids == other.ids
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
