"""What a recurrent decoder keeps between steps, and the memory it attends to.

Legend: B sentences · R hypotheses, those of a sentence next to each other and equally many · H heads · S keys ·
K width of a head · D width.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm.model.masks import Mask
from tfm.model.recurrent.cells import States


@dataclass(frozen=True)
class Memory:
    """What the encoder said of B sentences: keys and values (B, H, S, K), and which of them are real."""

    keys: Tensor
    values: Tensor
    mask: Mask

    def select(self, sentences: Tensor) -> "Memory":
        """Of these sentences (B',), in this order."""
        allowed = self.mask.allowed
        return Memory(
            self.keys.index_select(0, sentences),
            self.values.index_select(0, sentences),
            Mask(allowed=None if allowed is None else allowed.index_select(0, sentences)),
        )

    def first(self, count: int) -> "Memory":
        """Of the first so many sentences."""
        if count == len(self.keys):
            return self
        allowed = self.mask.allowed
        return Memory(
            self.keys[:count], self.values[:count], Mask(allowed=None if allowed is None else allowed[:count])
        )

    def replace(self, sentences: Tensor, other: "Memory") -> "Memory":
        """The memory in which these sentences (B',) have given their places to those of `other`."""
        width = max(self.keys.shape[2], other.keys.shape[2])
        allowed = _seated(self._real(), sentences, other._real(), width, 3)
        longest = int(allowed.sum(3).max())
        return Memory(
            _seated(self.keys, sentences, other.keys, width, 2)[:, :, :longest],
            _seated(self.values, sentences, other.values, width, 2)[:, :, :longest],
            Mask(allowed=allowed[..., :longest]),
        )

    def _real(self) -> Tensor:
        """(B, 1, 1, S)."""
        if self.mask.allowed is not None:
            return self.mask.allowed
        batch, _, width, _ = self.keys.shape
        return torch.ones(batch, 1, 1, width, dtype=torch.bool, device=self.keys.device)


def _seated(old: Tensor, sentences: Tensor, new: Tensor, width: int, dim: int) -> Tensor:
    """What there is of all sentences, with that of some in their places; `dim`, of keys, is made `width` wide."""
    old, new = (
        F.pad(each, (0, 0) * (each.dim() - 1 - dim) + (0, width - each.shape[dim])) if each.shape[dim] < width else each
        for each in (old, new)
    )
    return old.index_copy(0, sentences, new)


@dataclass(frozen=True)
class RecurrentState:
    """States (R, D) of each layer of the decoder; the memory of the sentences, None without attention."""

    layers: tuple[States, ...]
    memory: Memory | None

    @property
    def num_rows(self) -> int:
        return len(self.layers[0][0])

    def select(self, rows: Tensor) -> "RecurrentState":
        """The state whose row i is row rows[i] of this one (R',); rows of a sentence stay together."""
        memory = self.memory
        if memory is not None:
            sentences = torch.unique_consecutive(rows // self._width(memory))
            memory = memory if len(sentences) == len(memory.keys) else memory.select(sentences)
        layers = tuple(tuple(old.index_select(0, rows) for old in layer) for layer in self.layers)
        return RecurrentState(layers, memory)

    def replace(self, rows: Tensor, other: "RecurrentState") -> "RecurrentState":
        """The state in which `rows`, whole sentences, have given their places to those of `other`."""
        memory = self.memory
        if memory is not None and other.memory is not None:
            width = self._width(memory)
            memory = memory.replace(rows.view(-1, width)[:, 0] // width, other.memory)
        layers = tuple(
            tuple(old.index_copy(0, rows, new) for old, new in zip(layer, theirs, strict=True))
            for layer, theirs in zip(self.layers, other.layers, strict=True)
        )
        return RecurrentState(layers, memory)

    def _width(self, memory: Memory) -> int:
        """Rows a sentence."""
        return self.num_rows // len(memory.keys)
