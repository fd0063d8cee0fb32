"""What decoding keeps between steps.

Rows are hypotheses; the rows of a sentence lie next to each other, equally many (W) for each.
A step consumes its state: it appends to caches that the state before shares.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model.attention import KeysValues
from model.masks import Mask


@dataclass(frozen=True)
class TransformerState:
    """Caches of a Transformer decoder.

    caches: one a layer. remembered: keys and values of the memory, one pair a layer, each (B, H, S, K).
    memory_mask: which source rows are real. descent (B, W, slots): the cached slots each row descends from.
    slots (slots,): the position of each cached slot. num_rows: R = B * W.
    """

    caches: tuple[KeysValues, ...]
    remembered: tuple[tuple[Tensor, Tensor], ...]
    memory_mask: Mask
    descent: Tensor
    slots: Tensor
    length: int = 0

    @property
    def num_rows(self) -> int:
        return self.descent.shape[0] * self.descent.shape[1]

    def select(self, rows: Tensor) -> "TransformerState":
        """The state whose row i is row rows[i] of this one (R',); rows of a sentence stay together."""
        sentences = torch.unique_consecutive(rows // self.descent.shape[1])
        new_width = len(rows) // len(sentences)
        descent = self.descent.flatten(0, 1).index_select(0, rows)
        descent = descent.view(len(sentences), new_width, len(self.slots))
        state = replace(self, descent=descent)
        if len(sentences) == len(self.descent):
            return state
        allowed = self.memory_mask.allowed
        return replace(
            state,
            caches=tuple(cache.keep(sentences) for cache in self.caches),
            remembered=tuple((k.index_select(0, sentences), v.index_select(0, sentences)) for k, v in self.remembered),
            memory_mask=Mask(allowed=None if allowed is None else allowed.index_select(0, sentences)),
        )

    def grown(self) -> "TransformerState":
        """The state after one more slot a row is appended: each row descends from its own new slot."""
        batch, width, _ = self.descent.shape
        own = torch.eye(width, dtype=torch.bool, device=self.descent.device).expand(batch, width, width)
        return replace(
            self,
            descent=torch.cat([self.descent, own], dim=2),
            slots=torch.cat([self.slots, self.slots.new_full((width,), self.length)]),
            length=self.length + 1,
        )

    @property
    def mask(self) -> Mask:
        """Which slots each row may attend to."""
        return (
            Mask()
            if self.descent.shape[1] == 1 and self.length == len(self.slots)
            else Mask(allowed=self.descent[:, None])
        )
