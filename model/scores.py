"""Attention scores: how well a query matches a key."""

from collections.abc import Callable

from torch import Tensor, nn


class ScaledDot(nn.Module):
    """score(q, k) = q . k / sqrt(K)   (Vaswani et al. 2017, eq. 1)."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """(B, H, T, K), (B, H, S, K) -> logits (B, H, T, S)."""
        logits: Tensor = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)
        return logits


SCORES: dict[str, Callable[[], nn.Module]] = {"scaled_dot": ScaledDot}
