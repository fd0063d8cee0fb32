"""Tokenizers of other programs that somebody made to harm, by the name of their file."""

import base64
import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path

from tests import hostile
from tests.foreign_tokenizers import KINDS, document_of

BYTES = "".join(f"{base64.b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(256))
VOCAB = {"a": 0, "b": 1, "ab": 2}
PLAIN = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def document(**changes: object) -> bytes:
    """A tokenizer.json of three pieces with other parts."""
    model = {"type": "BPE", "vocab": VOCAB, "merges": [["a", "b"]]}
    return json.dumps({"version": "1.0", "added_tokens": [], "model": model, **changes}).encode()


def replace(count: int) -> dict[str, object]:
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}
    return {"type": "Sequence", "normalizers": [step] * count}


def split(pattern: str) -> dict[str, object]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def added(number: object, content: object = "x") -> list[dict[str, object]]:
    return [{"id": number, "content": content, **PLAIN}]


DEEP_STEPS = {"type": "Sequence", "normalizers": []}
for _ in range(150):
    DEEP_STEPS = {"type": "Sequence", "normalizers": [DEEP_STEPS]}

FILES: dict[str, dict[str, bytes]] = {
    "tokenizer.json": {
        "nothing": b"",
        "deep": hostile.DEEP,
        "deep object": hostile.DEEP_OBJECT,
        "lists": b'{"a":[' + b"[]," * 4_100_000 + b"0]}",
        "not UTF-8": b'{"model": "\xff"}',
        "a key twice": b'{"model": {}, "model": {}}',
        "no model": b"{}",
        "a model that is none": document(model=[]),
        "a type that is none": document(model={"type": "os.system", "vocab": VOCAB}),
        "no type, and nothing to tell it by": document(model={"vocab": {}}),
        "no type and a huge id": document(model={"vocab": {"a": 2**32 - 1}, "merges": []}),
        "no type and an endless pattern": document(model={"vocab": VOCAB, "merges": []}, pre_tokenizer=split("(a+)+$")),
        "a far id": document(model={"type": "BPE", "vocab": {"a": 2**31}, "merges": []}),
        "an id of 2**64": document(model={"type": "BPE", "vocab": {"a": 2**64}, "merges": []}),
        "an id that is none": document(model={"type": "BPE", "vocab": {"a": "0"}, "merges": []}),
        "a negative id": document(model={"type": "BPE", "vocab": {"a": -1}, "merges": []}),
        "an added token of 2**63": document(added_tokens=added(2**63)),
        "an added token that is none": document(added_tokens=[3]),
        "an added token without text": document(added_tokens=added(3, None)),
        "an endless pattern": document(pre_tokenizer=split("(a+)+$")),
        "a pattern that is none": document(pre_tokenizer=split("(")),
        "a multiplied text": document(normalizer=replace(10)),
        "deep steps": document(normalizer=DEEP_STEPS),
        "merges of nothing": document(model={"type": "BPE", "vocab": VOCAB, "merges": [["x", "y"]]}),
        "merges of one": document(model={"type": "BPE", "vocab": VOCAB, "merges": ["ab"]}),
        "scores that are none": document(model={"type": "Unigram", "unk_id": 0, "vocab": [["a", "b"]]}),
    },
    "m.model": {
        "an integer without an end": b"\n\x15" + b"\xff" * 1_000_000,
        "a size of 2**63": b"\n" + b"\xff" * 8 + b"\x7f\x15",
        "no unknown piece": b"\n\x08\n\x01a\x15" + struct.pack("<f", 0.0),
        "a piece twice": (b"\n\x08\n\x01a\x15" + struct.pack("<f", 0.0)) * 2,
        "zeros": b"\n\x15" + bytes(1_000_000),
    },
    "vocab.txt": {
        "no unknown piece": b"a\nb\n",
        "not UTF-8": b"a\n\xff\n",
        "only an unknown piece that is far": b"[UNK\n",
    },
    "vocab.json": {
        "no merges": b'{"a": 0}',
        "a number that is none": b'{"a": 0, "b": 1e400}',
        "a huge id": json.dumps({"a": 2**40}).encode(),
    },
    "codes": {
        "an unknown version": b"#version: 0.3\nt h\n",
        "an end of its own": b"#version: 0.2\nt </w>\n",
        "a mark for the end": b"#version: 0.1\nt \xee\x80\x81\n",
        "a piece from nowhere": b"abc d\n",
        "long pieces": b"a b\n" + b"".join(b"%s %s\n" % (b"x" * n, b"x" * n) for n in (2**k for k in range(12))),
        "growth": b"".join(b"%s %s\n" % (b"x" * n, b"x" * n) for n in (2**k for k in range(20))),
        "not UTF-8": b"a \xff\n",
        "a long line": b"a " * 1_000_000,
    },
    "x.tiktoken": {
        "no bytes": b"YQ== 0\n",
        "a rank twice": BYTES.encode() + b"YWI= 3\n",
        "a far rank": BYTES.encode() + b"YWI= 999999999\n",
        "no base64": b"YQ== 0\n!!!! 1\n",
        "a long piece": BYTES.encode() + base64.b64encode(b"a" * 5000) + b" 256\n",
    },
}
"""By the name of a file its contents, each of which is to be refused."""
MANY_WAYS = BYTES.encode() + b"".join(
    base64.b64encode(bytes([letter]) * n) + b" %d\n" % (500 * letter + n)
    for letter in range(1, 10)
    for n in range(2, 500)
)
"""Ranks whose pieces can be made of two others in more than a million ways."""
ABOUT = {
    "special_tokens_map.json": (
        *(b"", b"[]", hostile.DEEP, b'{"eos_token": 1}', b'{"eos_token": [[]]}', b'{"pad_token": {"content": {}}}'),
    ),
    "tokenizer_config.json": (b"{", b'{"unk_token": ""}', b'{"bos_token": true}', b'{"cls_token": 1e999}'),
}
"""The same of what lies beside a good tokenizer.json."""


def damaged(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Names and contents of good files of every form in which bytes were changed, left out or repeated."""
    draw = random.Random(seed)
    codes = "#version: 0.2\nt h\nth e</w>\ni n\na n\n"
    vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n##m\ncat\n"
    pieces = b"".join(b"\n\x0a\n\x01%c\x15\0\0\0\0\x18%c" % (97 + n, 2 if n == 0 else 1) for n in range(9))
    good = {
        "tokenizer.json": json.dumps(document_of(KINDS["t5"]())["model"]).encode()[:2000],
        "legacy/tokenizer.json": document(model={"vocab": VOCAB, "merges": ["a b"]}),
        "typed/tokenizer.json": document(added_tokens=added(3, "</s>")),
        "codes": codes.encode(),
        "old/codes": b"#version: 0.1\nt h\nth e\nthe </w>\ni n\na n\n",
        "vocab.txt": vocab.encode(),
        "x.tiktoken": (BYTES + "YWI= 256\n").encode(),
        "m.model": pieces,
        "words/m.model": pieces + b"\x12\x02\x18\x03",
    }
    names = [*good]
    for _ in range(count):
        name = draw.choice(names)
        data = bytearray(good[name])
        for _ in range(draw.choice((1, 1, 2, 5))):
            at, size = draw.randrange(len(data)), draw.choice((1, 1, 3, 20))
            change = draw.randrange(4)
            if change == 0:
                data[at : at + size] = draw.randbytes(size)
            elif change == 1 and len(data) > size + 1:
                del data[at : at + size]
            elif change == 2:
                data[at:at] = data[at : at + size] * draw.choice((1, 2, 50))
            else:
                data[at : at + 1] = draw.choice((b'"', b"{", b"[", b"9" * 30, b"\n", b" ", b"\xff", b"null", b"-1"))
        yield Path(name).name, bytes(data)
