"""What may stand in self-attention's place: each is its equation, at once and step by step, in every layout."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tfm.model.attention.kv_cache import CacheSlots, LayerKVCache
from tfm.model.config import ModelConfig, RecurrentConfig, StackConfig
from tfm.model.layout import FlatLayout, Layout
from tfm.model.masks import Mask, causal_mask, padding_mask
from tfm.model.transformer.factory import ModuleFactory
from tfm.model.transformer.token_mixing import ConvolutionMixing, gather_windows

F64, DIM = torch.float64, 6
LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=4)
KINDS: dict[str, dict[str, Any]] = {
    "lstm": {"mixing": "recurrent"},
    "gru": {"mixing": "recurrent", "recurrent": RecurrentConfig(cell="gru")},
    "ssru": {"mixing": "recurrent", "recurrent": RecurrentConfig(cell="ssru")},
    "convolution": {"mixing": "convolution", "window": 2},
    "dilated": {"mixing": "convolution", "convolution": {"width": 3, "dilation": 2, "filters": 5}},
}


def made(kind: str, causal: bool, dim: int = DIM) -> Any:
    torch.manual_seed(0)
    stack = StackConfig(layers=2, dim=dim, heads=1, feed_forward_dim=4)
    config = ModelConfig.model_validate({"encoder": stack, "decoder": stack, **KINDS[kind]})
    layer: Any = ModuleFactory(config, F64).mixing(stack, causal=causal, layer_index=1)
    for weight in layer.double().parameters():
        nn.init.normal_(weight)
    return layer


def masked(layout: Any, causal: bool) -> Mask:
    return causal_mask(layout) if causal else padding_mask(layout)


@given(LENGTHS, st.integers(0, 4), st.integers(1, 3), st.sampled_from([None, 2, 5]), st.booleans())
def test_a_convolution_is_its_equation(
    lengths: list[int], reach: int, dilation: int, filters: int | None, causal: bool
) -> None:
    torch.manual_seed(0)
    offsets = range(-reach * dilation, (0 if causal else reach * dilation) + 1, dilation)
    layer, layout = (
        ConvolutionMixing(3, offsets, filters=filters, compute_dtype=F64).double(),
        Layout.from_lengths(torch.tensor(lengths)),
    )
    assert layer.words.bias is not None
    nn.init.normal_(layer.words.bias)
    x = torch.randn(sum(lengths), 3, dtype=F64)
    found = iter(layer(x, layout, masked(layout, causal)))
    for sentence in torch.split(x, lengths):
        for i in range(len(sentence)):
            want = layer.words.bias.clone()
            for place, offset in enumerate(offsets):
                if 0 <= i + offset < len(sentence):
                    want += layer.words.weight[:, 3 * place : 3 * place + 3] @ sentence[i + offset]
            if layer.output is not None:
                want = layer.output.weight @ want.clamp(min=0) + layer.output.bias
            torch.testing.assert_close(next(found), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("table", "number", "causal", "wanted"),
    [
        ({}, 0, False, [-3, -2, -1, 0, 1, 2, 3]),
        ({}, 5, True, [-3, -2, -1, 0]),
        ({"width": 3}, 0, False, [-1, 0, 1]),
        ({"width": 3}, 0, True, [-2, -1, 0]),
        ({"width": 4}, 0, False, [-2, -1, 0, 1]),
        ({"width": 3, "dilation": 3}, 2, False, [-9, 0, 9]),
        ({"width": 2, "dilation": 2}, 3, True, [-8, 0]),
        ({"dilation": 2}, 1, True, [-6, -4, -2, 0]),
    ],
)
def test_a_filter_reads_rows_at_these_distances(
    table: dict[str, int], number: int, causal: bool, wanted: list[int]
) -> None:
    config = ModelConfig.model_validate({"mixing": "convolution", "convolution": table})
    assert list(config.convolution_offsets(number, causal=causal)) == wanted


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("causal", [True, False])
def test_a_recurrent_layer_is_torchs(kind: str, causal: bool) -> None:
    layer, lengths = made(kind, causal, dim=7), [4, 1, 6]
    layout = Layout.from_lengths(torch.tensor(lengths))
    x = torch.randn(11, 7, dtype=F64)
    halves = []
    for cell, backward in zip(layer.cells, (False, True), strict=False):
        theirs = (nn.LSTM if kind == "lstm" else nn.GRU)(7, cell.dim, dtype=F64)
        # their gates stand in another order: i f g o and r z n
        gates = [1, 2, 3, 0] if kind == "lstm" else [0, 1, 2]
        with torch.no_grad():
            for place, gate in enumerate(gates):
                rows, of_ours = (slice(i * cell.dim, (i + 1) * cell.dim) for i in (place, gate))
                theirs.weight_ih_l0[rows] = cell.input.weight[of_ours]
                theirs.weight_hh_l0[rows] = cell.recurrent.weight[of_ours]
                theirs.bias_ih_l0[rows] = cell.input.bias[of_ours]
            theirs.bias_hh_l0.zero_()
        turn = (lambda rows: rows.flip(0)) if backward else (lambda rows: rows)
        halves.append(torch.cat([turn(theirs(turn(sentence))[0]) for sentence in torch.split(x, lengths)]))
    torch.testing.assert_close(layer(x, layout, masked(layout, causal)), torch.cat(halves, 1), rtol=0, atol=1e-12)
    assert len(halves) == 2 - causal


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("causal", [True, False])
def test_its_gradients_are_those_of_its_values(kind: str, causal: bool) -> None:
    layer, layout = made(kind, causal, dim=2), Layout.from_lengths(torch.tensor([3, 1]))
    x = torch.randn(4, 2, dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda *given: layer(given[0], layout, masked(layout, causal)), (x, *layer.parameters())
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
@given(lengths=LENGTHS, filler=st.integers(1, 3), causal=st.booleans())
def test_end_to_end_it_is_the_same(kind: str, lengths: list[int], filler: int, causal: bool) -> None:
    layer, padded = made(kind, causal), Layout.from_lengths(torch.tensor(lengths))
    flat = FlatLayout(torch.tensor(lengths), "cpu", sum(lengths) + filler)
    x = torch.randn(sum(lengths) + filler, DIM, dtype=F64)
    want = layer(x[: sum(lengths)], padded, masked(padded, causal))
    found = layer(x, flat, masked(flat, causal))
    assert found.shape == x.shape
    torch.testing.assert_close(found[: sum(lengths)], want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_after_reading_is_what_reading_more_would_be(kind: str) -> None:
    """From a cache that reading left, of sentences of several lengths."""
    layer, lengths = made(kind, True), [4, 1, 3]
    x, more = torch.randn(8, DIM, dtype=F64), torch.randn(3, DIM, dtype=F64)
    layout = Layout.from_lengths(torch.tensor(lengths))
    read, key_value = layer.prefill(x, layout, causal_mask(layout))
    assert torch.equal(read, layer(x, layout, causal_mask(layout)))
    positions = torch.cat([layout.columns.expand(3, -1), torch.tensor(lengths)[:, None]], 1)
    seen = torch.cat([layout.mask, torch.ones(3, 1).bool()], 1)
    slots = CacheSlots(
        torch.full((3, 1), 4), torch.tensor(lengths)[:, None], positions, Mask(allowed=seen[:, None, None])
    )
    stepped = layer.step(more, LayerKVCache.from_kv(*key_value), slots)
    longer = [torch.cat([sentence, new[None]]) for sentence, new in zip(torch.split(x, lengths), more, strict=True)]
    whole = Layout.from_lengths(torch.tensor(lengths) + 1)
    want = layer(torch.cat(longer), whole, causal_mask(whole))[whole.lengths.cumsum(0) - 1]
    torch.testing.assert_close(stepped, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_never_asked_for_what_it_may_not_see(kind: str) -> None:
    layout, x = Layout.from_lengths(torch.tensor([3])), torch.zeros(3, DIM, dtype=F64)
    with pytest.raises(AssertionError):
        made(kind, causal=False)(x, layout, causal_mask(layout))


@given(LENGTHS, st.integers(-4, 0), st.integers(1, 5))
def test_windows_end_where_sentences_do(lengths: list[int], first: int, stop: int) -> None:
    positions = Layout.from_lengths(torch.tensor(lengths)).positions
    rows = torch.arange(1.0, sum(lengths) + 1)[:, None]
    found = gather_windows(rows, positions, range(first, stop))
    want = []
    for sentence in torch.split(rows[:, 0], lengths):
        for i in range(len(sentence)):
            at = [i + offset for offset in range(first, stop)]
            want.append([float(sentence[j]) if 0 <= j < len(sentence) else 0.0 for j in at])
    assert found.tolist() == want


def test_slots_tell_what_a_row_comes_after() -> None:
    positions = torch.tensor([[0, 1, 1, 2, 2]])
    descent = torch.tensor([[[1, 0, 1, 1, 0], [1, 1, 0, 0, 1]]]).bool()
    slots = CacheSlots(torch.tensor([[3, 4]]), torch.tensor([[2, 2]]), positions, Mask(allowed=descent[:, None]))
    wanted: dict[int, list[int] | None] = {0: [3, 4], 1: [2, 1], 2: [0, 0], 3: None}
    for distance, places in wanted.items():
        slot, found = slots.ancestor_slots(distance)
        assert found.tolist() == [[places is not None] * 2]
        assert places is None or slot[0].tolist() == places
    cache = LayerKVCache.from_kv(torch.arange(5.0).view(1, 1, 5, 1), -torch.arange(10.0).view(1, 1, 5, 2))
    values: list[Tensor | None] = [None if each is None else each[1] for each in (cache.ancestor_kv(1, slots),)]
    assert values[0] is not None
    assert values[0].tolist() == [[-4, -5], [-2, -3]]
    nothing = cache.ancestor_kv(3, slots)
    assert nothing is not None
    assert not nothing[0].any()
    assert LayerKVCache().ancestor_kv(1, slots) is None


def test_what_a_recurrent_layer_cannot_take_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has no window \(3\)"):
        ModelConfig(mixing="recurrent", window=3)
    for halved in ({"mixing": "recurrent"}, {"positions_join": "concatenate"}):
        with pytest.raises(ValueError, match="dim must be 2 or more"):
            ModelConfig.model_validate({**halved, "decoder": StackConfig(dim=1, heads=1)})
