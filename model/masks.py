"""Who may attend to whom. One convention: True = may attend."""

from dataclasses import dataclass, field

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
    _written: dict[tuple[int, int, torch.dtype], Tensor] = field(default_factory=dict, compare=False, repr=False)

    def bias(self, num_queries: int, num_keys: int, like: Tensor) -> Tensor | None:
        """M of softmax(Q K^T + M): 0 where a query may attend, else -inf; broadcastable to (B, H, T, S).

        None where all may attend to all. Written once for all layers, in the type and on the device of `like`.
        """
        if not self.causal and self.allowed is None:
            return None
        key = num_queries, num_keys, like.dtype
        if key not in self._written:
            allowed = self.allowed
            if self.causal:
                below = torch.ones(num_queries, num_keys, dtype=torch.bool, device=like.device).tril()
                allowed = below if allowed is None else below & allowed
            assert allowed is not None  # so says the first line
            self._written[key] = torch.zeros_like(allowed, dtype=like.dtype).masked_fill_(~allowed, float("-inf"))
        return self._written[key]


def padding_mask(layout: Layout) -> Mask:
    """Every query sees the real keys of its own sentence."""
    return Mask(allowed=None if layout.is_even else layout.mask[:, None, None, :])


def causal_mask() -> Mask:
    """Query t sees keys 0..t. Padding stands to the right of all real rows, so none of them sees it."""
    return Mask(causal=True)
