"""Attention scores: how well a query matches a key.

Each has separate weights for every head. Legend: B sentences · H heads · T queries · S keys · K width of a head.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

SQUARED_DISTANCE_EPS = 1e-6


class ScaledDotScore(nn.Module):
    """score(q, k) = q . k / sqrt(K)   (Vaswani et al. 2017, eq. 1)."""

    def __init__(self, heads: int = 1, head_dim: int = 1) -> None:
        super().__init__()

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """(B, H, T, K), (B, H, S, K) -> logits (B, H, T, S)."""
        logits: Tensor = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)
        return logits


class DotScore(nn.Module):
    """score(q, k) = q . k   (Luong et al. 2015, eq. 8, dot)."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """(B, H, T, K), (B, H, S, K) -> logits (B, H, T, S)."""
        return query @ key.transpose(-2, -1)


class GeneralScore(nn.Module):
    """score(q, k) = q^T W k   (Luong et al. 2015, eq. 8, general)."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__()
        self.weight = _xavier_parameter(heads, head_dim, head_dim)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """(B, H, T, K), (B, H, S, K) -> logits (B, H, T, S)."""
        logits: Tensor = (query @ self.weight) @ key.transpose(-2, -1)
        return logits


class AdditiveScore(nn.Module):
    """score(q, k) = w^T tanh(W_q q + W_k k)   (Bahdanau et al. 2015, appendix A.1.2).

    The layer within the tanh is as wide as a head; the logits take (B, H, T, S, K) numbers on their way.
    """

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__()
        self.for_query, self.for_key = (
            _xavier_parameter(heads, head_dim, head_dim),
            _xavier_parameter(heads, head_dim, head_dim),
        )
        self.weight = _xavier_parameter(heads, head_dim, 1)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """(B, H, T, K), (B, H, S, K) -> logits (B, H, T, S)."""
        inner = (query @ self.for_query).unsqueeze(3) + (key @ self.for_key).unsqueeze(2)
        logits: Tensor = (inner.tanh() @ self.weight.unsqueeze(1)).squeeze(-1)
        return logits


class LinearAdditiveScore(nn.Module):
    """score(q, k) = w_q^T q + w_k^T k.

    The softmax over keys takes no notice of a term added to all of them: the query cancels, and every query gets the
    same mixture. The score is offered to show just that.
    """

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__()
        self.for_query, self.for_key = _xavier_parameter(heads, head_dim, 1), _xavier_parameter(heads, head_dim, 1)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """(B, H, T, K), (B, H, S, K) -> logits (B, H, T, S)."""
        logits: Tensor = query @ self.for_query + (key @ self.for_key).transpose(-2, -1)
        return logits


class DistanceScore(nn.Module):
    """score(q, k) = 1 / sqrt(|q - k|^2 + 10^-6): of weather stations the nearest tells most.

    The constant keeps the score of a key that is the query itself finite, 1,000.
    """

    def __init__(self, heads: int = 1, head_dim: int = 1) -> None:
        super().__init__()

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """(B, H, T, K), (B, H, S, K) -> logits (B, H, T, S)."""
        differences = query.unsqueeze(3) - key.unsqueeze(2)
        logits: Tensor = (differences.square().sum(-1) + SQUARED_DISTANCE_EPS).rsqrt()
        return logits


def _xavier_parameter(heads: int, rows: int, columns: int) -> nn.Parameter:
    """Return a parameter (H, rows, columns), each head Glorot-initialized."""
    weight = torch.empty(heads, rows, columns)
    for head in weight:
        nn.init.xavier_uniform_(head)
    return nn.Parameter(weight)


SCORES: dict[str, Callable[[int, int], nn.Module]] = {
    "scaled_dot": ScaledDotScore,
    "dot": DotScore,
    "general": GeneralScore,
    "additive": AdditiveScore,
    "linear_additive": LinearAdditiveScore,
    "distance": DistanceScore,
}
"""By name: (heads, head_dim) -> a score."""
