"""Arrow files and streams as tables of bounded size, as folders of datasets hold them."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tfm.data.formats.arrow_stream import compressed_buffers
from tfm.data.formats.row_sizes import check_unpacked_size
from tfm.data.safe_files import open_regular_file

ARROW_MAGIC = b"ARROW1\0\0"
MAX_BATCH_BYTES = 2**29


def read_arrow(path: Path, *, follow_symlinks: bool = True) -> Iterator[pa.Table]:
    """The record batches of an Arrow file or stream as tables, the first without rows; nothing is copied.

    Raises:
        ValueError: a column is encoded so that it might unpack to more than it says, or a batch unpacks to more than
            MAX_BATCH_BYTES.
        pyarrow.ArrowException: it is no Arrow file.
    """
    with open_regular_file(path, follow_symlinks=follow_symlinks) as stream:
        is_file = stream.read(len(ARROW_MAGIC)) == ARROW_MAGIC
    with pa.memory_map(str(path)) as mapped:
        mapped.seek(len(ARROW_MAGIC) if is_file else 0)
        messages = pa.ipc.MessageReader.open_stream(mapped)
        first = next(messages, None)
        if first is None or first.type != "schema":
            raise ValueError("it does not begin with a schema")
        schema = pa.ipc.read_schema(first)
        for field in schema:
            check_column_type(field.type)
        yield schema.empty_table()
        num_bytes = 0
        for message in messages:
            if message.type != "record batch":
                raise ValueError("it holds more than record batches")
            if (size := uncompressed_size(message)) > MAX_BATCH_BYTES:
                raise ValueError(f"a batch unpacks to {size:,} bytes, and at most {MAX_BATCH_BYTES:,} are read")
            num_bytes += size
            check_unpacked_size(num_bytes, mapped.size())
            yield pa.Table.from_batches([pa.ipc.read_record_batch(message, schema)])


def check_column_type(data_type: pa.DataType) -> None:
    """Raise ValueError if a type lets a few bytes stand for many: dictionaries, runs, views, unions."""
    for number in range(data_type.num_fields):
        check_column_type(data_type.field(number).type)
    names = ("dictionary", "run_end_encoded", "string_view", "binary_view", "list_view", "large_list_view", "union")
    if any(getattr(pa.types, f"is_{name}", lambda _: False)(data_type) for name in names):
        raise ValueError(f"a column holds {data_type!s:.80}, which is not read")


def uncompressed_size(message: pa.Message) -> int:
    """How many bytes a compressed record batch says that it unpacks to; 0 of one that is not compressed."""
    body = memoryview(message.body) if message.body is not None else memoryview(b"")
    total = 0
    for offset, length in compressed_buffers(message.metadata):
        if length >= 8 and 0 <= offset <= len(body) - 8:
            total += max(struct.unpack_from("<q", body, offset)[0], 0)  # -1: stored as it is
    return total
