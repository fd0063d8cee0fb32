"""What one who means harm writes into a folder of transformers."""

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests import hostile

EXTREME: tuple[object, ...] = (10**400, float("nan"), float("inf"), -1, 1e308, True, [], {}, "", "x" * 10_000, [[]],
                               {"a": {}}, 2**63, 0.5, "\ud800\n<script>")  # fmt: skip
SIZES = {
    *("d_model", "hidden_size", "n_embd", "encoder_ffn_dim", "decoder_ffn_dim", "intermediate_size"),
    *("encoder_layers", "decoder_layers", "num_hidden_layers", "n_layer", "vocab_size", "n_inner"),
    *("encoder_attention_heads", "decoder_attention_heads", "num_attention_heads", "n_head"),
    *("max_position_embeddings", "n_positions"),
}
"""Keys of config.json whose every extreme value is wrong."""
IDS = ("eos_token_id", "bos_token_id", "pad_token_id", "decoder_start_token_id", "forced_eos_token_id")
WRONG_IDS: tuple[object, ...] = (-1, [-1], [], True, 10**7, 10**400, "2", 0.0, {}, float("nan"), [[0]])
LARGE = (10**7, 2**31, 10**12)


def changes_of(config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A key of config.json, and the object with a wrong value under it."""
    for key in sorted(SIZES & config.keys()):
        yield from ((key, config | {key: value}) for value in (*EXTREME, *LARGE))
    for key in IDS:
        yield from ((key, config | {key: value}) for value in WRONG_IDS)


def weights(shapes: dict[str, list[int]], *, dtype: str = "F16") -> bytes:
    """The header of a file with these tensors, whose bytes would follow."""
    header, at = {}, 0
    for name, shape in shapes.items():
        count = 2
        for size in shape:
            count *= size
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + count]}
        at += count
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


def swollen(file: Path, place: Path, pick: Callable[[str], bool], shape: list[int]) -> None:
    """A file of weights of which some have a huge shape, and whose bytes are a hole on the disk."""
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    found = json.loads(data[8 : 8 + size])
    found.pop("__metadata__", None)
    shapes = {name: shape if pick(name) else each["shape"] for name, each in found.items()}
    header = weights(shapes)
    last = max(each["data_offsets"][1] for each in json.loads(header[8:]).values())
    place.unlink()
    place.write_bytes(header)
    with open(place, "r+b") as stream:
        stream.truncate(len(header) + last)


LISTS = b'{"a":[' + b"[]," * 4_100_000 + b"0]}"
DOCUMENTS = {
    "nothing": b"",
    "a list": b"[]",
    "deep": hostile.DEEP,
    "deep object": hostile.DEEP_OBJECT,
    "not UTF-8": b'{"a": "\xff"}',
    "lists": LISTS,
    "a number of a million digits": b'{"model": ' + b"9" * 10**6 + b"}",
}
TOKENIZERS: dict[str, hostile.Change] = {
    "an endless pattern": hostile.changed(
        pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    ),
    "a multiplied text": hostile.changed(
        normalizer={
            "type": "Sequence",
            "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}] * 10,
        }
    ),
    "an id of 2**64": hostile.changed(model__vocab={"a": 2**64}),
    "an id that is none": hostile.changed(model__vocab={"a": [0]}),
    "no object": hostile.changed(model=3),
    "no vocabulary": hostile.changed(model={}),
    "added tokens that are none": hostile.changed(added_tokens=[3]),
    "an added token of 2**63": hostile.changed(added_tokens=[{"id": 2**63, "content": "x"}]),
}
