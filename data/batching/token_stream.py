"""Running text of training data too large to be held: its tokens are read from the dataset when they are asked for."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tfm.data.arrays import Ints
from tfm.data.dataset.split import Ids, Split
from tfm.tokenizer.special import EOS_ID

ROWS_PER_OFFSET = 256


@dataclass(frozen=True)
class TokenStream:
    """All targets of a split end to end, each with its end token, as an array that is read by fancy indices.

    split: the training data.
    """

    split: Split = field(repr=False)

    @cached_property
    def sparse_row_offsets(self) -> Ints:
        """(blocks + 1,) the place in the stream of every ROWS_PER_OFFSET-th row, and last the length of the stream."""
        sizes = [np.zeros(1, np.int64)]
        for part in self.split.iterate_parts():
            lengths = part.target_lengths + 1
            sizes.append(np.add.reduceat(lengths, np.arange(0, len(lengths), ROWS_PER_OFFSET)))
        return np.cumsum(np.concatenate(sizes))

    def __len__(self) -> int:
        return int(self.sparse_row_offsets[-1])

    def __getitem__(self, positions: Ints) -> Ids:
        """Return the tokens at some places of the stream (n,)."""
        column = self.split.target
        blocks = np.searchsorted(self.sparse_row_offsets, positions, side="right") - 1
        stored_blocks = np.unique(blocks)
        rows = (stored_blocks[:, None] * ROWS_PER_OFFSET + np.arange(ROWS_PER_OFFSET)).reshape(-1)
        rows = rows[rows < len(column)]
        lengths: Ints = column.lengths[rows]
        # Rows of a block are consecutive in the stream: where each begins, counted from the first of these blocks on.
        ends = np.cumsum(lengths + 1)
        gaps = (
            self.sparse_row_offsets[stored_blocks]
            - np.concatenate([[0], ends])[np.searchsorted(rows, stored_blocks * ROWS_PER_OFFSET)]
        )
        begins = ends - lengths - 1 + gaps[np.searchsorted(stored_blocks, rows // ROWS_PER_OFFSET)]
        row_indices = np.searchsorted(begins, positions, side="right") - 1
        offset = positions - begins[row_indices]
        is_end = offset == lengths[row_indices]
        starts: Ints = column.starts[rows]
        ids = column.values[np.where(is_end, 0, starts[row_indices] + offset)]
        column.check_ids(ids[~is_end])
        return np.where(is_end, EOS_ID, ids).astype(np.int32)
