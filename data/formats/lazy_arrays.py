"""Arrays of which a part is computed when it is asked for: what a dataset of 10^8 rows knows of each row."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tfm.data.arrays import Ints


@dataclass(frozen=True)
class LazyArray:
    """Array of `size` numbers, of which those that are indexed are computed; `np.asarray` computes all.

    Args:
        size: the number of rows.
        compute: (n,) row numbers -> (n,) their numbers.
        compute_range: (begin, end) -> the same of consecutive rows, faster.
    """

    size: int
    compute: Callable[[Ints], NDArray[Any]]
    compute_range: Callable[[int, int], NDArray[Any]]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            begin, end, step = rows.indices(self.size)
            return (
                self.compute_range(begin, max(begin, end))[::step]
                if step > 0
                else self.compute(np.arange(begin, end, step))
            )
        if isinstance(rows, (int, np.integer)):
            return self.compute(np.array([rows % self.size]))[0]
        return self.compute(np.flatnonzero(rows) if rows.dtype == np.bool_ else rows)

    def select_range(self, begin: int, end: int) -> "LazyArray":
        """Return consecutive rows as an array that is computed as late.

        Args:
            begin: the first row.
            end: the row after the last.
        """
        return LazyArray(
            end - begin,
            lambda rows: self.compute(rows + begin),
            lambda first, last: self.compute_range(begin + first, begin + last),
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        values = self.compute_range(0, self.size)
        return values if dtype is None else values.astype(dtype)

    def __mul__(self, other: "LazyArray") -> "LazyArray":
        return LazyArray(
            self.size,
            lambda rows: self.compute(rows) * other.compute(rows),
            lambda begin, end: self.compute_range(begin, end) * other.compute_range(begin, end),
        )


def piecewise_constant(sizes: Sequence[int], values: Sequence[float]) -> LazyArray:
    """Return an array of stretches of equal numbers.

    Args:
        sizes: rows of each stretch.
        values: the number of each stretch.
    """
    ends, numbers = np.cumsum(np.array(sizes, np.int64)), np.array(values)

    def compute(rows: Ints) -> NDArray[Any]:
        return numbers[np.searchsorted(ends, rows, side="right")]

    def compute_range(begin: int, end: int) -> NDArray[Any]:
        inner = np.clip(ends, begin, end)
        return np.repeat(numbers, np.diff(inner, prepend=begin))

    return LazyArray(int(ends[-1]) if len(ends) else 0, compute, compute_range)


class MappedListOffsets:
    """Starts and lengths of lists of ids in a mapped file, read from its offsets when they are asked for.

    Args:
        chunks: a column of lists, whose buffers lie in `flat`.
        flat: the whole file as int32.
        base: the address of the file in memory.

    Raises:
        ValueError: a buffer lies outside the file, or a field is empty.
    """

    def __init__(self, chunks: pa.ChunkedArray, flat: NDArray[np.int32], base: int) -> None:
        sizes, offsets, values = [], [], []
        for chunk in chunks.iterchunks():
            if chunk.values.null_count:
                raise ValueError("there are rows with empty fields")
            if len(chunk):
                sizes.append(len(chunk))
                offsets.append(_index_in_file(chunk.offsets, len(chunk) + 1, flat, base))
                values.append(_index_in_file(chunk.values, len(chunk.values), flat, base))
        self._flat = flat
        self._ends = np.cumsum(np.array(sizes, np.int64))
        self._firsts = self._ends - np.array(sizes, np.int64)
        self._offsets, self._values = np.array(offsets, np.int64), np.array(values, np.int64)

    def starts(self) -> LazyArray:
        """Return (rows,) the index in `flat` of the first id of each row."""
        return LazyArray(self._num_rows, lambda rows: self._read(rows)[0], self._read_starts)

    def lengths(self) -> LazyArray:
        """Return (rows,) the number of ids of each row."""
        return LazyArray(self._num_rows, lambda rows: self._read(rows)[1], self._read_lengths)

    @property
    def _num_rows(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def _read(self, rows: Ints) -> tuple[Ints, Ints]:
        """Starts and lengths (n,) of some rows."""
        chunk = np.searchsorted(self._ends, rows, side="right")
        position = self._offsets[chunk] + rows - self._firsts[chunk]
        begin = self._flat[position].astype(np.int64)
        return begin + self._values[chunk], self._flat[position + 1] - begin

    def _read_starts(self, begin: int, end: int) -> Ints:
        """Starts of consecutive rows."""
        starts, position = np.empty(end - begin, np.int64), 0
        for chunk, start, count in self._iterate_chunks(begin, end):
            np.add(
                self._flat[start : start + count],
                self._values[chunk],
                out=starts[position : position + count],
                dtype=np.int64,
            )
            position += count
        return starts

    def _read_lengths(self, begin: int, end: int) -> Ints:
        """Lengths of consecutive rows."""
        lengths, position = np.empty(end - begin, np.int64), 0
        for _, start, count in self._iterate_chunks(begin, end):
            ends, starts = self._flat[start + 1 : start + count + 1], self._flat[start : start + count]
            np.subtract(ends, starts, out=lengths[position : position + count])
            position += count
        return lengths

    def _iterate_chunks(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The chunks that rows lie in, the index in the file of the first offset of them in each, and their number."""
        chunk = int(np.searchsorted(self._ends, begin, side="right"))
        while begin < end:
            stop = min(int(self._ends[chunk]), end)
            yield chunk, int(self._offsets[chunk]) + begin - int(self._firsts[chunk]), stop - begin
            begin, chunk = stop, chunk + 1


def _index_in_file(array: pa.Array, count: int, mapped_values: NDArray[np.int32], base_address: int) -> int:
    """The index in the file of an array's int32 numbers. Raises ValueError where they are elsewhere."""
    if not count:
        return 0
    begin = array.buffers()[1].address - base_address
    if begin % 4 or not 0 <= begin <= mapped_values.nbytes - 4 * (array.offset + count):
        raise ValueError("its token ids are not within the file")
    return int(begin // 4 + array.offset)
