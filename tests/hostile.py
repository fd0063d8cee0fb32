"""What one who means harm writes into the files of an artifact."""

import io
import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from tfm.tokenizer.special import SPECIAL_TOKENS

DEEP = b"[" * 100_000
DEEP_OBJECT = b'{"a":' * 100_000
Change = Callable[[Any], object]


class Payload:
    """What would run, were it unpickled: it writes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (f"open({str(self.marker)!r}, 'w').close()",)


def pickles(marker: Path) -> dict[str, bytes]:
    """Files that run code where somebody unpickles them."""
    zipped = io.BytesIO()
    torch.save({"weight": Payload(marker)}, zipped)
    old = io.BytesIO()
    torch.save({"weight": Payload(marker)}, old, _use_new_zipfile_serialization=False)
    return {"pickle": pickle.dumps(Payload(marker)), "torch zip": zipped.getvalue(), "torch": old.getvalue()}


def sparse(file: Path, size: int) -> None:
    """A file of zeros that takes no room on the disk."""
    with open(file, "wb") as stream:
        stream.truncate(size)


def weights(header: object, data: bytes = b"", *, length: int | None = None) -> bytes:
    """A safetensors file with this header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def one(shape: list[int], begin: int, end: int, dtype: str = "F32") -> dict[str, object]:
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}}


WEIGHTS = {
    "nothing": b"",
    "seven bytes": b"\0" * 7,
    "terabytes": weights(one([2**40], 0, 2**42)),
    "terabytes without an end": weights(one([2**40], 0, 4), b"\0" * 4),
    "numbers beyond 64 bits": weights(one([2**62, 2**62, 4], 0, 4), b"\0" * 4),
    "negative shape": weights(one([-1], 0, 4), b"\0" * 4),
    "negative offsets": weights(one([1], -4, 0), b"\0" * 4),
    "end before begin": weights(one([1], 4, 0), b"\0" * 4),
    "unknown type": weights(one([1], 0, 4, "PICKLE"), b"\0" * 4),
    "header larger than the file": weights({}, length=10**9),
    "header of 2**63": weights({}, length=2**63),
    "deep header": weights(DEEP_OBJECT),
    "header that is a list": weights([]),
    "nothing in it": weights({}),
    "many empty tensors": weights({f"{n}": one([0], 0, 0)["w"] for n in range(50_000)}),
    "giant empty tensor": weights(one([2**40, 0], 0, 0)),
    "a name of a million characters": weights({"w" * 10**6: one([1], 0, 4)["w"]}, b"\0" * 4),
}


def arrow(schema: pa.Schema, *columns: pa.Array, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays(list(columns), schema=schema))
    return bytes(sink.getvalue())


IDS = pa.list_(pa.int32())
TRAIN = pa.schema({"source": IDS, "target": IDS, "weight": pa.float64()})


def ids(*numbers: int | None) -> pa.Array:
    """One row of ids."""
    return pa.array([numbers], IDS)


GOOD, ONE = ids(4, 5), pa.array([1.0])


def with_offsets(begin: int, end: int) -> bytes:
    """Training data whose first source begins and ends anywhere, which Arrow itself would refuse to write."""
    data = bytearray(arrow(TRAIN, ids(*[4] * 77), GOOD, ONE))
    place = data.rfind(struct.pack("<ii", 0, 77))  # what is in front of it is metadata
    struct.pack_into("<ii", data, place, begin, end)
    return bytes(data)


def text(*sides: bytes) -> list[pa.Array]:
    """Columns of one text each, which need not be UTF-8."""
    return [pa.Array.from_buffers(pa.string(), 1, pa.array([side], pa.binary()).buffers()) for side in sides]


def train_splits() -> dict[str, bytes]:
    good = arrow(TRAIN, GOOD, GOOD, ONE)
    floats = pa.list_(pa.float32())
    return {
        "nothing": b"",
        "not Arrow": b"ARROW1\0\0" * 100,
        "cut": good[: len(good) // 2],
        "length of a message": struct.pack("<II", 2**32 - 1, 2**31 - 1) + good[8:],
        "negative offsets": with_offsets(-5, 77),
        "offsets beyond the end": with_offsets(0, 2**30),
        "offsets that come down": with_offsets(2, 0),
        "offsets of both": with_offsets(-(2**31), 2**31 - 1),
        "empty fields": arrow(TRAIN, ids(4, None), GOOD, ONE),
        "empty rows": arrow(TRAIN, pa.array([None], IDS), GOOD, ONE),
        "other numbers": arrow(
            pa.schema({"source": floats, "target": IDS, "weight": pa.float64()}), pa.array([[4.0]], floats), GOOD, ONE
        ),
        "no lists": arrow(
            *(pa.schema({"source": pa.int32(), "target": IDS, "weight": pa.float64()}), pa.array([4], pa.int32())),
            *(GOOD, ONE),
        ),
        "a column less": arrow(pa.schema({"source": IDS, "weight": pa.float64()}), GOOD, ONE),
        "no columns": arrow(pa.schema({})),
        "packed": arrow(TRAIN, ids(*[4] * 2**20), GOOD, ONE, compression="zstd"),
        "ids beyond the vocabulary": arrow(TRAIN, ids(4, 10**6), GOOD, ONE),
        "negative ids": arrow(TRAIN, GOOD, ids(-4, 5), ONE),
        "no number for a weight": arrow(TRAIN, GOOD, GOOD, pa.array([float("nan")])),
        "infinite weight": arrow(TRAIN, GOOD, GOOD, pa.array([float("inf")])),
        "negative weight": arrow(TRAIN, GOOD, GOOD, pa.array([-1.0])),
        "texts": arrow(
            pa.schema({"source": IDS, "target": IDS, "source_text": pa.string(), "target_text": pa.string()}),
            *(GOOD, GOOD, *text(b"a", b"b")),
        ),
    }  # fmt: skip


def valid_splits() -> dict[str, bytes]:
    schema = pa.schema({"source": IDS, "target": IDS, "source_text": pa.string(), "target_text": pa.string()})
    return {
        "not UTF-8": arrow(schema, GOOD, GOOD, *text(b"\xff\xfe", b"b")),
        "no texts": arrow(TRAIN, GOOD, GOOD, ONE),
        "ids beyond the vocabulary": arrow(schema, GOOD, ids(10**6), *text(b"a", b"b")),
        "cut texts": arrow(schema, GOOD, GOOD, *text(b"a", b"b"))[:-40],
    }


def changed(**parts: Any) -> Change:
    """A JSON object with other values under some of its keys, `a__b` being b of a."""

    def change(document: Any) -> object:
        for key, value in parts.items():
            *above, name = key.split("__")
            part = document
            for each in above:
                part = part[each]
            part[name] = value
        return document

    return change


CONFIGS: dict[str, bytes | Change] = {
    "nothing": b"",
    "no object": b"3",
    "deep": DEEP,
    "deep object": DEEP_OBJECT,
    "not UTF-8": b'{"norm": "\xff"}',
    "a number of a million digits": b'{"max_length": ' + b"9" * 10**6 + b"}",
    "10^12 parameters": changed(encoder__dim=10**6, decoder__dim=10**6, encoder__heads=1, decoder__heads=1),
    "more than the file has": changed(encoder__feed_forward_dim=2**20),
    "more layers than the file has": changed(encoder__layers=1000),
    "10^12 layers": changed(encoder__layers=10**12),
    "negative layers": changed(encoder__layers=-1),
    "no heads": changed(encoder__heads=0),
    "width beyond 64 bits": changed(encoder__dim=10**30, encoder__heads=1),
    "10^12 positions": changed(max_length=10**12),
    "10^12 learned positions": changed(max_length=10**12, positions="learned"),
    "10^5 learned positions": changed(max_length=10**5, positions="learned"),
    "wide embeddings": changed(embedding_dim=2**20),
    "a list for a number": changed(encoder__layers=[1]),
    "no number": changed(dropout__residual=float("nan")),
    "an unknown key": changed(code="import os"),
    "an unknown class": changed(architecture="os.system"),
}
ABOUT: dict[str, bytes | Change] = {
    "nothing": b"",
    "deep": DEEP,
    "a list": b"[]",
    **{f"tests {names!r}": changed(tests=names) for names in (
        ["../x"], ["/etc"], ["a/b"], ["."], [".."], [""], ["a\0b"], ["train"], ["tokenizer"], [1], [["main"]], "main",
        {"main": 1}, None, ["no such split"], ["main\n"],
    )},
    **{f"batch_tokens {size!r}": changed(batch_tokens=size) for size in (-1, 0, 10**30, "9", None, True, [1], 0.5)},
}  # fmt: skip
VOCABULARY = {piece: number for number, piece in enumerate(SPECIAL_TOKENS)}
TOKENIZERS: dict[str, bytes | Change] = {
    "nothing": b"",
    "deep": DEEP,
    "deep object": b'{"version":' * 100_000,
    "not UTF-8": b"\xff\xfe{}",
    "no model": b'{"version": "1.0"}',
    "an id of 2**32 - 1": changed(model__vocab=VOCABULARY | {"a": 2**32 - 1}),
    "an id of 2**64": changed(model__vocab=VOCABULARY | {"a": 2**64}),
    "an id twice": changed(model__vocab=VOCABULARY | {"a": 5, "b": 5}),
    "no unknown piece": changed(model__unk_token="nowhere"),
    "a normalizer that is none": changed(normalizer={"type": "os.system"}),
    "a pattern that is none": changed(
        pre_tokenizer={"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False}
    ),
}  # fmt: skip
