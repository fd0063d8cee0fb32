"""The pages of Parquet files: how much each unpacks to, read from its header before anything is unpacked.

Both the metadata at the end of a file and the headers are structs of Thrift (parquet.thrift of the format); they are
read here, as pyarrow ends the process where those of a column are damaged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from tfm.data.formats.thrift import read_struct

MAX_FOOTER_BYTES = 2**23
DICTIONARY_PAGE_TYPE = 2
DELTA_BYTE_ARRAY_ENCODING = 7
PAGE_HEADER_READ_BYTES = (1 << 12, 1 << 24)
# Fields of PageHeader, and of the headers of each kind of page in it.
TYPE_FIELD, NUM_BYTES_FIELD, NUM_PACKED_BYTES_FIELD = 1, 2, 3
PAGE_HEADER_FIELDS = {
    5: (1, 2),
    7: (1, 2),
    8: (1, 4),
}  # v1, dictionary, v2: where the number of values and the encoding stand


@dataclass(frozen=True)
class ColumnChunk:
    """The bytes of a column in a row group. path: its name, and those of the fields in it."""

    path: tuple[str, ...]
    begin: int
    num_bytes: int


@dataclass(frozen=True)
class Page:
    """num_bytes: unpacked. num_values: of all rows; a list counts for each of its items."""

    is_dictionary: bool
    num_bytes: int
    num_values: int
    encoding: int


def read_row_groups(stream: BinaryIO) -> list[list[ColumnChunk]]:
    """The column chunks of each row group of a file, by its metadata.

    Raises:
        ValueError: the metadata are damaged, or larger than those of any file that is read here.
    """
    size = stream.seek(0, 2)
    stream.seek(max(size - 8, 0))
    end = stream.read(8)
    length = int.from_bytes(end[:4], "little")
    if size < 12 or end[4:] != b"PAR1" or length > size - 12:
        raise ValueError("it does not end as a Parquet file does")
    if length > MAX_FOOTER_BYTES:
        raise ValueError(f"its metadata are of {length:,} bytes, and at most {MAX_FOOTER_BYTES:,} are read")
    stream.seek(size - 8 - length)
    try:
        metadata, _ = read_struct(stream.read(length))
        return [[_parse_chunk(column[3]) for column in group[1]] for group in metadata[4]]
    except (LookupError, TypeError, AttributeError):
        raise ValueError("its metadata are damaged") from None


def read_pages(stream: BinaryIO, chunk: ColumnChunk) -> Iterator[Page]:
    """The pages of a column chunk, from their headers alone.

    Raises:
        ValueError: there is no page where one should be.
    """
    position, end = chunk.begin, chunk.begin + chunk.num_bytes
    while position < end:
        header, length = _read_page_header(stream, position)
        kind, unpacked_size, packed_size = (
            header.get(field) for field in (TYPE_FIELD, NUM_BYTES_FIELD, NUM_PACKED_BYTES_FIELD)
        )
        if not all(isinstance(each, int) and each >= 0 for each in (kind, unpacked_size, packed_size)):
            raise ValueError("the header of a page is damaged")
        position += length + int(packed_size or 0)
        for field, (values, encoding) in PAGE_HEADER_FIELDS.items():
            if isinstance(page_header := header.get(field), dict):
                num, code = page_header.get(values, 0), page_header.get(encoding, 0)
                if not (isinstance(num, int) and num >= 0):
                    raise ValueError("the header of a page is damaged")
                yield Page(kind == DICTIONARY_PAGE_TYPE, int(unpacked_size or 0), num, code)


def _parse_chunk(column_chunk: dict[int, Any]) -> ColumnChunk:
    """A chunk by its ColumnMetaData. It begins with its dictionary if it has one; of a chunk without values, whose data
    begin nowhere, the place of these is 0.
    """
    path = tuple(part.decode("utf-8") for part in column_chunk[3])
    begin, dictionary, num_bytes = column_chunk[9], column_chunk.get(11) or 0, column_chunk[7]
    if min(begin, num_bytes) < 0:
        raise ValueError("its metadata are damaged")
    has_dictionary = dictionary > 0 and (dictionary < begin or begin == 0)
    return ColumnChunk(path, dictionary if has_dictionary else begin, num_bytes)


def _read_page_header(stream: BinaryIO, offset: int) -> tuple[dict[int, Any], int]:
    """The fields of the page header at a place, and its length."""
    for size in PAGE_HEADER_READ_BYTES:  # statistics in it may be long
        stream.seek(offset)
        try:
            return read_struct(stream.read(size))
        except IndexError:
            continue
    raise ValueError("the header of a page has no end")
