"""Rows of Arrow tables measured before they become texts, so that tables are cut into parts that fit into memory."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfm.data.arrays import Ints
from tfm.data.errors import DataError
from tfm.data.lines import MAX_LINE_BYTES

MAX_PART_BYTES = 2**25
BYTES_PER_ITEM = 64  # of the object that a text in a list becomes
MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO = 2**29, 1000


def split_table(table: pa.Table, file: Path | str, first_row: int = 1) -> Iterator[pa.Table]:
    """The rows of a table in parts of about MAX_PART_BYTES, as texts.

    Args:
        table: a valid table of texts, lists of texts, and structs of both.
        file: what messages name.
        first_row: the number of the first row, for messages.

    Raises:
        DataError: a row has more than MAX_LINE_BYTES, as no line of a text file may have.
    """
    sizes = row_sizes(table)
    if len(sizes) and (largest := int(sizes.argmax())) >= 0 and sizes[largest] > MAX_LINE_BYTES:
        problem = f"row {first_row + largest} holds more than {MAX_LINE_BYTES:,} bytes; is it text?"
        raise DataError(problem, file=file)
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(table):
        offset = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, offset + MAX_PART_BYTES, "right")))
        yield table.slice(begin, end - begin)
        begin = end


def check_unpacked_size(num_bytes: int, file_bytes: int) -> None:
    """Raise ValueError if a file has unpacked to so many bytes that it stands for text that nobody wrote.

    Args:
        num_bytes: of its rows so far.
        file_bytes: its size on disk. A thousand times as much is more than any corpus is compressed by.
    """
    if num_bytes > (limit := max(MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO * file_bytes)):
        raise ValueError(f"its {file_bytes:,} bytes unpack to more than {limit:,}, and no more are read")


def row_sizes(table: pa.Table) -> Ints:
    """(rows,) about how many bytes each row of a table takes once its values are Python's."""
    total = np.zeros(len(table), np.int64)
    for column in table.columns:
        parts = [_value_sizes(chunk) for chunk in column.chunks]
        total += np.concatenate(parts) if parts else 0
    return total


def decode_array(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The same values without views, and lists of a fixed size as those of any size; of others the array itself."""
    kind = array.type
    if pa.types.is_string_view(kind):
        return array.cast(pa.large_string())
    if any(test(kind) for test in (pa.types.is_fixed_size_list, pa.types.is_list_view, pa.types.is_large_list_view)):
        return array.cast(pa.large_list(kind.value_type))
    return array


def _value_sizes(array: pa.Array) -> Ints:
    array = decode_array(array)
    kind = array.type
    if pa.types.is_dictionary(kind):
        places = pc.fill_null(array.indices, 0).to_numpy(zero_copy_only=False)
        of_values = _value_sizes(array.dictionary)
        return of_values[places] if len(of_values) else np.zeros(len(array), np.int64)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        offsets = array.offsets.to_numpy().astype(np.int64)
        ends = np.zeros(offsets[-1] - offsets[0] + 1, np.int64)  # one array: there may be tens of millions
        ends[1:] = _value_sizes(array.values.slice(offsets[0], offsets[-1] - offsets[0]))
        ends[1:] += BYTES_PER_ITEM
        np.cumsum(ends, out=ends)
        return np.asarray(np.diff(ends[offsets - offsets[0]]))
    if pa.types.is_struct(kind):
        return sum((_value_sizes(each) for each in array.flatten()), np.zeros(len(array), np.int64))
    if any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary,
                                   pa.types.is_large_binary)):  # fmt: skip
        lengths = pc.fill_null(pc.binary_length(array), 0)
        return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)
    return np.full(len(array), BYTES_PER_ITEM, np.int64)
