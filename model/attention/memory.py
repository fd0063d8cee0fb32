"""The memory: the encoder's output, as keys and values that the layers of a decoder attend to.

Keys and values are computed once a sentence; all hypotheses of a sentence attend to the same ones.
Legend: B sentences · S rows of the longest sentence · G heads of keys and values · K width of a head's keys · V width
of its values.
"""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm.model.masks import Mask


@dataclass(eq=False)
class Memory:
    """The memory of B sentences; `Memory()` is the empty one of a decoder without an encoder.

    keys_values: keys (B, G, S, K) and values (B, G, S, V), one pair for each layer that attends. mask: a mask of the
    real rows among the S, the same in all layers.
    """

    keys_values: tuple[tuple[Tensor, Tensor], ...] = ()
    mask: Mask = field(default_factory=Mask)

    @property
    def batch_size(self) -> int:
        """B; 0 of an empty memory."""
        return len(self.keys_values[0][0]) if self.keys_values else 0

    def select(self, sentences: Tensor) -> "Memory":
        """The memory of these sentences (B',), in this order: a copy."""
        allowed = self.mask.allowed
        return Memory(
            tuple(
                (keys.index_select(0, sentences), values.index_select(0, sentences))
                for keys, values in self.keys_values
            ),
            Mask(allowed=None if allowed is None else allowed.index_select(0, sentences)),
        )

    def first_sentences(self, count: int) -> "Memory":
        """The memory of the first `count` sentences: views."""
        if count == self.batch_size:
            return self
        allowed = self.mask.allowed
        return Memory(
            tuple((keys[:count], values[:count]) for keys, values in self.keys_values),
            Mask(allowed=None if allowed is None else allowed[:count]),
        )

    def replace(self, sentences: Tensor, replacement: "Memory") -> "Memory":
        """Return the memory in which the B' sentences of `replacement` stand in the places `sentences` (B',).

        The result is as wide as its longest sentence. The old memory is overwritten in place where the width allows
        it, and must not be used after the call.
        """
        if not self.keys_values:
            return self
        width = max(self._max_memory_length, replacement._max_memory_length)
        allowed = F.pad(self._attendable_row_mask(), (0, width - self._max_memory_length))
        allowed = allowed.index_copy(
            0, sentences, F.pad(replacement._attendable_row_mask(), (0, width - replacement._max_memory_length))
        )
        longest = int(allowed.sum(3).max())
        keys_values = tuple(
            (
                _insert_sentences(keys, sentences, new_keys, width)[:, :, :longest],
                _insert_sentences(values, sentences, new_values, width)[:, :, :longest],
            )
            for (keys, values), (new_keys, new_values) in zip(self.keys_values, replacement.keys_values, strict=True)
        )
        return Memory(keys_values, Mask(allowed=allowed[..., :longest]))

    @property
    def _max_memory_length(self) -> int:
        """S."""
        return self.keys_values[0][0].shape[2]

    def _attendable_row_mask(self) -> Tensor:
        """Return a mask (B, 1, 1, S) of the real rows."""
        if self.mask.allowed is not None:
            return self.mask.allowed
        return torch.ones(
            self.batch_size, 1, 1, self._max_memory_length, dtype=torch.bool, device=self.keys_values[0][0].device
        )


def _insert_sentences(old: Tensor, sentences: Tensor, new: Tensor, width: int) -> Tensor:
    """Keys or values (B, G, S, K) of all sentences, made `width` wide, with those of some (B', G, S', K) written in.

    Behind a new sentence that is shorter, rows of the old one stay: the mask hides them.
    """
    result = F.pad(old, (0, 0, 0, width - old.shape[2])) if width > old.shape[2] else old
    result[sentences, :, : new.shape[2]] = new
    return result
