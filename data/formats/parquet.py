"""Parquet files as tables of bounded size, whatever a file unpacks to.

A few hundred bytes may stand for gigabytes: a dictionary repeats a long text, a page is compressed, a list has millions
of items. So the headers of all pages are read first, and they decide how many rows are decoded at once.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from tfm.data.errors import format_count
from tfm.data.formats.parquet_pages import DELTA_BYTE_ARRAY_ENCODING, Page, read_pages, read_row_groups
from tfm.data.formats.row_sizes import check_unpacked_size, row_sizes

BATCH_BYTES = 2**26
MAX_PAGE_BYTES = 2**29
MAX_BATCH_ROWS = 2**14
MAX_BATCH_ITEMS = 2**26
MIN_BATCH_LIST_ROWS = 16


def read_parquet(stream: BinaryIO, select_columns: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[pa.Table]:
    """The rows of a Parquet file as tables, of BATCH_BYTES each where rows are short; texts in lists may be encoded.

    Args:
        stream: the file.
        select_columns: which of its columns to read.

    Yields:
        A table without rows, which has all columns, and those with rows, which have these columns.

    Raises:
        ValueError: the file is damaged, a page is larger than any that can be decoded here, or all of it unpacks to
            more than `check_unpacked_size` allows.
        pyarrow.ArrowException: it is no Parquet file.
    """
    if not stream.seekable():
        raise ValueError("it is compressed so that it can be read from its beginning alone: unpack it")
    file_bytes = stream.seek(0, os.SEEK_END)
    groups = read_row_groups(stream)
    file = pq.ParquetFile(stream)
    columns = list(select_columns(file.schema_arrow.names))
    leaves = {leaf.path: leaf for leaf in map(file.schema.column, range(len(file.schema.names)))}
    num_at_once = []
    for group in groups:
        of_columns = [chunk for chunk in group if chunk.path and chunk.path[0] in columns]
        numbers = [
            _num_decodable_rows(list(read_pages(stream, chunk)), leaves[".".join(chunk.path)]) for chunk in of_columns
        ]
        num_at_once.append(min([MAX_BATCH_ROWS, *numbers]))
    yield file.schema_arrow.empty_table()
    if not columns:
        return
    lists = [leaf for leaf in leaves.values() if leaf.max_repetition_level and leaf.path.split(".")[0] in columns]
    encoded = [leaf.path for leaf in lists if leaf.physical_type == "BYTE_ARRAY"]
    file = pq.ParquetFile(stream, metadata=file.metadata, read_dictionary=encoded, buffer_size=1 << 20)
    num_rows = num_bytes = 0
    for number, num in enumerate(num_at_once):
        for batch in file.iter_batches(batch_size=num, row_groups=[number], columns=columns):
            table = pa.Table.from_batches([batch])
            num_rows, num_bytes = num_rows + len(table), num_bytes + _table_bytes(table)
            check_unpacked_size(num_bytes, file_bytes)
            yield table
    if num_rows != file.metadata.num_rows:
        raise ValueError(f"it has {format_count(num_rows, 'row')}, but its metadata says {file.metadata.num_rows}")


def _table_bytes(table: pa.Table) -> int:
    """About how many bytes of texts a table holds; those in lists are bounded by their number."""
    plain = [field.name for field in table.schema if not pa.types.is_list(field.type)]
    return int(row_sizes(table.select(plain)).sum())


def _num_decodable_rows(pages: Sequence[Page], leaf: Any) -> int:
    """How many rows of a column chunk can be decoded at once.

    A value has at most the bytes of its page or, encoded by a dictionary, of that; without such an encoding all values
    of a page together have no more bytes than it.
    """
    largest = max((page.num_bytes for page in pages), default=0)
    if largest > MAX_PAGE_BYTES:
        raise ValueError(f"a page unpacks to {largest:,} bytes, and at most {MAX_PAGE_BYTES:,} are read")
    if leaf.max_repetition_level:
        return _num_decodable_list_rows(pages)
    shares = [page.num_bytes // max(page.num_values, 1) for page in pages if not page.is_dictionary]
    repeats = [page.num_bytes for page in pages if page.is_dictionary or page.encoding == DELTA_BYTE_ARRAY_ENCODING]
    if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY":
        repeats = [leaf.length]
    elif leaf.physical_type != "BYTE_ARRAY":
        repeats = []
    return max(1, BATCH_BYTES // max([1, *shares, *repeats]))


def _num_decodable_list_rows(pages: Sequence[Page]) -> int:
    """How many rows of lists can be decoded at once, their texts still encoded by the dictionary."""
    data = [page for page in pages if not page.is_dictionary]
    num_items = sum(page.num_values for page in data)
    if num_items > MAX_BATCH_ITEMS:
        raise ValueError(f"a row group has {num_items:,} items in lists, and at most {MAX_BATCH_ITEMS:,} are read")
    if any(page.encoding == DELTA_BYTE_ARRAY_ENCODING for page in data):
        raise ValueError("texts in lists are encoded by DELTA_BYTE_ARRAY, which is not read")
    total_bytes = sum(page.num_bytes for page in pages) + 16 * num_items
    return MAX_BATCH_ROWS if total_bytes <= BATCH_BYTES else MIN_BATCH_LIST_ROWS
