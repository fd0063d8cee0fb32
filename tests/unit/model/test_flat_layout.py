"""Sentences end to end compute what padded ones do, by torch's kernels or one that takes them as they lie."""

from types import ModuleType
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from tfm.data.batching.batches import pair_batch_from_ids
from tfm.model.attention.inner_attention import (
    FusedAttention,
    VarlenAttention,
    choose_inner_attention,
    load_varlen_kernel,
)
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.attention.scores import ScaledDotScore
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, PositionsName, StackConfig
from tfm.model.layers.dropout import DropoutRng
from tfm.model.layout import AnyLayout, FlatLayout, Layout
from tfm.model.masks import Mask, causal_mask, padding_mask
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.translation import Translation

SOURCE, TARGET = torch.tensor([4, 1, 6]), torch.tensor([2, 5, 3])


def network(attention: float = 0.0, positions: PositionsName = "sinusoidal", **more: Any) -> torch.nn.Module:
    heads = {name: more.pop(name, None) for name in ("key_value_heads", "value_dim")}
    stack = StackConfig(layers=2, dim=16, heads=2, feed_forward_dim=24, **heads)
    none = DropoutConfig(residual=0, embedding=0, attention=attention, feed_forward=0)
    config = ModelConfig(encoder=stack, decoder=stack, dropout=none, positions=positions, max_length=16, **more)
    return build(config, source_vocab=30, target_vocab=30, seed=3).double()


def one_by_one(
    query: Tensor, key: Tensor, value: Tensor, queries: FlatLayout, keys: FlatLayout, window: tuple[int, int]
) -> Tensor:
    """What flash attention does, sentence by sentence: offsets say where each begins."""
    mixed = torch.zeros_like(query)
    back, ahead = (10**6 if reach == -1 else reach for reach in window)
    for sentence in range(len(queries.offsets) - 1):
        q, k = (slice(*each.offsets[sentence : sentence + 2].tolist()) for each in (queries, keys))
        logits = torch.einsum("thk,shk->hts", query[q], key[k]) * query.shape[-1] ** -0.5
        after = torch.arange(logits.shape[2]) - torch.arange(logits.shape[1])[:, None]
        logits = logits.masked_fill((after > ahead) | (after < -back), float("-inf"))
        mixed[q] = torch.einsum("hts,shk->thk", logits.softmax(-1), value[k])
    return mixed


WAYS: dict[str, dict[str, Any]] = {
    "torch": {},
    "equation": {"attention": 0.1},
    "kernel": {},
    "kernel, within a window": {"window": 2},
    "kernel, heads in groups": {"key_value_heads": 1},
    "window": {"window": 2},
    "values of another width": {"value_dim": 5},
    "normed queries and keys": {"qk_norm": True},
    "recurrent": {"mixing": "recurrent"},
    "convolution": {"mixing": "convolution", "window": 2},
    "concatenated": {"positions_join": "concatenate"},
    **{name: {"positions": name} for name in get_args(PositionsName)},
    **{f"{name}, within a window": {"positions": name, "window": 2} for name in ("rotary", "alibi", "shaw")},
}


@pytest.mark.few(12)
@pytest.mark.parametrize("num_rows", [None, 12, 40])
@pytest.mark.parametrize("way", WAYS)
def test_flat_equals_padded(num_rows: int | None, way: str) -> None:
    model = network(**WAYS[way]).eval()
    if way.startswith("kernel"):
        found = [
            (module, name, mix)
            for module in model.modules()
            for name, mix in module.named_children()
            if isinstance(mix, FusedAttention)
        ]
        assert len(found) == 6
        for module, name, mix in found:
            setattr(module, name, VarlenAttention(mix, torch.float64, one_by_one))  # type: ignore[arg-type]
    results = []
    generator = torch.Generator().manual_seed(1)
    source, target = (torch.randint(4, 30, (int(each.sum()),), generator=generator) for each in (SOURCE, TARGET))
    weights = torch.randn(10, 16, dtype=torch.float64, generator=generator)
    for flat in (False, True):
        layouts: list[AnyLayout] = [
            FlatLayout(x, "cpu", num_rows) if flat else Layout.from_lengths(x) for x in (SOURCE, TARGET)
        ]
        filler = [layout.num_rows - len(ids) for layout, ids in zip(layouts, (source, target), strict=True)]
        hidden = model(
            torch.nn.functional.pad(source, (0, filler[0])),
            layouts[0],
            torch.nn.functional.pad(target, (0, filler[1])),
            layouts[1],
        )
        assert hidden.isfinite().all()
        model.zero_grad()
        (hidden[:10] * weights).sum().backward()
        results.append([hidden[:10], *(parameter.grad for parameter in model.parameters())])
    for padded, flat_one in zip(*results, strict=True):
        torch.testing.assert_close(flat_one, padded, rtol=0, atol=1e-10)


@pytest.mark.parametrize("num_rows", [11, 30])
def test_filler_adds_nothing_to_the_loss_or_any_gradient(num_rows: int) -> None:
    model, batch = network().train(), pair_batch_from_ids([[4, 5, 6], [7]], [[8], [9, 10, 11, 12]])
    results = []
    for rows in (None, num_rows):
        model.zero_grad()
        loss = Translation(CrossEntropy(0.1), rows).loss(model, batch)  # type: ignore[arg-type]
        loss.sum.backward()
        assert loss.count == 7
        results.append([loss.sum, loss.nll, *(parameter.grad for parameter in model.parameters())])
    for plain, filled in zip(*results, strict=True):
        torch.testing.assert_close(filled, plain, rtol=0, atol=1e-10)


def test_all_batches_of_so_many_rows_have_one_shape() -> None:
    shapes = set()
    for lengths in ([9, 3], [2] * 9, [1, 1], [19]):
        layout = FlatLayout(torch.tensor(lengths), "cpu", 20)
        assert layout.offsets[: len(lengths) + 2].tolist() == [*[0, *torch.tensor(lengths).cumsum(0).tolist()], 20]
        assert layout.sentence.tolist() == [*torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))] + [
            len(lengths)
        ] * (20 - sum(lengths))
        assert int(layout.positions.max()) < max(lengths)
        shapes.add(tuple(each.shape for each in (layout.offsets, layout.positions, layout.sentence, layout.columns)))
    assert len(shapes) == 1
    with pytest.raises(ValueError, match="no room"):
        FlatLayout(torch.tensor([10, 10]), "cpu", 20)


def test_where_there_is_no_kernel_the_padded_ways_do_it() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 2, 5, 4, dtype=torch.float64)
    mix = choose_inner_attention(ScaledDotScore(), AttentionPositions(), 0.0, DropoutRng(), torch.bfloat16)
    assert isinstance(mix, VarlenAttention)
    at = torch.arange(5)
    want = mix.fallback(query, key, value, Mask(causal=True), at, at)
    assert torch.equal(mix(query, key, value, Mask(causal=True), at, at), want)
    asked = VarlenAttention(mix.fallback, torch.bfloat16, one_by_one)  # padded batches never reach it
    assert torch.equal(asked(query, key, value, Mask(causal=True), at, at), want)
    assert isinstance(choose_inner_attention(ScaledDotScore(), AttentionPositions(), 0.0, DropoutRng()), FusedAttention)


@pytest.mark.parametrize("old", [True, False])
def test_the_kernel_of_torch_is_asked_in_the_words_of_its_version(old: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def of_old(q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor, max_q: int, max_k: int, is_causal: bool = False) -> Tensor:  # fmt: skip  # noqa: E501
        asked.append((cu_q.tolist(), cu_k.tolist(), max_q, max_k, is_causal))
        return q

    def of_now(q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor, max_q: int, max_k: int, *, window_size: tuple[int, int] = (-1, -1)) -> Tensor:  # fmt: skip  # noqa: E501
        asked.append((cu_q.tolist(), cu_k.tolist(), max_q, max_k, window_size))
        return q

    module = ModuleType("varlen")
    module.varlen_attn = of_old if old else of_now  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "torch.nn.attention.varlen", module)
    kernel = load_varlen_kernel.__wrapped__()
    assert kernel is not None
    queries, keys = FlatLayout(torch.tensor([2, 3])), FlatLayout(torch.tensor([4, 1]))
    rows = torch.zeros(5, 2, 4)
    kernel(rows, rows, rows, queries, keys, (-1, -1))
    kernel(rows, rows, rows, keys, keys, (-1, 0))
    windowed = kernel(rows, rows, rows, keys, keys, (3, 0))
    assert (windowed is None) == old, "one without windows says so"
    said = [False, True] if old else [(-1, -1), (-1, 0), (3, 0)]
    ends = [([0, 2, 5], [0, 4, 5], 3, 4), *[([0, 4, 5], [0, 4, 5], 4, 4)] * 2]
    assert asked == [(*each, word) for each, word in zip(ends, said, strict=False)]
    monkeypatch.setitem(__import__("sys").modules, "torch.nn.attention.varlen", None)
    assert load_varlen_kernel.__wrapped__() is None


def test_masks_say_which_rows_lie_together() -> None:
    queries, keys = FlatLayout(torch.tensor([2, 1])), FlatLayout(torch.tensor([1, 2]))
    like = torch.zeros(())
    cross = padding_mask(keys, queries).bias(3, 3, like)
    own = causal_mask(queries).bias(3, 3, like)
    assert cross is not None
    assert own is not None
    assert (cross[0, 0] == 0).tolist() == [[True, False, False], [True, False, False], [False, True, True]]
    assert (own[0, 0] == 0).tolist() == [[True, False, False], [True, True, False], [False, False, True]]
