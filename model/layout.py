"""Layouts: the beginnings and ends of sentences among the rows of a batch.

Activations are (N, D), one row for each real token, sentence after sentence. Only layers that mix positions need the
padded (B, S, D) view; `pad` and `unpad` are the only conversions. For a kernel that takes concatenated sentences the
view is flat, (1, N, D).
Legend: N rows · B sentences · S longest length.
"""

from typing import Any

import torch
from torch import Tensor


class _Pad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, slots: Tensor, num_slots: int) -> Tensor:
        ctx.save_for_backward(slots)
        return rows.new_zeros(num_slots, *rows.shape[1:]).index_copy_(0, slots, rows)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (slots,) = ctx.saved_tensors
        return grad.index_select(0, slots), None, None


class _Unpad(torch.autograd.Function):
    # index_select's own backward adds into zeros; slots are distinct, so a copy does.
    @staticmethod
    def forward(ctx: Any, padded: Tensor, slots: Tensor) -> Tensor:
        ctx.save_for_backward(slots)
        ctx.num_slots = len(padded)
        return padded.index_select(0, slots)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (slots,) = ctx.saved_tensors
        return grad.new_zeros(ctx.num_slots, *grad.shape[1:]).index_copy_(0, slots, grad), None


def scatter_rows(rows: Tensor, slots: Tensor, num_slots: int) -> Tensor:
    """Put rows at distinct slots, with zeros elsewhere.

    Args:
        rows: (N, ...).
        slots: (N,).
        num_slots: length of the result.

    Returns:
        (num_slots, ...).
    """
    return _Pad.apply(rows, slots, num_slots)  # type: ignore[no-untyped-call,no-any-return]


class Layout:
    """The rows of a batch of sentences.

    lengths (B,): tokens a sentence, each at least 1, on the CPU: what follows from them is known without waiting for
    the device. num_rows N, batch B, width S. positions (N,): place of each row in its sentence, from 0. columns (S,):
    the position of each column of the padded view. mask (B, S): True if a token is; sentence (N,): of each row. All
    four on the device.
    """

    def __init__(self, lengths: Tensor, device: torch.device | str = "cpu") -> None:
        self.lengths = lengths
        self.batch = len(lengths)
        self.num_rows = int(lengths.sum())
        self.width = int(lengths.max()) if self.batch else 0
        sentence = torch.arange(self.batch).repeat_interleave(lengths, output_size=self.num_rows)
        starts = lengths.cumsum(0) - lengths
        positions = torch.arange(self.num_rows) - starts[sentence]
        self.has_no_padding = self.num_rows == self.batch * self.width
        self.positions = positions.to(device, non_blocking=True)
        self.sentence = sentence.to(device, non_blocking=True)
        self.slots = (sentence * self.width + positions).to(device, non_blocking=True)
        self.columns = torch.arange(self.width, device=device)
        self.mask = (torch.arange(self.width) < lengths[:, None]).to(device, non_blocking=True)

    @classmethod
    def from_lengths(cls, lengths: Tensor, device: torch.device | str = "cpu") -> "Layout":
        """The layout of sentences of these lengths (B,), of rows on this device."""
        return cls(lengths, device)

    def pad(self, rows: Tensor) -> Tensor:
        """Return rows (N, ...) as (B, S, ...), with zeros where no token is."""
        if not self.has_no_padding:
            rows = scatter_rows(rows, self.slots, self.batch * self.width)
        return rows.view(self.batch, self.width, *rows.shape[1:])

    def unpad(self, padded: Tensor) -> Tensor:
        """Return the rows (N, ...) of (B, S, ...): the inverse of `pad`."""
        flat = padded.reshape(self.batch * self.width, *padded.shape[2:])
        if self.has_no_padding:
            return flat
        return _Unpad.apply(flat, self.slots)  # type: ignore[no-untyped-call,no-any-return]


class FlatLayout:
    """Layout of a batch of sentences without a padded view: `pad` only puts an axis of 1 before the rows.

    offsets: the first row of each sentence, then N as often as it takes to make as many as N rows can need. longest:
    length of the longest sentence, the filler among them. sentence, positions, columns (N,): of each row. All but
    longest are on the device.

    Args:
        lengths: (B,), rows of each sentence.
        device: device of the tensors.
        num_rows: number of rows to which filler rows at the end extend the batch, so that batches of one shape can be
            had; None for no filler. The filler is a sentence more, that no other sees; there is at least one row of
            it.

    Raises:
        ValueError: `num_rows` leaves no room for a filler row.
    """

    def __init__(self, lengths: Tensor, device: torch.device | str = "cpu", num_rows: int | None = None) -> None:
        spans = lengths
        if num_rows is not None:
            filler = num_rows - int(lengths.sum())
            if filler < 1:
                raise ValueError(f"{num_rows} rows have no room for {num_rows - filler} tokens and a filler")
            spans = torch.cat([lengths, lengths.new_tensor([filler])])
        self.lengths, self.num_rows, self.longest = lengths, int(spans.sum()), int(spans.max())
        sentence = torch.arange(len(spans)).repeat_interleave(spans, output_size=self.num_rows)
        ends = spans.cumsum(0)
        positions = torch.arange(self.num_rows) - (ends - spans)[sentence]
        if num_rows is not None:
            positions[num_rows - filler :] = 0
        max_sentences = len(spans) if num_rows is None else max(len(spans), num_rows // 2 + 1)
        offsets = torch.full((max_sentences + 1,), self.num_rows, dtype=torch.int32)
        offsets[0], offsets[1 : len(spans) + 1] = 0, ends
        self.offsets, self.sentence = (each.to(device, non_blocking=True) for each in (offsets, sentence))
        self.positions = self.columns = positions.to(device, non_blocking=True)

    def pad(self, rows: Tensor) -> Tensor:
        """Return rows (N, ...) as (1, N, ...)."""
        return rows.unsqueeze(0)

    def unpad(self, padded: Tensor) -> Tensor:
        """Return the rows (N, ...) of (1, N, ...)."""
        return padded.squeeze(0)


AnyLayout = Layout | FlatLayout


def concat_layouts_with_row_order(layout: AnyLayout, other_layout: AnyLayout) -> tuple[AnyLayout, Tensor]:
    """The layout of sentences that are each one of `layout` followed by its like of `other_layout`, and the order (N,):
    which row of the two, those of `layout` counted first, each row of it is."""
    order = torch.cat([layout.sentence, other_layout.sentence]).argsort(stable=True)
    lengths = layout.lengths + other_layout.lengths
    if isinstance(layout, FlatLayout):
        num_rows = layout.num_rows + other_layout.num_rows
        filled = num_rows if num_rows > int(lengths.sum()) else None
        return FlatLayout(lengths, order.device, filled), order
    return Layout.from_lengths(lengths, order.device), order
