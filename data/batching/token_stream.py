"""Running text of training data too large to be held: its tokens are read from the dataset when they are asked for."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tfm.data.arrays import Ints
from tfm.data.dataset.split import Ids, Split
from tfm.tokenizer.special import EOS_ID

BLOCK_ROWS = 256


@dataclass(frozen=True)
class TokenStream:
    """All targets of a split end to end, each with its end token, as an array that is read by fancy indices.

    split: the training data.
    """

    split: Split = field(repr=False)

    @cached_property
    def block_offsets(self) -> Ints:
        """(blocks + 1,) the place in the stream of every BLOCK_ROWS-th row, and last the length of the stream."""
        sizes = [np.zeros(1, np.int64)]
        for part in self.split.iterate_parts():
            lengths = part.target_lengths + 1
            sizes.append(np.add.reduceat(lengths, np.arange(0, len(lengths), BLOCK_ROWS)))
        return np.cumsum(np.concatenate(sizes))

    def __len__(self) -> int:
        return int(self.block_offsets[-1])

    def __getitem__(self, positions: Ints) -> Ids:
        """Return the tokens at some places of the stream (n,)."""
        column = self.split.target
        blocks = np.searchsorted(self.block_offsets, positions, side="right") - 1
        some = np.unique(blocks)
        rows = (some[:, None] * BLOCK_ROWS + np.arange(BLOCK_ROWS)).reshape(-1)
        rows = rows[rows < len(column)]
        lengths: Ints = column.lengths[rows]
        # Rows of a block are consecutive in the stream: where each begins, counted from the first of these blocks on.
        ends = np.cumsum(lengths + 1)
        gaps = self.block_offsets[some] - np.concatenate([[0], ends])[np.searchsorted(rows, some * BLOCK_ROWS)]
        begins = ends - lengths - 1 + gaps[np.searchsorted(some, rows // BLOCK_ROWS)]
        at = np.searchsorted(begins, positions, side="right") - 1
        offset = positions - begins[at]
        is_end = offset == lengths[at]
        starts: Ints = column.starts[rows]
        ids = column.values[np.where(is_end, 0, starts[at] + offset)]
        column.check_ids(ids[~is_end])
        return np.where(is_end, EOS_ID, ids).astype(np.int32)
