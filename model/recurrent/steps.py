"""The order in which recurrent layers read the rows of a batch: position after position, with no padding.

At each step only the sentences that have a further row take part.
Legend: N rows · B sentences.
"""

from typing import Any

import torch
from torch import Tensor

from tfm.model.layout import Layout


class TimeMajorPacking:
    """The rows of a batch arranged by steps: the first row of every sentence, then the second of every sentence, ...

    Its `order` (B,) are the sentences from the longest to the shortest, its `batch_sizes` the number of sentences that
    take part in each step; they are always the first ones in that order.

    Args:
        layout: the layout of the batch.
        backward: whether each sentence is read from its end.
    """

    def __init__(self, layout: Layout, *, backward: bool = False) -> None:
        device, lengths = layout.positions.device, layout.lengths
        order = lengths.argsort(descending=True, stable=True)
        starts, lengths = (lengths.cumsum(0) - lengths)[order], lengths[order]
        step = torch.arange(layout.width)[:, None]
        is_active = step < lengths
        rows = (starts + (lengths - 1 - step if backward else step))[is_active]
        self.batch_sizes: list[int] = is_active.sum(1).tolist()
        self._rows, self.order = rows.to(device, non_blocking=True), order.to(device, non_blocking=True)
        self._places, self._ranks = self._rows.argsort(), self.order.argsort()

    def pack(self, rows: Tensor) -> Tensor:
        """Return rows (N, ...), given sentence after sentence, step after step."""
        return _ReorderRows.apply(rows, self._rows, self._places)  # type: ignore[no-untyped-call,no-any-return]

    def unpack(self, rows: Tensor) -> Tensor:
        """The inverse of `pack`."""
        return _ReorderRows.apply(rows, self._places, self._rows)  # type: ignore[no-untyped-call,no-any-return]

    def sort_states(self, states: Tensor) -> Tensor:
        """Sort (B, ...), one row a sentence, from the longest to the shortest."""
        return states.index_select(0, self.order)

    def unsort_states(self, states: Tensor) -> Tensor:
        """The inverse of `ranked`."""
        return states.index_select(0, self._ranks)


class _ReorderRows(torch.autograd.Function):
    # index_select's own backward adds into zeros; here each row occurs once, so that a selection is enough.
    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return rows.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (inverse,) = ctx.saved_tensors
        return grad.index_select(0, inverse), None, None
