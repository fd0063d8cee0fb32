"""Attention without some of its projections, against its equation head by head."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.model.layout import Layout
from tfm.model.masks import padding_mask

F64 = torch.float64
HEADS, DIM, V = 2, 8, 12
CHOICES: list[dict[str, Any]] = [
    {},
    {"attention_projections": False},
    {"values": "keys"},
    {"output_projection": False},
    {"attention_projections": False, "output_projection": False},
    {"values": "keys", "output_projection": False},
]


def made(**changes: Any) -> Any:
    stack = StackConfig(layers=1, dim=DIM, heads=HEADS, feed_forward_dim=10)
    config = ModelConfig.model_validate({"encoder": stack, "decoder": stack} | changes)
    return build(config, source_vocab=V, target_vocab=V, seed=4).to(F64).eval()


def attended(attention: Any, queries: Tensor, memory: Tensor, choice: dict[str, Any]) -> Tensor:
    """softmax(q k^T / sqrt(K)) v of one sentence, by the weights of the module; memory: the rows of keys and values."""
    weights = {name: each.detach() for name, each in attention.named_parameters()}

    def linear(name: str, rows: Tensor, part: int) -> Tensor:
        """W x + b of the part of a product, each as wide as rows."""
        some = slice(part * DIM, (part + 1) * DIM)
        return rows @ weights[f"{name}.weight"][some].T + weights[f"{name}.bias"][some]

    if choice.get("attention_projections", True):
        shared = choice.get("values") == "keys"
        is_cross = any(name.startswith("key_value") for name in weights)
        joint = "key_value" if is_cross else "query_key_value"
        joint, first = (f"{joint}.product" if shared else joint), 0 if is_cross else 1
        query = linear("query", queries, 0) if is_cross else linear(joint, queries, 0)
        key = linear(joint, memory, first)
        value = key if shared else linear(joint, memory, first + 1)
    else:
        query, key, value = queries, memory, memory
    width, mixed = DIM // HEADS, []
    for head in range(HEADS):
        q, k, v = (each[:, head * width : (head + 1) * width] for each in (query, key, value))
        scores = (q @ k.T / width**0.5).exp()
        mixed.append(scores / scores.sum(1, keepdim=True) @ v)
    rows = torch.cat(mixed, 1)
    return linear("output", rows, 0) if choice.get("output_projection", True) else rows


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_attention_is_its_equation(choice: dict[str, Any]) -> None:
    layer = made(**choice).decoder[0]
    generator = torch.Generator().manual_seed(1)
    rows, memory = (torch.randn(n, DIM, generator=generator, dtype=F64) for n in (5, 7))
    target, source = (Layout.from_lengths(torch.tensor([n])) for n in (5, 7))
    with torch.no_grad():
        found = layer.attention(rows, target, padding_mask(target))
        torch.testing.assert_close(found, attended(layer.attention, rows, rows, choice), rtol=0, atol=1e-12)
        found = layer.cross_attention(rows, target, memory, source, padding_mask(source, target))
        want = attended(layer.cross_attention, rows, memory, choice)
        torch.testing.assert_close(found, want, rtol=0, atol=1e-12)


def test_what_is_taken_away_has_no_weights() -> None:
    """D^2 + D a product: of queries, keys, values, and the heads' output, in three attentions."""
    product, whole = DIM * DIM + DIM, sum(each.numel() for each in made().parameters())
    for choice, products in zip(CHOICES, (0, 9, 3, 3, 12, 6), strict=True):
        assert whole - sum(each.numel() for each in made(**choice).parameters()) == products * product, choice


def test_without_feed_forward_a_layer_is_attention_in_its_residual() -> None:
    layer = made(feed_forward="none", norm="post").encoder[0]
    rows, layout = torch.randn(5, DIM, dtype=F64), Layout.from_lengths(torch.tensor([5]))
    mixed = layer.attention(rows, layout, padding_mask(layout))
    torch.testing.assert_close(layer(rows, layout, padding_mask(layout)), layer.around_attention.norm(rows + mixed))
    assert {name.split(".")[0] for name, _ in layer.named_parameters()} == {"attention", "around_attention"}
