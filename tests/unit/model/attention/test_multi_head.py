"""Heads that share keys and values, values of another width, normed queries and keys: their equations, in every way."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tfm.model.attention import explicit_attention, inner_attention
from tfm.model.attention.explicit_attention import ExplicitAttention
from tfm.model.attention.inner_attention import FusedAttention, choose_inner_attention
from tfm.model.attention.kv_cache import CacheSlots, LayerKVCache
from tfm.model.attention.multi_head import HeadShapes, SelfAttention, split_projections
from tfm.model.attention.projections import make_projection
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.attention.scores import SCORES, ScaledDotScore
from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.model.layers.dropout import Dropout, DropoutRng
from tfm.model.layout import Layout
from tfm.model.masks import Mask, causal_mask, padding_mask
from tfm.model.transformer.factory import ModuleFactory

F64 = torch.float64
LAYOUT = Layout.from_lengths(torch.tensor([5, 2, 6]))


def config(score: str = "scaled_dot", **heads: Any) -> ModelConfig:
    qk_norm = heads.pop("qk_norm", False)
    stack = StackConfig(**{"layers": 1, "dim": 12, "heads": 4, "feed_forward_dim": 8, **heads})
    return ModelConfig.model_validate(
        {"encoder": stack, "decoder": stack, "positions": "none", "score": score, "qk_norm": qk_norm}
    )


def attention(wanted: ModelConfig) -> Any:
    torch.manual_seed(0)
    made = ModuleFactory(wanted, F64).self_attention(wanted.encoder, False, 0).double()
    for weight in made.parameters():
        nn.init.normal_(weight)
    return made


def equation(made: SelfAttention, x: Tensor, sees: Tensor) -> Tensor:
    """One sentence (S, D), head by head and query by query."""
    heads, weight, bias = made.heads, made.query_key_value.weight, made.query_key_value.bias
    assert bias is not None
    each, k, v = heads.num_heads // heads.num_kv_heads, heads.key_dim, heads.value_dim
    rows = iter(x @ weight[i] + bias[i] for i in range(len(weight)))
    queries = [torch.stack([next(rows) for _ in range(k)], 1) for _ in range(heads.num_heads)]
    keys = [torch.stack([next(rows) for _ in range(k)], 1) for _ in range(heads.num_kv_heads)]
    values = [torch.stack([next(rows) for _ in range(v)], 1) for _ in range(heads.num_kv_heads)]
    if isinstance(made.query_norm, nn.RMSNorm):
        queries, keys = (
            [each / (each.square().mean(1, keepdim=True) + 1e-5).sqrt() * norm.weight for each in some]  # type: ignore[operator]
            for some, norm in ((queries, made.query_norm), (keys, made.key_norm))
        )
    mixed = []
    for head, query in enumerate(queries):
        logits = (query @ keys[head // each].T / k**0.5).masked_fill(~sees, float("-inf"))
        mixed.append(logits.softmax(-1) @ values[head // each])
    assert made.output.bias is not None
    return torch.cat(mixed, 1) @ made.output.weight.T + made.output.bias


VARIANTS: dict[str, dict[str, Any]] = {
    "as many": {},
    "two groups": {"key_value_heads": 2},
    "one group": {"key_value_heads": 1},
    "wider values": {"value_dim": 5},
    "narrower values": {"value_dim": 2, "key_value_heads": 2},
    "heads that do not divide": {"heads": 5, "key_dim": 4, "value_dim": 3},
    "normed": {"qk_norm": True},
    "all": {"qk_norm": True, "key_value_heads": 2, "key_dim": 6, "value_dim": 5},
}


@pytest.mark.parametrize("few_keys", [0, 64])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", VARIANTS)
def test_self_attention_is_its_equation(
    name: str, causal: bool, few_keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By torch's kernel, by the gradients written out, by the equation, with gradients and without."""
    monkeypatch.setattr(inner_attention, "MAX_KEYS_FOR_SHORT_ATTENTION", few_keys)
    made = attention(config(**VARIANTS[name]))
    assert isinstance(made.mix, FusedAttention)
    x = torch.randn(LAYOUT.num_rows, 12, dtype=F64, requires_grad=True)
    mask, results = causal_mask(LAYOUT) if causal else padding_mask(LAYOUT), []
    want = torch.cat(
        [
            equation(made, rows, torch.ones(len(rows), len(rows)).tril().bool() | (not causal))
            for rows in torch.split(x, LAYOUT.lengths.tolist())
        ]
    )
    with torch.no_grad():
        torch.testing.assert_close(made(x, LAYOUT, mask), want, rtol=0, atol=1e-11)
    for found in (made(x, LAYOUT, mask), want):
        results.append([found, *torch.autograd.grad(found.sin().sum(), [x, *made.parameters()])])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("masked", [Mask(), Mask(causal=True), "padding", "descent"])
@pytest.mark.parametrize("num_queries", [3, 20])
def test_shared_keys_are_keys_repeated(score: str, masked: Mask | str, num_queries: int) -> None:
    torch.manual_seed(1)
    query = torch.randn(2, 6, num_queries, 4, dtype=F64)
    key, value = torch.randn(2, 2, 3, 7, 4, dtype=F64)
    mask = masked if isinstance(masked, Mask) else Mask(allowed=torch.rand(2, 1, 1, 7) < 0.7)
    if masked == "descent":
        mask = Mask(allowed=torch.rand(2, 1, num_queries, 7) < 0.7)
    if mask.allowed is not None:
        mask.allowed[..., 0] = True
    way = choose_inner_attention(SCORES[score](6, 4).double(), AttentionPositions(), 0.0, DropoutRng())
    at = torch.arange(7)
    repeated = key.repeat_interleave(2, 1), value.repeat_interleave(2, 1)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            shared = way(query, key, value, mask, at[:num_queries], at)
            torch.testing.assert_close(shared, way(query, *repeated, mask, at[:num_queries], at), rtol=0, atol=1e-12)


def test_gradients_written_out_take_values_of_another_width() -> None:
    torch.manual_seed(0)
    query, key = (torch.randn(2, 2, n, 4, dtype=F64, requires_grad=True) for n in (3, 5))
    value = torch.randn(2, 2, 5, 3, dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(explicit_attention.ShortSequenceAttention.apply, (query, key, value, None))


def test_gradients_of_all_together() -> None:
    made = attention(config(**VARIANTS["all"]))
    layout = Layout.from_lengths(torch.tensor([2, 1]))
    x = torch.randn(3, 12, dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: made(x, layout, causal_mask(layout)), (x,))


def test_the_cache_holds_the_fewer_heads() -> None:
    wanted = config(key_value_heads=2, value_dim=5)
    made = attention(wanted)
    cache, slots = (
        LayerKVCache(),
        CacheSlots(torch.zeros(3, 1).long(), torch.zeros(3, 1).long(), torch.zeros(3, 1).long(), Mask()),
    )
    made.step(torch.randn(3, 12, dtype=F64), cache, slots)
    keys, values = cache.write(torch.zeros(3, 2, 1, 3, dtype=F64), torch.zeros(3, 2, 1, 5, dtype=F64), slots)
    assert keys.shape == (3, 2, 1, 3)
    assert values.shape == (3, 2, 1, 5)
    model: Any = build(wanted, source_vocab=9, target_vocab=9).double()
    key, value = model.decoder[0].cross_attention.project_memory(torch.randn(13, 12, dtype=F64), LAYOUT)
    assert key.shape == (3, 2, 6, 3)
    assert value.shape == (3, 2, 6, 5)


def test_each_projection_begins_as_wide_as_its_own_fan_out() -> None:
    torch.manual_seed(0)
    weight = make_projection(64, ((4, 16), (1, 16), (1, 4)), torch.float32).weight
    for part, width in zip(torch.split(weight, [64, 16, 4]), (64, 16, 4), strict=True):
        bound = (6 / (64 + width)) ** 0.5
        assert 0.95 * bound < part.abs().max() <= bound
    equal = torch.arange(2 * 3 * 24.0).view(2, 3, 24)
    for one, other in zip(
        split_projections(equal, (2, 4), (2, 4), (2, 4)),
        split_projections(equal, (2, 4), (2, 4), (2, 3), (2, 1)),
        strict=False,
    ):
        if one.shape == other.shape:
            assert torch.equal(one, other)


def test_a_dropout_of_weights_is_of_each_head() -> None:
    """Heads that share keys have weights of their own, and those are dropped."""
    noise = DropoutRng()
    way = ExplicitAttention(ScaledDotScore(), AttentionPositions(), Dropout(0.5, noise)).train()
    query, key, value = torch.zeros(1, 4, 6, 2), torch.zeros(1, 1, 6, 2), torch.ones(1, 1, 6, 1)
    mixed = way(query, key, value, Mask(), torch.arange(6), torch.arange(6))
    assert len({tuple(head.flatten().tolist()) for head in mixed[0]}) == 4


def test_widths_that_do_not_fit_are_refused_with_the_reason() -> None:
    for wrong, reason in (
        ({"heads": 5}, r"heads \(5\) must divide dim \(12\)"),
        ({"heads": 5, "key_dim": 4}, r"heads \(5\) must divide dim \(12\)"),
        ({"key_value_heads": 3}, r"key_value_heads \(3\) must divide heads \(4\)"),
    ):
        with pytest.raises(ValueError, match=reason):
            config(**wrong)
    with pytest.raises(ValueError, match="heads of the encoder are 5 wide"):
        ModelConfig(positions="rotary", encoder=StackConfig(key_dim=5))
    assert ModuleFactory(config(key_value_heads=2, value_dim=5), F64).heads(
        config(key_value_heads=2, value_dim=5).encoder
    ) == (HeadShapes(4, 2, 3, 5))
