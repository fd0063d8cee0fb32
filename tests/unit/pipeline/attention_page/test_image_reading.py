"""What a model that reads images attends to: the same weights as by hand, and places that lie on the image."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as PillowImage

from tests import image_models
from tests.tiny_model import TEXTS
from tfm.data.images.channel_statistics import ChannelStatistics
from tfm.data.images.decoding import ImageSize
from tfm.data.images.preparation import ImageTransform
from tfm.model.build import build
from tfm.model.layout import Layout
from tfm.pipeline.attention_page.attended import AttentionTrace
from tfm.pipeline.attention_page.image_reading import trace_image_file
from tfm.pipeline.attention_page.page import render_attention_page
from tfm.pipeline.attention_page.picture import choose_view, draw_picture
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import BOS_ID
from tfm.tokenizer.train import train

GREEDY = DecodingConfig(beam=1, max_length=9)
SAYS = "a dog"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A colour image of the shape that the models read: dark, with one bright square of 3 x 3."""
    pixels = np.full((6, 9, 3), 20, np.uint8)
    pixels[3:6, 6:9] = (250, 30, 10)
    PillowImage.fromarray(pixels).save(tmp_path / "ब्लू.png")
    return tmp_path / "ब्लू.png"


def loaded(seen_by: str, about: dict[str, Any], **changes: object) -> LoadedModel:
    config = image_models.config_of(seen_by, about, **changes)
    tokenizer = train(TEXTS, TokenizerConfig(vocab_size=60))
    model = build(config, source_vocab=0, target_vocab=tokenizer.vocab_size, image=image_models.SHAPE, seed=3).eval()
    values = np.array([[[20, 21, 22], [250, 30, 10]]], np.uint8)
    images = ImageTransform(ImageSize(6, 9, 3), ChannelStatistics.from_pixels(values))
    return LoadedModel(model, tokenizer, tokenizer, config, Path("runs/x/model"), images)


def captioner(name: str, seen_by: str = "patches", **changes: object) -> LoadedModel:
    return loaded(seen_by, image_models.DECODERS[name], **changes)


def test_every_word_attends_to_places_of_the_image(file: Path) -> None:
    read = trace_image_file(captioner("transformer"), file, SAYS, GREEDY)
    assert (read.source, read.target) == (str(file), SAYS)
    assert read.image is not None
    assert (read.image.rows, read.image.columns, read.image.side) == (2, 3, 3)
    assert read.image.pixels[3, 6].tolist() == [250, 30, 10]
    assert list(read.axes) == ["encoder", "decoder", "cross"]
    assert [each.text for each in read.axes["cross"].keys][3] == "row 2, column 1"
    assert read.axes["cross"].on_image == ("keys",)
    for each in read.attentions:
        assert each.weights.sum(-1) == pytest.approx(1, abs=1e-5)


def test_the_weights_are_those_of_the_equation(file: Path) -> None:
    model = captioner("transformer")
    read = trace_image_file(model, file, SAYS, GREEDY)
    assert model.images is not None
    network, ids = model.model, [BOS_ID, *model.target_tokenizer.encode(SAYS)]
    layer = network.decoder[0]
    with torch.inference_mode():
        pixels = model.images(torch.from_numpy(model.images.decode_pixels(file)[None].copy()))
        memory = network.encode(pixels, network.source_layout(pixels, torch.ones(1)))
        # what enters cross-attention, caught on the way
        caught: list[torch.Tensor] = []
        hook = layer.cross_attention.register_forward_pre_hook(lambda _, given: caught.append(given[0]))
        target = Layout.from_lengths(torch.tensor([len(ids)]))
        network.decode(torch.tensor(ids), target, memory, network.source_layout(pixels, torch.ones(1)))
        hook.remove()
        queries, keys = layer.cross_attention.query(caught[0]), layer.cross_attention.key_value(memory)[:, :8]
        heads = queries.unflatten(-1, (2, 4)).transpose(0, 1), keys.unflatten(-1, (2, 4)).transpose(0, 1)
        by_hand = (heads[0] @ heads[1].transpose(1, 2) / 2.0).softmax(-1)
    (cross,) = read.layers("cross")
    assert cross.weights == pytest.approx(by_hand.numpy(), abs=1e-5)


@pytest.mark.parametrize("name", ["lstm, bahdanau", "gru, luong"])
def test_a_recurrent_decoder_attends_to_cells_of_the_last_map(file: Path, name: str) -> None:
    read = trace_image_file(captioner(name, "convolution"), file, None, GREEDY)
    assert read.image is not None
    assert (read.image.rows, read.image.columns, read.image.side) == (3, 5, 2)
    assert list(read.axes) == ["encoder", "cross"]
    (cross,) = read.layers("cross")
    assert cross.weights.shape == (2, len(read.axes["cross"].queries), 15)


def test_a_classifier_shows_what_its_patches_attend_to(file: Path) -> None:
    model = loaded("patches", image_models.CLASSIFIER)
    read = trace_image_file(model, file, None, GREEDY)
    assert list(read.axes) == ["encoder"]
    assert read.axes["encoder"].on_image == ("queries", "keys")
    with pytest.raises(RecipeError, match="writes no words"):
        trace_image_file(model, file, SAYS, GREEDY)


def test_what_is_no_image_or_has_no_attention_is_refused(file: Path) -> None:
    with pytest.raises(RecipeError, match="no attention"):
        trace_image_file(captioner("lstm", "convolution", encoder={"layers": 0, "dim": 8}), file, None, GREEDY)
    file.write_bytes(b"no image")
    with pytest.raises(DataError, match="ब्लू"):
        trace_image_file(captioner("transformer"), file, None, GREEDY)


def shown_at(read: AttentionTrace, png: bytes) -> Any:
    """The pictures' pixels in [0, 1]."""
    import io

    return np.asarray(PillowImage.open(io.BytesIO(png)).convert("RGB")) / 255


def test_the_picture_has_the_image_once_for_each_word(file: Path) -> None:
    read = trace_image_file(captioner("transformer"), file, SAYS, GREEDY)
    png = draw_picture(read, choose_view(read))
    assert png == draw_picture(read, choose_view(read))
    reddish = shown_at(read, png)
    red = (reddish[..., 0] > 2.5 * reddish[..., 1]) & (reddish[..., 0] > 0.1)
    columns = np.flatnonzero(red.any(0))
    groups = 1 + int((np.diff(columns) > 5).sum())
    assert groups == min(5, len(read.axes["cross"].queries))


def test_the_page_has_the_image_and_needs_nothing_else(file: Path) -> None:
    read = trace_image_file(captioner("transformer"), file, SAYS, GREEDY)
    page = render_attention_page("Attention", read, choose_view(read), None)
    assert '<figure id="seen">' in page
    assert "src=" not in page
    assert "url(" not in page
    text = trace_image_file(loaded("patches", image_models.CLASSIFIER), file, None, GREEDY)
    assert '"onImage":["queries","keys"]' in render_attention_page("Attention", text, None, None)
