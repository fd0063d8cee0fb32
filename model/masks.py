"""Who may attend to whom. One convention: True = may attend."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from model.layout import AnyLayout, FlatLayout


@dataclass(frozen=True)
class Mask:
    """A mask over (B, H, T, S) that is written out only where a kernel needs it.

    causal: query t sees keys 0..t. allowed: (B, 1, 1 or T, S) bool, or None where every key is real. flat: the layouts
    of queries and keys whose rows lie end to end; a query sees keys of its own sentence alone.
    """

    causal: bool = False
    allowed: Tensor | None = None
    flat: tuple[FlatLayout, FlatLayout] | None = None
    _written: dict[tuple[int, int, torch.dtype], Tensor] = field(default_factory=dict, compare=False, repr=False)

    def bias(self, num_queries: int, num_keys: int, like: Tensor) -> Tensor | None:
        """M of softmax(Q K^T + M): 0 where a query may attend, else -inf; broadcastable to (B, H, T, S).

        None where all may attend to all. Written once for all layers, in the type and on the device of `like`.
        """
        if not self.causal and self.allowed is None and self.flat is None:
            return None
        key = num_queries, num_keys, like.dtype
        if key not in self._written:
            allowed = self.allowed
            if self.flat is not None:
                queries, keys = self.flat
                allowed = (queries.sentence[:, None] == keys.sentence)[None, None]
            if self.causal:
                below = torch.ones(num_queries, num_keys, dtype=torch.bool, device=like.device).tril()
                allowed = below if allowed is None else below & allowed
            assert allowed is not None  # so says the first line
            self._written[key] = torch.zeros_like(allowed, dtype=like.dtype).masked_fill_(~allowed, float("-inf"))
        return self._written[key]


def padding_mask(keys: AnyLayout, queries: AnyLayout | None = None) -> Mask:
    """Every query sees the real keys of its own sentence. queries: their layout, where it is not that of the keys."""
    if isinstance(keys, FlatLayout):
        asking = queries or keys
        assert isinstance(asking, FlatLayout)  # both sides of a batch are laid out alike
        return Mask(flat=(asking, keys))
    return Mask(allowed=None if keys.is_even else keys.mask[:, None, None, :])


def causal_mask(layout: AnyLayout) -> Mask:
    """Query t sees keys 0..t of its sentence. Padding stands to the right of all real rows, so none of them sees it."""
    return Mask(causal=True, flat=(layout, layout) if isinstance(layout, FlatLayout) else None)
