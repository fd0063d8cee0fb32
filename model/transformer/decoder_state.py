"""The state of a Transformer decoder between steps.

Rows are hypotheses; the rows of a sentence are adjacent, and every sentence has the same number (W) of them. A step
consumes its state: the new rows are written into caches that the old and the new state share.
Legend: B sentences · W rows a sentence · R = B W rows · S slots a sentence.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm.model.attention.kv_cache import CacheSlots, LayerKVCache
from tfm.model.attention.memory import Memory
from tfm.model.cpu_kernels import dispatch
from tfm.model.masks import Mask


@dataclass(eq=False)
class TransformerState:
    """Caches of a Transformer decoder, of B sentences.

    caches: self-attention's keys and values, one cache a layer. memory: the encoder's, one pair a layer; empty if
    one stack reads source and target alike. lengths (B,): the number of tokens that each sentence's rows have read.
    positions (B, S): the position of each cached slot. ancestor_mask (B, W, S): the cached slots that each row
    descends from; None while there is one row a sentence and it descends from all.
    """

    caches: tuple[LayerKVCache, ...]
    memory: Memory
    lengths: Tensor
    positions: Tensor
    ancestor_mask: Tensor | None = None

    @property
    def rows_per_sentence(self) -> int:
        """W: rows a sentence."""
        return 1 if self.ancestor_mask is None else self.ancestor_mask.shape[1]

    @property
    def num_rows(self) -> int:
        return len(self.lengths) * self.rows_per_sentence

    @property
    def row_positions(self) -> Tensor:
        """(R,): the position of the next token of each row."""
        return self.lengths[:, None].expand(-1, self.rows_per_sentence).flatten()

    def select(self, rows: Tensor) -> "TransformerState":
        """The state whose row i is row rows[i] (R',) of this one; rows of a sentence stay adjacent."""
        sentences = torch.unique_consecutive(rows // self.rows_per_sentence)
        state = self
        if self.ancestor_mask is not None or len(rows) > len(sentences):
            ancestor_mask = self._full_ancestor_mask().flatten(0, 1).index_select(0, rows)
            width = len(rows) // len(sentences)
            state = replace(self, ancestor_mask=ancestor_mask.view(len(sentences), width, ancestor_mask.shape[1]))
        if len(sentences) == len(self.lengths):
            return state
        return replace(
            state,
            caches=tuple(cache.select(sentences) for cache in self.caches),
            memory=self.memory.select(sentences),
            lengths=self.lengths.index_select(0, sentences),
            positions=self.positions.index_select(0, sentences),
        )

    def replace(self, rows: Tensor, replacement: "TransformerState") -> "TransformerState":
        """The state in which the sentences of `replacement`, a new state, take the places of those of `rows` (R',).

        Caches and memory are written in place: this state is used up. No cached row moves: the slots of the sentences
        that leave are free, or taken by the rows of the new ones.
        """
        sentences = rows.view(-1, self.rows_per_sentence)[:, 0] // self.rows_per_sentence
        num_slots = replacement.positions.shape[1]
        missing = max(0, num_slots - self.positions.shape[1])
        ancestor_mask, positions = F.pad(self._full_ancestor_mask(), (0, missing)), self.positions
        ancestor_mask = ancestor_mask.clone() if missing == 0 else ancestor_mask
        ancestor_mask[sentences] = False
        if num_slots:
            ancestor_mask[sentences, :, :num_slots] = replacement._full_ancestor_mask()
            positions = F.pad(positions, (0, missing)).clone()
            positions[sentences, :num_slots] = replacement.positions
            for cache, new in zip(self.caches, replacement.caches, strict=True):
                cache.replace(sentences, new, num_slots)
        return replace(
            self,
            memory=self.memory.replace(sentences, replacement.memory),
            lengths=self.lengths.index_copy(0, sentences, replacement.lengths),
            positions=positions,
            ancestor_mask=ancestor_mask,
        )

    def advance(self) -> tuple["TransformerState", CacheSlots]:
        """The state after each row has read one more token, and the slots of these tokens: the lowest free ones."""
        batch, width = len(self.lengths), self.rows_per_sentence
        new_positions = self.lengths[:, None].expand(batch, width)
        if self.ancestor_mask is None:
            own_slots, ancestor_mask = torch.full_like(new_positions, self.positions.shape[1]), None
            positions = torch.cat([self.positions, new_positions], dim=1)
        elif (allocated := dispatch.allocate_slots(self.ancestor_mask, self.positions, self.lengths)) is not None:
            own_slots, ancestor_mask, positions = allocated
        else:
            free = F.pad(~self.ancestor_mask.any(1), (0, width), value=True)
            own_slots = free.to(torch.uint8).sort(dim=1, descending=True, stable=True).indices[:, :width]
            num_slots = int(free.scatter_(1, own_slots, False).all(0).logical_not_().nonzero()[-1]) + 1
            ancestor_mask = F.pad(self.ancestor_mask, (0, width)).scatter_(2, own_slots.unsqueeze(2), True)[
                ..., :num_slots
            ]
            positions = F.pad(self.positions, (0, width)).scatter_(1, own_slots, new_positions)[:, :num_slots]
        mask = Mask() if ancestor_mask is None else Mask(allowed=ancestor_mask[:, None])
        state = replace(self, positions=positions, ancestor_mask=ancestor_mask, lengths=self.lengths + 1)
        return state, CacheSlots(own_slots, new_positions, positions, mask)

    def _full_ancestor_mask(self) -> Tensor:
        """(B, W, S): `ancestor_mask`, written out."""
        if self.ancestor_mask is not None:
            return self.ancestor_mask
        batch, slots = self.positions.shape
        return torch.ones(batch, 1, slots, dtype=torch.bool, device=self.positions.device)
