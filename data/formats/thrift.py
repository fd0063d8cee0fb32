"""Structs of Thrift's compact protocol, in which Parquet files describe themselves, read without believing a length."""

from typing import Any

MAX_STRUCT_DEPTH = 16
_BINARY_TYPE, _LIST_TYPE, _SET_TYPE, _STRUCT_TYPE = 8, 9, 10, 12
_INTEGER_TYPES = (4, 5, 6)
_BYTES_PER_TYPE = {3: 1, 7: 8}  # a byte, a float


def read_struct(data: bytes, offset: int = 0, depth: int = 0) -> tuple[dict[int, Any], int]:
    """The fields of a struct by number, and where it ends; a float is None.

    Raises:
        IndexError: the data end before it does.
        ValueError: it is damaged.
    """
    if depth > MAX_STRUCT_DEPTH:
        raise ValueError("its metadata are nested too deeply")
    fields: dict[int, Any] = {}
    number = 0
    while byte := data[offset]:
        offset += 1
        if byte >> 4:
            number += byte >> 4
        else:
            number, offset = _read_integer(data, offset)
        if byte & 15 in (1, 2):
            fields[number] = byte & 15 == 1
        else:
            fields[number], offset = _read_value(data, offset, byte & 15, depth)
    return fields, offset + 1


def _read_value(data: bytes, offset: int, kind: int, depth: int) -> tuple[Any, int]:
    """A value of one of Thrift's kinds, and where it ends."""
    if kind in _INTEGER_TYPES:
        return _read_integer(data, offset)
    if kind == _STRUCT_TYPE:
        return read_struct(data, offset, depth + 1)
    if kind in (_LIST_TYPE, _SET_TYPE):
        return _read_list(data, offset, depth)
    if kind == _BINARY_TYPE:
        length, offset = _read_varint(data, offset)
    elif kind in _BYTES_PER_TYPE:
        length = _BYTES_PER_TYPE[kind]
    else:
        raise ValueError("its metadata are damaged")
    if offset + length > len(data):
        raise IndexError
    return data[offset : offset + length] if kind == _BINARY_TYPE else None, offset + length


def _read_list(data: bytes, offset: int, depth: int) -> tuple[list[Any], int]:
    head = data[offset]
    count, offset = (head >> 4, offset + 1) if head >> 4 < 15 else _read_varint(data, offset + 1)
    kind = head & 15
    items = []
    for _ in range(count):
        item, offset = _read_value(data, offset, 3 if kind in (1, 2) else kind, depth + 1)
        items.append(item)
    return items, offset


def _read_integer(data: bytes, offset: int) -> tuple[int, int]:
    zigzag, offset = _read_varint(data, offset)
    return (zigzag >> 1) ^ -(zigzag & 1), offset


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """A whole number in groups of seven bits, the lowest first, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[offset]
        offset += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, offset
    raise ValueError("its metadata hold a number without an end")
