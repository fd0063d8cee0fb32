"""The lookup of attention: the softmax, or the best key alone with the softmax's gradient."""

from typing import Any

import pytest
import torch

from tfm.model.attention.explicit_attention import ATTENTION_WEIGHT_FUNCTIONS, ExplicitAttention, hard_attention_weights
from tfm.model.attention.inner_attention import FusedAttention, choose_inner_attention
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.attention.scores import ScaledDotScore
from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.model.layers.dropout import DropoutRng
from tfm.model.layout import Layout
from tfm.model.masks import Mask

F64 = torch.float64


def test_the_best_key_gets_all_and_the_first_of_equal_ones() -> None:
    logits = torch.tensor([[0.5, 2.0, -1.0], [3.0, 3.0, 1.0], [float("-inf"), -5.0, float("-inf")]])
    assert hard_attention_weights(logits).tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]


def test_its_gradient_is_that_of_the_softmax_at_the_values_of_the_hard_weights() -> None:
    """The derivative of sum_s w_s v_s with respect to the logits is p * (v - p . v), written out."""
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(4, 7, generator=generator, dtype=F64, requires_grad=True)
    values = torch.randn(7, generator=generator, dtype=F64)
    weights = hard_attention_weights(logits)
    assert set(weights.detach().flatten().tolist()) == {0.0, 1.0}
    (found,) = torch.autograd.grad((weights @ values).sum(), logits)
    p = logits.detach().exp() / logits.detach().exp().sum(1, keepdim=True)
    torch.testing.assert_close(found, p * (values - (p @ values)[:, None]), rtol=0, atol=1e-12)


def test_kernels_of_the_softmax_are_for_the_softmax_alone() -> None:
    for name, lookup in ATTENTION_WEIGHT_FUNCTIONS.items():
        mix = choose_inner_attention(ScaledDotScore(), AttentionPositions(), 0.0, DropoutRng(), lookup=lookup)
        assert isinstance(mix, FusedAttention if name == "soft" else ExplicitAttention)


def test_each_query_gets_the_value_of_its_best_key() -> None:
    generator = torch.Generator().manual_seed(2)
    query, key, value = (torch.randn(2, 3, n, 4, generator=generator, dtype=F64) for n in (5, 6, 6))
    mix = choose_inner_attention(
        ScaledDotScore(), AttentionPositions(), 0.0, DropoutRng(), lookup=hard_attention_weights
    )
    found = mix(query, key, value, Mask(), torch.arange(5), torch.arange(6))
    for sentence in range(2):
        for head in range(3):
            for t in range(5):
                scores = [float(query[sentence, head, t] @ key[sentence, head, s]) for s in range(6)]
                assert torch.equal(found[sentence, head, t], value[sentence, head, scores.index(max(scores))])


@pytest.mark.parametrize("changes", [{}, {"architecture": "recurrent", "recurrent": {"attention": "luong"}}])
def test_every_attention_of_a_network_looks_up_so(changes: dict[str, Any]) -> None:
    stack = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=6)
    config = ModelConfig.model_validate({"encoder": stack, "decoder": stack, "lookup": "hard"} | changes)
    model: Any = build(config, source_vocab=9, target_vocab=9, seed=1)
    equations = [each for each in model.modules() if isinstance(each, ExplicitAttention)]
    assert {each.lookup for each in equations} == {hard_attention_weights}
    layout = Layout.from_lengths(torch.tensor([4]))
    model(torch.tensor([4, 5, 6, 7]), layout, torch.tensor([4, 5, 6, 7]), layout).sum().backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in model.parameters())
