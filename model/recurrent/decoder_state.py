"""The state of a recurrent decoder between steps.

Legend: B sentences · R hypotheses, those of a sentence adjacent, the same number for each · D width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tfm.model.attention.memory import Memory
from tfm.model.recurrent.cells import States


@dataclass(eq=False)
class RecurrentState:
    """States (R, D) of each layer of the decoder, and the memory of the B sentences, empty without attention."""

    layers: tuple[States, ...]
    memory: Memory

    @property
    def num_rows(self) -> int:
        return len(self.layers[0][0])

    def select(self, rows: Tensor) -> "RecurrentState":
        """The state whose row i is row rows[i] (R',) of this one; rows of a sentence stay adjacent."""
        memory = self.memory
        if memory.batch_size:
            sentences = torch.unique_consecutive(rows // self._rows_per_sentence)
            memory = memory if len(sentences) == memory.batch_size else memory.select(sentences)
        layers = tuple(tuple(old.index_select(0, rows) for old in layer) for layer in self.layers)
        return RecurrentState(layers, memory)

    def replace(self, rows: Tensor, replacement: "RecurrentState") -> "RecurrentState":
        """The state in which the sentences of `replacement` take the places of those of `rows` (R',).

        The memory is written in place: this state is used up.
        """
        memory = self.memory
        if memory.batch_size:
            memory = memory.replace(
                rows.view(-1, self._rows_per_sentence)[:, 0] // self._rows_per_sentence, replacement.memory
            )
        layers = tuple(
            tuple(old.index_copy(0, rows, new) for old, new in zip(layer, new_layer, strict=True))
            for layer, new_layer in zip(self.layers, replacement.layers, strict=True)
        )
        return RecurrentState(layers, memory)

    @property
    def _rows_per_sentence(self) -> int:
        """The number of rows per sentence if there is a memory."""
        return self.num_rows // self.memory.batch_size
