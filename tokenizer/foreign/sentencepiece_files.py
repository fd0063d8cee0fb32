"""A tokenizer that was read from a SentencePiece model, as the bytes of such a model again.

The fields are those that `sentencepiece` reads: pieces with their scores, what kind of model it is, and what is done to
a text before.
"""

import base64
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from tfm.tokenizer.foreign.renumbered import FILLER_PREFIX, document_pieces
from tfm.tokenizer.foreign.sentencepiece import BPE, NORMAL, UNIGRAM, WORD_EDGE
from tfm.tokenizer.special import BOS, EOS, UNK
from tfm.tokenizer.tokenizer import Tokenizer

UNKNOWN, CONTROL = 2, 3
TokenizerJson = Mapping[str, Any]


def is_from_sentencepiece(tokenizer: Tokenizer) -> bool:
    """Whether a tokenizer was read from a SentencePiece model that can be written again, some of its pieces those of
    the other side."""
    document = tokenizer.document
    decoders = (document["decoder"] or {}).get("decoders", [])
    return (
        any(step.get("pattern") == {"String": FILLER_PREFIX} for step in decoders)
        and _find_metaspace_step(document) is not None
        and not has_whole_words(document)
    )


def has_whole_words(document: TokenizerJson) -> bool:
    """Whether a tokenizer.json was made of a SentencePiece model of words."""
    steps = (document["normalizer"] or {}).get("normalizers", [])
    return any(step.get("pattern") == {"String": WORD_EDGE} for step in steps)


def have_same_ids(first: Tokenizer, second: Tokenizer) -> bool:
    """Whether each id is the same piece in both, though they may split texts differently, as Marian's two do."""
    if first is second or first.vocab_size != second.vocab_size:
        return first is second
    numbers = range(first.vocab_size)
    return all(
        first.piece(number).removeprefix(FILLER_PREFIX) == second.piece(number).removeprefix(FILLER_PREFIX)
        for number in numbers
    )


def sentencepiece_ids(tokenizer: Tokenizer) -> dict[str, int]:
    """The ids of pieces as in vocab.json, by the names of pieces there."""
    return {tokenizer.piece(number).removeprefix(FILLER_PREFIX): number for number in range(tokenizer.vocab_size)}


def build_sentencepiece_model(tokenizer: Tokenizer) -> bytes:
    """The SentencePiece model that cuts texts as a tokenizer does which was read from one."""
    document = tokenizer.document
    kind = UNIGRAM if document["model"]["type"] == "Unigram" else BPE
    control = ((UNK, UNKNOWN), (BOS, CONTROL), (EOS, CONTROL))
    pieces = b"".join(_encode_field(1, _encode_piece(name, 0.0, of_type)) for name, of_type in control)
    pieces += b"".join(_encode_field(1, _encode_piece(name, score, NORMAL)) for name, score in _piece_scores(document))
    space, charsmap = _find_metaspace_step(document), _charsmap(document)
    assert space is not None
    normalizer_fields = (_encode_field(2, charsmap) if charsmap else b"") + _encode_varint_field(
        3, space["prepend_scheme"] == "always"
    )
    return (
        pieces
        + _encode_field(2, _encode_varint_field(3, kind))
        + _encode_field(3, normalizer_fields + _encode_varint_field(4, 1))
    )


def _piece_scores(document: TokenizerJson) -> Iterator[tuple[str, float]]:
    """The scores of pieces; a piece that merges make earlier has a higher score."""
    model, control = document["model"], {each["content"] for each in document["added_tokens"]}
    names = [
        name
        for _, name in sorted(document_pieces(document).items())
        if name not in control and name[:1] != FILLER_PREFIX
    ]
    if isinstance(model["vocab"], list):
        scores = dict(model["vocab"])
    else:
        merged_pieces = dict.fromkeys("".join(merge) for merge in model["merges"])
        scores = {name: -float(rank) for rank, name in enumerate(merged_pieces)}
    low = min(scores.values(), default=0.0) - 1
    yield from ((name, scores.get(name, low)) for name in names)


def _find_metaspace_step(document: TokenizerJson) -> TokenizerJson | None:
    """The step that puts a mark in place of spaces."""
    step = document["pre_tokenizer"] or {}
    return next((each for each in (step, *step.get("pretokenizers", ())) if each.get("type") == "Metaspace"), None)


def _charsmap(document: TokenizerJson) -> bytes:
    steps = (document["normalizer"] or {}).get("normalizers", [])
    compiled = next((each["precompiled_charsmap"] for each in steps if each["type"] == "Precompiled"), "")
    return base64.b64decode(compiled)


def _encode_piece(name: str, score: float, piece_type: int) -> bytes:
    return _encode_field(1, name.encode()) + b"\x15" + struct.pack("<f", score) + _encode_varint_field(3, piece_type)


def _encode_field(field_number: int, data: bytes) -> bytes:
    return _encode_varint(field_number << 3 | 2) + _encode_varint(len(data)) + data


def _encode_varint_field(field_number: int, value: int) -> bytes:
    return _encode_varint(field_number << 3) + _encode_varint(value)


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])
