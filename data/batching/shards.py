"""Shards of training data: above `data.shard_rows` rows an epoch is a permutation of shards, each batched by itself.

Each shard has blocks of consecutive rows from all over the data, so that it is a sample of every corpus and its rows
lie in few places of the file.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import overload

import numpy as np

from tfm.data.arrays import Ints

MAX_BLOCK_ROWS = 4096
MIN_BLOCKS_PER_SHARD = 64
_SHARD_ORDER_STREAM = 4


@dataclass(frozen=True)
class Shards:
    """Division of rows into shards: block i of consecutive rows belongs to shard i modulo their number.

    Args:
        num_rows: rows of the data.
        shard_rows: rows of a shard, to within a block.
    """

    num_rows: int
    shard_rows: int

    def __len__(self) -> int:
        return -(-self.num_rows // self.shard_rows)

    @property
    def block_rows(self) -> int:
        """The number of consecutive rows that lie in one shard."""
        return max(min(MAX_BLOCK_ROWS, self.shard_rows // MIN_BLOCKS_PER_SHARD), 1)

    def rows(self, shard: int) -> Ints:
        """Return (n,) the row numbers of a shard, ascending."""
        size = self.block_rows
        firsts = np.arange(shard * size, self.num_rows, len(self) * size)
        row_numbers = (firsts[:, None] + np.arange(size)).reshape(-1)
        return row_numbers[row_numbers < self.num_rows]

    def size(self, shard: int) -> int:
        """Return the number of rows of a shard."""
        cycle = len(self) * self.block_rows
        rest = self.num_rows % cycle - shard * self.block_rows
        return self.num_rows // cycle * self.block_rows + min(max(rest, 0), self.block_rows)

    def shard_of_each_row(self, begin: int, end: int) -> Ints:
        """Return (n,) the shard of each of some consecutive rows.

        Args:
            begin: the first row.
            end: the row after the last.
        """
        return np.arange(begin, end) // self.block_rows % len(self)

    def draw_shard_order(self, seed: int, epoch: int) -> list[int]:
        """Return the shards in the order in which an epoch has them.

        Args:
            seed: of the draws of a training.
            epoch: counted from 0.
        """
        rng = np.random.default_rng([seed, epoch, _SHARD_ORDER_STREAM])
        order: list[int] = rng.permutation(len(self)).tolist()
        return order


class ShardedBatches(Sequence[Ints]):
    """Batches of an epoch, shard after shard; one shard's are in memory.

    Args:
        counts: the number of batches of each shard.
        make: (place of a shard in the epoch) -> its batches, as many as were counted.
    """

    def __init__(self, counts: Sequence[int], make: Callable[[int], Sequence[Ints]]) -> None:
        self._ends, self._make = list(accumulate(counts)), make
        self._shard: tuple[int, Sequence[Ints]] | None = None

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> Ints: ...
    @overload
    def __getitem__(self, index: slice) -> list[Ints]: ...
    def __getitem__(self, index: int | slice) -> Ints | list[Ints]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(f"there is no batch {index} of {len(self)}")
        shard = bisect_right(self._ends, index)
        if self._shard is None or self._shard[0] != shard:
            self._shard = None  # its memory is free before the next one's is taken
            self._shard = shard, self._make(shard)
        begin = self._ends[shard - 1] if shard else 0
        return self._shard[1][index - begin]


class FixedSizeBatches(Sequence[Ints]):
    """Consecutive batches of equal numbers of rows, the last with what is left, cut when they are asked for.

    Args:
        rows: (n,) row numbers, in order.
        size: rows of a batch.
    """

    def __init__(self, rows: Ints, size: int) -> None:
        self._rows, self._size = rows, size

    def __len__(self) -> int:
        return -(-len(self._rows) // self._size)

    @overload
    def __getitem__(self, index: int) -> Ints: ...
    @overload
    def __getitem__(self, index: slice) -> list[Ints]: ...
    def __getitem__(self, index: int | slice) -> Ints | list[Ints]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(f"there is no batch {index} of {len(self)}")
        return self._rows[index * self._size : (index + 1) * self._size]
