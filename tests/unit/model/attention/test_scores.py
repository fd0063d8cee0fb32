"""Each score is its equation, a number at a time, in float64."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tfm.model.attention.explicit_attention import ExplicitAttention
from tfm.model.attention.inner_attention import FusedAttention, choose_inner_attention
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.attention.scores import SCORES
from tfm.model.config import ModelConfig
from tfm.model.layers.dropout import Dropout, DropoutRng
from tfm.model.masks import Mask

HEADS, WIDTH = 3, 4
EQUATIONS: dict[str, Callable[[Any, int, Tensor, Tensor], Tensor]] = {
    "scaled_dot": lambda score, h, q, k: (q * k).sum() / WIDTH**0.5,
    "dot": lambda score, h, q, k: (q * k).sum(),
    "general": lambda score, h, q, k: q @ score.weight[h] @ k,
    "additive": lambda score, h, q, k: (
        score.weight[h, :, 0] @ torch.tanh(score.for_query[h].T @ q + score.for_key[h].T @ k)
    ),
    "distance": lambda score, h, q, k: 1 / torch.sqrt(((q - k) ** 2).sum() + 1e-6),
    "linear_additive": lambda score, h, q, k: score.for_query[h, :, 0] @ q + score.for_key[h, :, 0] @ k,
}


def made(name: str) -> tuple[torch.nn.Module, Tensor, Tensor]:
    torch.manual_seed(1)
    query, key = (torch.randn(2, HEADS, n, WIDTH, dtype=torch.float64, requires_grad=True) for n in (2, 3))
    return SCORES[name](HEADS, WIDTH).double(), query, key


@pytest.mark.parametrize("name", SCORES)
def test_it_is_its_equation(name: str) -> None:
    score, query, key = made(name)
    logits = score(query, key)
    assert logits.shape == (2, HEADS, 2, 3)
    for b, h, t, s in torch.cartesian_prod(*map(torch.arange, logits.shape)).tolist():
        want = EQUATIONS[name](score, h, query[b, h, t], key[b, h, s])
        torch.testing.assert_close(logits[b, h, t, s], want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_its_gradients_are_those_of_its_values(name: str) -> None:
    score, query, key = made(name)
    assert torch.autograd.gradcheck(score, (query, key))


def test_every_head_has_weights_of_its_own() -> None:
    for name in ("general", "additive", "linear_additive"):
        for weight in SCORES[name](HEADS, WIDTH).parameters():
            assert len(weight) == HEADS
            assert len({tuple(head.flatten().tolist()) for head in weight}) == HEADS


def test_in_the_linear_score_the_query_cancels() -> None:
    score, query, key = made("linear_additive")
    mix = ExplicitAttention(score, AttentionPositions(), Dropout(0, DropoutRng()))
    mixed = mix(query, key, key, Mask(), torch.arange(2), torch.arange(3))
    torch.testing.assert_close(mixed[:, :, 0], mixed[:, :, 1], rtol=0, atol=1e-12)


def test_only_the_scaled_dot_product_has_kernels() -> None:
    for name, score in SCORES.items():
        mix = choose_inner_attention(score(HEADS, WIDTH), AttentionPositions(), 0.0, DropoutRng())
        assert isinstance(mix, FusedAttention if name == "scaled_dot" else ExplicitAttention)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"positions": "rotary", "score": "additive"}, 'needs score = "scaled_dot", not "additive"'),
        ({"positions": "shaw", "score": "dot"}, 'needs score = "scaled_dot", not "dot"'),
        ({"positions": "transformer_xl", "score": "general"}, "part of a product of query and key"),
        ({"positions": "rotary", "encoder": {"dim": 6, "heads": 2}}, "heads of the encoder are 3 wide"),
    ],
)
def test_what_does_not_go_together_is_refused_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ModelConfig.model_validate(changes)
