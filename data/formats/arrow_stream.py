"""Arrow streams from untrusted files: read without copying, with every offset checked."""

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def read_arrow_stream(mapped: Any, schemas: Sequence[pa.Schema]) -> pa.Table:
    """The table in a mapped Arrow stream of one of these schemas, without copying it.

    Raises ValueError, or what Arrow raises, where a column is another one, an offset leads out of its column, a
    field is empty, a text is no UTF-8, or a batch is packed and might unpack to more than there is memory.
    """
    messages = pa.ipc.MessageReader.open_stream(mapped)
    first = next(messages, None)
    if first is None or first.type != "schema":  # of what is none, Arrow would read one all the same
        raise ValueError("it does not begin with a schema")
    schema = pa.ipc.read_schema(first)
    if not any(schema.equals(known) for known in schemas):
        raise ValueError("its columns are others")
    batches = []
    for message in messages:
        if message.type != "record batch" or _is_compressed(message.metadata):
            raise ValueError("it holds more than plain record batches")
        batches.append(pa.ipc.read_record_batch(message, schema))
        batches[-1].validate(full=True)
        if any(column.null_count for column in batches[-1].columns):
            raise ValueError("it has empty fields")
    return pa.Table.from_batches(batches, schema)


def compressed_buffers(metadata: pa.Buffer) -> list[tuple[int, int]]:
    """The place of each buffer of a compressed record batch in its body, and its length; none if it is not compressed.

    Each begins with its length once unpacked, in 8 bytes (RecordBatch in Message.fbs of the format).
    """
    if not _is_compressed(metadata):
        return []
    data = memoryview(metadata)
    batch = _record_batch_offset(data)
    if not (field_offset := _field_offset(data, batch, 2)):
        return []
    vector = batch + field_offset + struct.unpack_from("<I", data, batch + field_offset)[0]
    (count,) = struct.unpack_from("<I", data, vector)
    return [struct.unpack_from("<qq", data, vector + 4 + 16 * each) for each in range(min(count, len(data) // 16))]


def _is_compressed(metadata: pa.Buffer) -> bool:
    """Whether a record batch is compressed: then its flatbuffer has field 3 of RecordBatch, which is field 2 of
    Message (Message.fbs of the Arrow format)."""
    data = memoryview(metadata)
    return _field_offset(data, _record_batch_offset(data), 3) != 0


def _record_batch_offset(data: memoryview) -> int:
    """The place of the RecordBatch of a message in its metadata."""
    (message,) = struct.unpack_from("<I", data)
    header = message + _field_offset(data, message, 2)
    return int(header + struct.unpack_from("<I", data, header)[0])


def _field_offset(data: memoryview, table: int, field_index: int) -> int:
    """The offset of a field of a flatbuffer's table, from the table on; 0 where it is not there."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    (size,) = struct.unpack_from("<H", data, vtable)
    position = 4 + 2 * field_index
    return int(struct.unpack_from("<H", data, vtable + position)[0]) if position < size else 0
