"""The position hooks carry schemes that later rows of POSITIONS need: ALiBi and Shaw, as their papers write them."""

import torch
from torch import Tensor, nn

from tfm.model.attention.explicit_attention import ExplicitAttention
from tfm.model.attention.inner_attention import FusedAttention, choose_inner_attention
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.attention.scores import ScaledDotScore
from tfm.model.layers.dropout import DropoutRng
from tfm.model.masks import Mask


class Alibi(AttentionPositions):
    """Press et al. 2022: logits - slope_h * distance."""

    slopes = torch.tensor([0.5, 0.25], dtype=torch.float64)

    def relative_bias(self, query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        distance = (query_positions[:, None] - key_positions).abs()
        return -self.slopes[:, None, None] * distance


class Shaw(AttentionPositions):
    """Shaw et al. 2018, eq. 3 and 4: relative vectors added to keys and to values."""

    needs_weights = True

    def __init__(self, head_dim: int, reach: int) -> None:
        super().__init__()
        self.reach = reach
        self.for_keys = nn.Parameter(torch.randn(2 * reach + 1, head_dim, dtype=torch.float64))
        self.for_values = nn.Parameter(torch.randn(2 * reach + 1, head_dim, dtype=torch.float64))

    def _relative(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        return (key_positions - query_positions[:, None]).clamp(-self.reach, self.reach) + self.reach

    def relative_bias(self, query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        relative = self.for_keys[self._relative(query_positions, key_positions)]
        return torch.einsum("bhtk,tsk->bhts", query, relative) * query.shape[-1] ** -0.5

    def relative_values(self, weights: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        relative = self.for_values[self._relative(query_positions, key_positions)]
        return torch.einsum("bhts,tsk->bhtk", weights, relative)


def heads() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 2, 5, 4, dtype=torch.float64)
    return query, key, value, torch.arange(5)


def test_alibi_fused_equals_its_equation() -> None:
    query, key, value, positions = heads()
    fused = choose_inner_attention(ScaledDotScore(), Alibi(), 0.0, DropoutRng())
    assert isinstance(fused, FusedAttention)
    got = fused(query, key, value, Mask(causal=True), positions, positions)
    for head, slope in enumerate(Alibi.slopes):
        for t in range(5):
            logits = query[0, head, t] @ key[0, head, : t + 1].T / 2 - slope * (t - torch.arange(t + 1))
            torch.testing.assert_close(
                got[0, head, t], logits.softmax(-1) @ value[0, head, : t + 1], atol=1e-12, rtol=0
            )


def test_shaw_equals_its_equation() -> None:
    query, key, value, positions = heads()
    shaw = Shaw(4, reach=2)
    mix = choose_inner_attention(ScaledDotScore(), shaw, 0.0, DropoutRng())
    assert isinstance(mix, ExplicitAttention)
    got = mix(query, key, value, Mask(), positions, positions)
    for t in range(5):
        relative = [max(-2, min(2, s - t)) + 2 for s in range(5)]
        logits = torch.stack([query[1, 0, t] @ (key[1, 0, s] + shaw.for_keys[relative[s]]) / 2 for s in range(5)])
        weights = logits.softmax(-1)
        want = sum(weights[s] * (value[1, 0, s] + shaw.for_values[relative[s]]) for s in range(5))
        torch.testing.assert_close(got[1, 0, t], want, atol=1e-12, rtol=0)


def test_few_queries_without_gradients_give_the_same() -> None:
    query, key, value, positions = heads()
    for scheme in (Alibi(), AttentionPositions()):
        for mask in (Mask(), Mask(causal=True), Mask(allowed=torch.rand(2, 1, 5, 5) < 0.5 + torch.eye(5))):
            fused = choose_inner_attention(ScaledDotScore(), scheme, 0.0, DropoutRng())
            kernel = fused(query, key, value, mask, positions, positions)
            with torch.inference_mode():
                written = fused(query, key, value, mask, positions, positions)
            torch.testing.assert_close(written, kernel, atol=1e-12, rtol=0)


def test_a_trained_bias_gets_its_gradient_through_the_kernels() -> None:
    class Trained(AttentionPositions):
        """A number for every pair of positions."""

        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(5, 5, dtype=torch.float64))

        def relative_bias(self, query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
            return self.table

    query, key, value, positions = heads()
    scheme, found = Trained(), []
    fused = choose_inner_attention(ScaledDotScore(), scheme, 0.0, DropoutRng())
    assert isinstance(fused, FusedAttention)
    for way in (fused, fused.equation):
        mixed = way(query, key, value, Mask(), positions, positions)
        found.append(torch.autograd.grad(mixed.square().sum(), [scheme.table])[0])
    torch.testing.assert_close(found[0], found[1], atol=1e-12, rtol=0)
