"""SentencePiece files made to harm are refused, and soon."""

import struct
import time

import pytest

from tfm.tokenizer.foreign.sentencepiece import (
    BPE,
    MAX_BYTES,
    SentencePieceModel,
    build_tokenizer_json,
    parse_sentencepiece_model,
)
from tfm.tokenizer.special import UNK


def varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def piece(text: str, score: float = 0.0) -> bytes:
    return field(1, field(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score))


GOOD = piece("a") + piece("b")
BAD = {
    "an integer without an end": b"\x08" + b"\xff" * 1_000_000,
    "a key without an end": b"\xff" * 1_000_000,
    "a size without an end": b"\x0a" + b"\xff" * 1_000_000,
    "a size of 2**63": b"\x0a" + varint(2**63),
    "a piece that is no UTF-8": field(1, field(1, b"\xff")),
    "a long piece": GOOD + piece("a" * 100_000),
    "a score that is no number": GOOD + piece("ab", float("nan")),
    "an infinite score": GOOD + piece("ab", float("inf")),
    "a group": b"\x0b",
    "a kind beyond 64 bits": GOOD + field(2, b"\x18" + varint(2**80)),
    "nothing": b"",
    "too large": b"\x20\x01" * (MAX_BYTES // 2 + 1),
}


@pytest.mark.parametrize("what", BAD)
def test_it_is_refused(what: str) -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match="SentencePiece model"):
        parse_sentencepiece_model(BAD[what])
    assert time.monotonic() - began < 5


def test_a_good_one_is_read() -> None:
    assert parse_sentencepiece_model(GOOD + field(2, b"\x18\x02")).kind == BPE
    assert {*parse_sentencepiece_model(GOOD).scores} == {"a", "b"}


def test_merges_of_long_pieces_are_found_without_all_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a" * length for length in range(1, 60)]
    model = SentencePieceModel(dict.fromkeys(names, 0.0), b"", True, BPE)
    merges = build_tokenizer_json(model, [UNK, *names], {})["model"]["merges"]
    assert len(merges) == sum(range(59))
    monkeypatch.setattr("tfm.tokenizer.foreign.sentencepiece.MAX_MERGES", 1000)
    with pytest.raises(ValueError, match="more than 1,000 ways"):
        build_tokenizer_json(model, [UNK, *names], {})
