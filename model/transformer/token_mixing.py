"""Replacements of self-attention: a recurrent layer and a convolution over a window of words.

Both take rows like self-attention, whole or step by step. A step reads the past from the same kind of cache: a
recurrent layer stores the state after each row, a convolution the rows themselves.
Legend: N rows · B sentences · W hypotheses a sentence · R hypotheses · D width · C filters.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model.attention.kv_cache import CacheSlots, LayerKVCache
from tfm.model.layers.linear import Linear
from tfm.model.layout import AnyLayout, FlatLayout, Layout
from tfm.model.masks import Mask
from tfm.model.recurrent.cells import RecurrentLayer
from tfm.model.recurrent.steps import TimeMajorPacking


class Mixing(Protocol):
    """Module that mixes the positions of each sentence: (N, D) -> (N, D), row by row where the mask is causal."""

    def __call__(self, rows: Tensor, layout: AnyLayout, mask: Mask) -> Tensor: ...

    def prefill(self, rows: Tensor, layout: AnyLayout, mask: Mask) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the output of a call, and the keys and values, or states, from which a `step` after these rows goes
        on.

        Args:
            rows: (N, D).
            layout: the sentences of these rows.
            mask: the rows that each row may see.
        """

    def step(self, rows: Tensor, cache: LayerKVCache, slots: CacheSlots) -> Tensor:
        """Compute one new row a hypothesis from the rows it descends from.

        Args:
            rows: (R, D).
            cache: the rows so far; the new ones are written into it.
            slots: the slots of the new rows, and those from which each hypothesis descends.

        Returns:
            Rows (R, D).
        """


class RecurrentMixing(nn.Module):
    """h_i = cell(x_i, h_{i-1}); with a second cell [h_i ; g_i], where g_i = cell(x_i, g_{i+1}).

    cells: forward, then backward where a row may see those after it. n D^2 multiplications, one row after the other.
    """

    def __init__(self, cells: Sequence[RecurrentLayer]) -> None:
        super().__init__()
        self.cells = nn.ModuleList(cells)

    def forward(self, rows: Tensor, layout: AnyLayout, mask: Mask) -> Tensor:
        """Compute the recurrent layer: in one direction with one cell, in both with two.

        Args:
            rows: (N, D).
            layout: the sentences of these rows.
            mask: the rows that each row may see.

        Returns:
            Rows (N, D).
        """
        assert not mask.causal or len(self.cells) == 1, "two cells see what is ahead"
        real_layout = Layout.from_lengths(layout.lengths, rows.device) if isinstance(layout, FlatLayout) else layout
        hidden = []
        for cell, backward in zip(self.cells, (False, True), strict=False):
            steps = TimeMajorPacking(real_layout, backward=backward)
            outputs, _ = cell(steps.pack(rows[: real_layout.num_rows]), steps)
            hidden.append(steps.unpack(outputs))
        return F.pad(torch.cat(hidden, dim=1), (0, 0, 0, len(rows) - real_layout.num_rows))

    def prefill(self, rows: Tensor, layout: AnyLayout, mask: Mask) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the output of `forward`, and the states (B, 1, S, D) from which a `step` after these rows goes on.

        Args:
            rows: (N, D).
            layout: the sentences of these rows.
            mask: the rows that each row may see.
        """
        assert isinstance(layout, Layout)
        assert mask.causal
        steps, cell = TimeMajorPacking(layout), self._cell
        outputs, final_states = cell(steps.pack(rows), steps)
        hidden = steps.unpack(outputs)
        padded = layout.pad(hidden)
        cell_states = torch.zeros_like(padded) if len(final_states) == 2 else padded[..., :0]
        if len(final_states) == 2:  # of the cell state only the last is ever asked for
            cell_states[torch.arange(layout.batch), layout.lengths - 1] = steps.unsort_states(final_states[1])
        return hidden, (padded.unsqueeze(1), cell_states.unsqueeze(1))

    def step(self, rows: Tensor, cache: LayerKVCache, slots: CacheSlots) -> Tensor:
        """Compute one new row a hypothesis, from the state of the row it follows.

        Args:
            rows: (R, D).
            cache: the rows so far; the new ones are written into it.
            slots: the slots of the new rows, and those from which each hypothesis descends.

        Returns:
            Rows (R, D).
        """
        return self.step_from_gates(self._cell.input(rows), cache, slots)

    def step_from_gates(self, gates: Tensor, cache: LayerKVCache, slots: CacheSlots) -> Tensor:
        """Compute one new row a hypothesis, as `step`, from the products W x + b of the new rows.

        Args:
            gates: (R, gates D).
            cache: the rows so far; the new ones are written into it.
            slots: the slots of the new rows, and those from which each hypothesis descends.

        Returns:
            Rows (R, D).
        """
        cell = self._cell
        previous = cache.ancestor_kv(1, slots)
        states = cell.zero_states(gates, len(gates)) if previous is None else previous[: cell.num_states]
        states = cell.step(gates, states)
        hidden, cell_state = states if len(states) == 2 else (states[0], states[0][:, :0])
        key, value = (each.view(*slots.new_slots.shape, each.shape[1]).unsqueeze(1) for each in (hidden, cell_state))
        cache.write(key, value, slots)
        return hidden

    @property
    def _cell(self) -> RecurrentLayer:
        cell = self.cells[0]
        assert isinstance(cell, RecurrentLayer)
        return cell


class ConvolutionMixing(nn.Module):
    """y_i = W [x_{i+o} of all offsets o, side by side] + b; with C filters W_2 relu(W x + b) + b_2, W x of C numbers.

    Beyond the ends of a sentence are zeros. n k D^2 multiplications with k offsets   (Vaswani et al. 2017, table 1).

    Args:
        dim: D.
        offsets: of the rows that are read, ascending: -r to r, and to 0 if a row sees none after it.
        filters: C; None for D, and no product after them.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(self, dim: int, offsets: range, *, filters: int | None, compute_dtype: torch.dtype) -> None:
        super().__init__()
        self.offsets, self.causal = offsets, offsets[-1] <= 0
        self.words = Linear(len(offsets) * dim, filters or dim, compute_dtype=compute_dtype)
        self.output = None if filters is None else Linear(filters, dim, compute_dtype=compute_dtype)

    def forward(self, rows: Tensor, layout: AnyLayout, mask: Mask) -> Tensor:
        """Compute the convolution.

        Args:
            rows: (N, D).
            layout: the sentences of these rows.
            mask: the rows that each row may see.

        Returns:
            Rows (N, D).
        """
        assert self.causal or not mask.causal
        return self._apply_filters(gather_windows(rows, layout.positions, self.offsets))

    def prefill(self, rows: Tensor, layout: AnyLayout, mask: Mask) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the output of `forward`, and the rows (B, 1, S, D) that a `step` after them sees.

        Args:
            rows: (N, D).
            layout: the sentences of these rows.
            mask: the rows that each row may see.
        """
        padded = layout.pad(rows).unsqueeze(1)
        return self(rows, layout, mask), (padded, padded[..., :0])

    def step(self, rows: Tensor, cache: LayerKVCache, slots: CacheSlots) -> Tensor:
        """Compute one new row a hypothesis, from the rows it descends from.

        Args:
            rows: (R, D).
            cache: the rows so far; the new ones are written into it.
            slots: the slots of the new rows, and those from which each hypothesis descends.

        Returns:
            Rows (R, D).
        """
        new = rows.view(*slots.new_slots.shape, -1).unsqueeze(1)
        cache.write(new, new[..., :0], slots)
        previous_rows = [cache.ancestor_kv(-offset, slots) for offset in self.offsets]
        return self._apply_filters(torch.cat([each[0] for each in previous_rows if each is not None], dim=1))

    def _apply_filters(self, windows: Tensor) -> Tensor:
        """(N, D * offsets) -> (N, D)."""
        filtered: Tensor = self.words(windows)
        return filtered if self.output is None else self.output(filtered.relu())


def gather_windows(rows: Tensor, positions: Tensor, offsets: range) -> Tensor:
    """Return for each row those around it, side by side; zeros where its sentence has none.

    Args:
        rows: (N, D).
        positions: (N,), the position of each row in its sentence.
        offsets: distances of the rows that are put side by side.

    Returns:
        (N, D * offsets).
    """
    reach, num_rows = max(-offsets[0], offsets[-1]), len(rows)
    padded_rows, padded_positions = F.pad(rows, (0, 0, reach, reach)), F.pad(positions, (reach, reach))
    columns = []
    for offset in offsets:
        row_slice = slice(reach + offset, reach + offset + num_rows)
        # a row of another sentence is nearer to its beginning
        is_of_sentence = padded_positions[row_slice] == positions + offset
        columns.append(padded_rows[row_slice] * is_of_sentence.unsqueeze(1))
    return torch.cat(columns, dim=1)
