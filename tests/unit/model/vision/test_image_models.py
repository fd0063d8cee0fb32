"""Models that read images: every decoder after every encoder, and classifiers."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.image_models import CLASSIFIER, DECODERS, ENCODERS, NUM_TOKENS, V, images, layout_of, network
from tfm.model.layout import Layout

BOTH = [(encoder, decoder) for encoder in ENCODERS for decoder in DECODERS]
LENGTHS = torch.tensor([4, 2, 5])


def targets(seed: int = 0) -> tuple[Tensor, Layout]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, V, (int(LENGTHS.sum()),), generator=generator), Layout.from_lengths(LENGTHS)


def said(model: Any, pixels: Tensor) -> Tensor:
    """By teacher forcing: log-probabilities of what follows each row (N, V)."""
    ids, layout = targets()
    hidden = model(pixels, layout_of(model, pixels), ids, layout)
    found: Tensor = model.log_probs(hidden)
    return found


@pytest.mark.parametrize(("encoder", "decoder"), BOTH)
def test_cached_decoding_equals_teacher_forcing_through_reordering(encoder: str, decoder: str) -> None:
    model, pixels = network(encoder, DECODERS[decoder]), images(3)
    ids, layout = targets()
    whole = layout.pad(said(model, pixels))
    columns = layout.pad(ids)
    source = model.source_layout(pixels, torch.tensor([9, 9, 9]))
    assert source.lengths.tolist() == [NUM_TOKENS[encoder]] * 3
    state = model.start(pixels, source).select(torch.tensor([0, 0, 1, 1, 2, 2]))
    for step in range(int(LENGTHS.max())):
        wrong = (columns[:, step] + 1 - 4) % (V - 4) + 4
        predict, state = model.step(torch.stack([columns[:, step], wrong], 1).flatten(), state)
        found = predict(slice(None))[::2]
        real = step < LENGTHS
        torch.testing.assert_close(found[real], whole[real, step], rtol=0, atol=1e-10)
        state = state.select(torch.tensor([0, 0, 2, 2, 4, 4]))  # what began with another piece is left


@pytest.mark.parametrize(("encoder", "decoder"), BOTH)
@pytest.mark.few(4)
def test_gradients_reach_everything(encoder: str, decoder: str) -> None:
    model = network(encoder, DECODERS[decoder]).train()
    for seed in range(3):
        ids, layout = targets(seed)
        pixels = images(3, seed)
        hidden = model(pixels, layout_of(model, pixels), ids, layout)
        torch.nn.functional.cross_entropy(model.output(hidden), ids.roll(-1)).backward()
    for name, each in model.named_parameters():
        assert each.grad is not None, name
        assert each.grad.abs().sum() > 0, name


@pytest.mark.parametrize(("encoder", "decoder"), BOTH)
def test_an_image_is_read_alike_in_every_batch_and_every_image_matters(encoder: str, decoder: str) -> None:
    model, pixels = network(encoder, DECODERS[decoder]), images(3)
    ids, _ = targets()
    whole, begin = said(model, pixels), 0
    for number, length in enumerate(LENGTHS.tolist()):
        one = pixels[number : number + 1]
        hidden = model(
            one, layout_of(model, one), ids[begin : begin + length], Layout.from_lengths(torch.tensor([length]))
        )
        torch.testing.assert_close(model.log_probs(hidden), whole[begin : begin + length], rtol=0, atol=1e-11)
        begin += length
    moved = said(model, pixels + torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)[:, None, None, None])
    assert (moved != whole).any(-1).view(-1)[4:6].all()
    assert torch.equal(moved[:4], whole[:4])


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_classifier_gives_one_row_an_image(encoder: str) -> None:
    model, pixels = network(encoder, CLASSIFIER).train(), images(4)
    rows = model(pixels, layout_of(model, pixels))
    assert rows.shape == (4, 8)
    torch.nn.functional.cross_entropy(model.output(rows), torch.arange(4)).backward()
    assert all(each.grad.abs().sum() > 0 for each in model.parameters())
    rows = model.eval()(pixels, layout_of(model, pixels))
    alone = torch.cat([model(each[None], layout_of(model, each[None])) for each in pixels])
    torch.testing.assert_close(rows, alone, rtol=0, atol=1e-11)


def test_a_convolution_may_stand_without_further_layers() -> None:
    stack = {"layers": 0, "dim": 8}
    for about in (CLASSIFIER, *DECODERS.values()):
        model = network("convolution", about, encoder=stack)
        assert not any("encoder.layers.0" in name or name.startswith("encoder.0") for name in model.state_dict())
        assert model.source_layout(images(2), torch.ones(2)).num_rows == 2 * NUM_TOKENS["convolution"]


def test_keys_of_sequences_are_of_the_decoder_alone() -> None:
    """Relative positions, windows and what stands for self-attention count along a line, which an image is not."""
    for change in ({"positions": "alibi"}, {"window": 1}, {"mixing": "convolution", "positions": "none"}):
        plain, other = (network("patches", DECODERS["transformer"], **each) for each in ({}, change))
        pixels = images(2)
        layout = layout_of(plain, pixels)
        assert torch.equal(plain.encode(pixels, layout), other.encode(pixels, layout))
        ids, target = targets()
        pixels = images(3)
        one, two = (each(pixels, layout_of(each, pixels), ids, target) for each in (plain, other))
        assert not torch.allclose(one, two)


def test_without_attention_a_decoder_sees_the_mean_alone() -> None:
    model, pixels = network("patches", DECODERS["lstm"], vision={"positions": "none"}), images(1)
    model.encoder.layers = torch.nn.ModuleList()  # so that the mean is of the patches themselves
    model.encoder.norm = torch.nn.Identity()
    turned = torch.cat([pixels[..., 3:], pixels[..., :3]], dim=-1)  # the same patches in other places
    states = [model.encode(each, layout_of(model, each)) for each in (pixels, turned)]
    for (one, _), (other, _) in [states]:
        for layers in zip(one, other, strict=True):
            for this, that in zip(*layers, strict=True):
                torch.testing.assert_close(this, that, rtol=0, atol=1e-12)
    mean = model.source_embedding(pixels, layout_of(model, pixels).positions).mean(0)
    project = model.bridge.project
    wanted = (mean @ project.weight.t() + project.bias).tanh().chunk(2)
    for found, each in zip(states[0][0][0], wanted, strict=True):
        torch.testing.assert_close(found[0], each, rtol=0, atol=1e-12)
