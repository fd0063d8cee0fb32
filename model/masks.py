"""Who may attend to whom. One convention: True = may attend."""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.layout import Layout


@dataclass(frozen=True)
class Mask:
    """A mask over (B, H, T, S) that is written out only where a kernel needs it.

    causal: query t sees keys 0..t. allowed: (B, 1, 1 or T, S) bool, or None where every key is real.
    """

    causal: bool = False
    allowed: Tensor | None = None

    def tensor(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """The whole mask, broadcastable to (B, H, T, S), or None where all may attend to all."""
        if not self.causal:
            return self.allowed
        below = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device).tril()
        return below if self.allowed is None else below & self.allowed


def padding_mask(layout: Layout) -> Mask:
    """Every query sees the real keys of its own sentence."""
    return Mask(allowed=None if layout.is_even else layout.mask[:, None, None, :])


def causal_mask() -> Mask:
    """Query t sees keys 0..t. Padding stands to the right of all real rows, so none of them sees it."""
    return Mask(causal=True)
