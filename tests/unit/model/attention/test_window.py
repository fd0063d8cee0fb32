"""Attention within a window: the mask, the equation, and blocks of long sentences that give the same as the whole."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tfm.model.attention import inner_attention
from tfm.model.attention.explicit_attention import ExplicitAttention
from tfm.model.attention.inner_attention import (
    BlockedAttention,
    FusedAttention,
    choose_inner_attention,
    split_overlapping_blocks,
)
from tfm.model.attention.kv_cache import CacheSlots
from tfm.model.attention.positions import POSITIONS
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.attention.scores import SCORES
from tfm.model.config import RotaryConfig
from tfm.model.layers.dropout import DropoutRng
from tfm.model.layout import FlatLayout, Layout
from tfm.model.masks import Mask, causal_mask, padding_mask

F64 = torch.float64
HEADS, WIDTH = 2, 4
LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=4)


def sees(layout: Any, mask: Mask) -> Tensor:
    """Who may attend to whom, (B or 1, S, S)."""
    width = layout.width if isinstance(layout, Layout) else layout.num_rows
    bias = mask.bias(width, width, torch.zeros((), dtype=F64))
    assert bias is not None
    return (bias == 0).view(-1, width, width).expand(len(layout.lengths) if isinstance(layout, Layout) else 1, -1, -1)


@given(LENGTHS, st.integers(1, 10), st.booleans())
def test_each_position_sees_those_near_it(lengths: list[int], window: int, causal: bool) -> None:
    layout = Layout.from_lengths(torch.tensor(lengths))
    mask = causal_mask(layout) if causal else padding_mask(layout)
    found = sees(layout, mask.restrict_to_window(window))
    for sentence, length in enumerate(lengths):
        for i in range(length):
            near = range(max(0, i - window), 1 + (i if causal else min(length - 1, i + window)))
            assert found[sentence, i].nonzero().flatten().tolist() == list(near)
    assert found.any(2).all(), "padding sees something: a softmax over nothing is no number"
    assert mask.restrict_to_window(window) is mask.restrict_to_window(window)


@given(LENGTHS, st.integers(1, 10), st.booleans(), st.integers(0, 3))
def test_end_to_end_they_see_the_same(lengths: list[int], window: int, causal: bool, filler: int) -> None:
    padded = Layout.from_lengths(torch.tensor(lengths))
    flat = FlatLayout(torch.tensor(lengths), "cpu", sum(lengths) + filler if filler else None)
    whole, end_to_end = (
        sees(each, (causal_mask(each) if causal else padding_mask(each)).restrict_to_window(window))
        for each in (padded, flat)
    )
    begin = 0
    for sentence, length in enumerate(lengths):
        rows = slice(begin, begin + length)
        assert torch.equal(end_to_end[0, rows, rows], whole[sentence, :length, :length])
        assert int(end_to_end[0, rows].sum()) == int(end_to_end[0, rows, rows].sum()), "no other sentence is seen"
        begin += length


def test_in_decoding_positions_count_and_not_slots() -> None:
    own, new_positions = torch.tensor([[4, 1]]), torch.tensor([[3, 3]])
    positions, descent = torch.tensor([[0, 3, 2, 1, 3]]), torch.tensor([[[1, 0, 1, 1, 1], [1, 1, 1, 0, 0]]]).bool()
    slots = CacheSlots(own, new_positions, positions, Mask(allowed=descent[:, None]))
    allowed = slots.window_mask(1).allowed
    assert allowed is not None
    assert allowed[0, 0].tolist() == [[False, False, True, False, True], [False, True, True, False, False]]
    assert slots.window_mask(1) is slots.window_mask(1)
    alone = CacheSlots(own[:, :1], new_positions[:, :1], positions, Mask()).window_mask(2).allowed
    assert alone is not None
    assert alone[0, 0, 0].tolist() == [False, True, True, True, True]


def made(score: str, positions: str, heads: int = HEADS) -> tuple[nn.Module, AttentionPositions, list[Tensor]]:
    torch.manual_seed(3)
    scheme = POSITIONS[positions].attention(HEADS, WIDTH, WIDTH, RotaryConfig()).double()
    for weight in scheme.parameters():
        nn.init.normal_(weight)
    query = torch.randn(2, HEADS, 70, WIDTH, dtype=F64, requires_grad=True)
    key, value = (torch.randn(2, heads, 70, WIDTH, dtype=F64, requires_grad=True) for _ in range(2))
    return SCORES[score](HEADS, WIDTH).double(), scheme, [query, key, value]


PAIRS = [
    *[(score, "none") for score in SCORES],
    *[("scaled_dot", positions) for positions in ("rotary", "alibi", "shaw", "transformer_xl")],
]


@pytest.mark.parametrize(("score", "positions"), PAIRS)
@pytest.mark.parametrize("causal", [True, False])
def test_blocks_are_the_whole(score: str, positions: str, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients too, in every way of computing: block by block as the whole sentence within its mask."""
    monkeypatch.setattr(inner_attention, "MIN_BLOCK_SIZE", 1)
    of_score, scheme, heads = made(score, positions)
    layout, at = Layout.from_lengths(torch.tensor([70, 41])), torch.arange(70)
    whole = choose_inner_attention(of_score, scheme, 0.0, DropoutRng())
    for window in (3, 16, 17):
        mask = (causal_mask(layout) if causal else padding_mask(layout)).restrict_to_window(window)
        weights = [*heads, *scheme.parameters(), *of_score.parameters()]
        results = []
        for way in (whole, BlockedAttention(whole)):
            mixed = layout.unpad(way(*heads, mask, at, at).transpose(1, 2))
            gradients = torch.autograd.grad(mixed.sin().sum(), weights, allow_unused=True)
            results.append([mixed, *[each for each in gradients if each is not None]])
        assert len(results[0]) == len(results[1])
        for one, other in zip(*results, strict=True):
            torch.testing.assert_close(other, one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [True, False])
def test_blocks_and_the_whole_are_the_equation(causal: bool) -> None:
    score, scheme, (query, key, value) = made("scaled_dot", "none", heads=1)
    mask, at, window = Mask(causal=causal).restrict_to_window(16), torch.arange(70), 16
    ways = [
        ExplicitAttention(score, scheme, nn.Identity()),
        FusedAttention(ExplicitAttention(score, scheme, nn.Identity())),
    ]  # type: ignore[arg-type]
    for way in (*ways, *map(BlockedAttention, ways)):
        mixed = way(query, key, value, mask, at, at)
        for t in (0, 1, 15, 16, 17, 40, 63, 64, 69):
            near = slice(max(0, t - window), t + 1 if causal else t + window + 1)
            logits = query[1, 1, t] @ key[1, 0, near].T / WIDTH**0.5
            torch.testing.assert_close(mixed[1, 1, t], logits.softmax(-1) @ value[1, 0, near], rtol=0, atol=1e-12)


def test_only_long_sentences_go_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        inner_attention,
        "split_overlapping_blocks",
        lambda heads, size, parts: asked.append(size) or split_overlapping_blocks(heads, size, parts),
    )
    score, scheme, heads = made("scaled_dot", "none")
    blocked, at = BlockedAttention(choose_inner_attention(score, scheme, 0.0, DropoutRng())), torch.arange(70)
    for window in (None, 18):  # 70 <= 4 * 18
        blocked(*heads, Mask() if window is None else Mask().restrict_to_window(window), at, at)
    assert asked == []
    blocked(*heads, Mask().restrict_to_window(17), at, at)
    assert asked == [17] * 3


@pytest.mark.parametrize("causal", [True, False])
def test_what_is_computed_grows_with_the_length_alone(causal: bool) -> None:
    numbers = []

    class Counting(nn.Module):
        def forward(self, query: Tensor, key: Tensor) -> Tensor:
            logits = query @ key.transpose(-2, -1)
            numbers.append(logits.numel())
            return logits

    blocked = BlockedAttention(choose_inner_attention(Counting(), AttentionPositions(), 0.0, DropoutRng()))
    for length in (160, 320, 640):
        heads = torch.zeros(3, 1, 1, length, 2)
        at = torch.arange(length)
        blocked(*heads, Mask(causal=causal).restrict_to_window(8), at, at)
    assert numbers == [length * 16 * (2 if causal else 3) for length in (160, 320, 640)]
