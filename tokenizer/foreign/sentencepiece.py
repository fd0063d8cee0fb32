"""A SentencePiece model (Kudo and Richardson 2018) of any kind as tokenizer.json, without that package.

The file is a protocol buffer, https://protobuf.dev/programming-guides/encoding: fields of a number and a type, of which
few are read: pieces with scores, and what is done to a text before.
"""

import math
import re
import struct
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tfm.tokenizer.foreign.character_map import character_map_steps
from tfm.tokenizer.foreign.renumbered import FILLER_PREFIX, document_pieces, unused_token_name
from tfm.tokenizer.foreign.unnumbered import append_pieces_read_as_unk
from tfm.tokenizer.languages import is_language_token
from tfm.tokenizer.special import UNK

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE, WORD, CHAR = 1, 2, 3, 4
METASPACE = "\u2581"
WORD_EDGE, WORD_EDGE_IN_TEXT = "\ue001", "\ue003"
"""Behind each word and each piece where a model has words alone, and before those without a space; a typed one is the
second."""
MAX_BYTES, MAX_PIECE, MAX_MERGES = 16 * 2**20, 1000, 2_000_000
"""Bounds on a file, on the characters of a piece and on the merges of a BPE model: several times those of the largest
published models, so that a file made to harm takes neither hours nor gigabytes."""
MAX_VARINT_BYTES = 10
"""The bytes of a 64-bit integer as protocol buffers spell it."""


@dataclass(frozen=True)
class SentencePieceModel:
    """scores: by piece of text; BPE makes the piece of the highest one first. charsmap: the normaliser, as it is
    compiled. dummy_prefix: whether a text begins with a space. kind: UNIGRAM, BPE, WORD or CHAR. types: by piece, in
    the order of ids, what it is. byte_fallback: whether the bytes of an unknown character are pieces. extra_spaces:
    whether several spaces in a row are kept, and those at both ends."""

    scores: Mapping[str, float]
    charsmap: bytes
    dummy_prefix: bool
    kind: int = UNIGRAM
    types: Mapping[str, int] = field(default_factory=dict)
    byte_fallback: bool = False
    extra_spaces: bool = False


def parse_sentencepiece_model(data: bytes) -> SentencePieceModel:
    """Parse the bytes of a .spm or .model file. Raises ValueError if they are not a model of a supported kind."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"its SentencePiece model has {len(data):,} bytes, and {MAX_BYTES:,} at most are read")
    scores: dict[str, float] = {}
    types: dict[str, int] = {}
    kind, charsmap, prefix, fallback, extra = UNIGRAM, b"", True, False, False
    try:
        for number, value in _read_fields(data):
            if number == 1:
                piece, score, piece_type = "", 0.0, NORMAL
                for name, part in _read_fields(value):
                    piece = part.decode() if name == 1 else piece
                    score = struct.unpack("<f", part)[0] if name == 2 else score
                    piece_type = part if name == 3 else piece_type
                if len(piece) > MAX_PIECE or not math.isfinite(score):
                    raise ValueError("is no SentencePiece model: a piece is too long, or its score no number")
                if piece in types or not NORMAL <= piece_type <= BYTE:
                    raise ValueError("is no SentencePiece model: a piece is there twice, or of no type")
                types[piece] = piece_type
                if piece_type in (NORMAL, USER_DEFINED):
                    scores[piece] = score
            elif number == 2:
                settings = dict(_read_fields(value))
                kind = settings.get(3, UNIGRAM)
                fallback = bool(settings.get(35))
                if settings.get(24):
                    raise ValueError("spaces behind words are not supported (treat_whitespace_as_suffix)")
            elif number == 3:
                settings = dict(_read_fields(value))
                charsmap = bytes(settings[2]) if isinstance(settings.get(2), bytes) else b""
                prefix = bool(settings.get(3, 1))
                extra = not settings.get(4, 1)
                if not settings.get(5, 1):
                    raise ValueError("spaces that stay spaces are not supported (escape_whitespaces = false)")
    except (IndexError, struct.error, UnicodeDecodeError, AttributeError, TypeError, OverflowError) as error:
        raise ValueError("is no SentencePiece model") from error
    if kind not in BUILDERS or not scores:
        raise ValueError("is no SentencePiece model of kind unigram, BPE, char or word")
    if kind == WORD and (fallback or any(WORD_EDGE in piece for piece in scores)):
        cause = "bytes for unknown words" if fallback else "U+E001, which ends a word here, in one"
        raise ValueError(f"its SentencePiece model, of words, has {cause}: train one of another kind")
    return SentencePieceModel(scores, charsmap, prefix, kind, types, fallback, extra)


def build_tokenizer_json(
    model: SentencePieceModel, pieces: list[str], roles: Mapping[str, str], size: int = 0, *, unknown: str = UNK
) -> dict[str, Any]:
    """Return tokenizer.json of the model, for a vocabulary with the ids of pieces.

    Args:
        model: what cuts texts; pieces that the vocabulary lacks are left out: see `add_unnumbered_model_pieces`.
        pieces: the vocabulary, in the order of ids.
        roles: by the token there (</s>) ours: they are control tokens.
        size: how many ids there are, if more than pieces; the others are control tokens that no text has.
        unknown: the piece that stands for what is unknown.
    """
    unused = range(len(pieces), size)
    pieces = [*pieces, *map(unused_token_name, unused)]
    codes = {piece for piece in pieces if (piece.startswith(">>") and piece.endswith("<<")) or is_language_token(piece)}
    codes -= model.scores.keys()
    in_bytes = {piece for piece in pieces if model.types.get(piece) == BYTE}
    known_pieces = {*model.scores, *roles, *codes, *in_bytes}
    names = [piece if piece in known_pieces else FILLER_PREFIX + piece for piece in pieces]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    space = {
        "type": "Metaspace",
        "replacement": METASPACE,
        "prepend_scheme": "always" if model.dummy_prefix else "never",
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "content": names[number], **plain}
            for number, piece in enumerate(pieces)
            if piece in roles or piece in codes or number in unused
        ],
        "normalizer": {"type": "Sequence", "normalizers": _normalizer_steps(model)},
        "pre_tokenizer": _pre_tokenizer(model, space),
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": _decoder_steps(model, space)},
        "model": BUILDERS[model.kind](model, pieces, names, unknown),
    }


def _normalizer_steps(model: SentencePieceModel) -> list[dict[str, Any]]:
    """The normalizer of a text, before it is split."""
    steps: list[dict[str, Any]] = []
    if model.charsmap:
        steps += character_map_steps(model.charsmap)
    if not model.extra_spaces:
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
        steps.append({"type": "Replace", "pattern": {"Regex": r"\A | \z"}, "content": ""})  # a tab stays
    elif model.dummy_prefix:
        steps.append({"type": "Prepend", "prepend": " "})
    if model.kind == WORD:
        edges = rf"(?<=[\s\S])(?=[ {METASPACE}]|\z)" + ("" if model.dummy_prefix else rf"|\A(?=[^ {METASPACE}])")
        steps.append({"type": "Replace", "pattern": {"String": WORD_EDGE}, "content": WORD_EDGE_IN_TEXT})
        steps.append({"type": "Replace", "pattern": {"Regex": edges}, "content": WORD_EDGE})
    return steps


def _pre_tokenizer(model: SentencePieceModel, space: dict[str, Any]) -> dict[str, Any]:
    """The pre-tokenizer of a text: at spaces, unless pieces go across them, and around symbols
    that a user defined."""
    if model.extra_spaces:
        space = {**space, "prepend_scheme": "never"}
    step = {**space, "split": not _has_pieces_across_spaces(model)}
    if model.kind == WORD:
        return step
    symbols = sorted((piece for piece in model.scores if model.types.get(piece) == USER_DEFINED), key=len, reverse=True)
    steps = [_split_step("|".join(map(re.escape, symbols)))] if symbols else []
    if model.byte_fallback and model.kind == UNIGRAM:
        steps.append(_split_step("<(?=0x[0-9A-F]{2}>)"))  # a text that spells a byte is text
    return {"type": "Sequence", "pretokenizers": [step, *steps]} if steps else step


def _decoder_steps(model: SentencePieceModel, space: dict[str, Any]) -> list[dict[str, Any]]:
    """The decoder, which joins pieces."""
    marks = (FILLER_PREFIX, WORD_EDGE) if model.kind == WORD else (FILLER_PREFIX,)
    steps = [{"type": "Replace", "pattern": {"String": mark}, "content": ""} for mark in marks]
    if model.byte_fallback:
        steps.append({"type": "ByteFallback"})
    if not _has_pieces_across_spaces(model):
        return [*steps, {**space, "split": True}]
    steps += [{"type": "Replace", "pattern": {"String": METASPACE}, "content": " "}, {"type": "Fuse"}]
    return [*steps, {"type": "Strip", "content": " ", "start": 1, "stop": 0}] if model.dummy_prefix else steps


def _has_pieces_across_spaces(model: SentencePieceModel) -> bool:
    """Whether pieces have a space that does not begin them, or several unknown words are one unknown piece."""
    return model.kind == WORD or any(METASPACE in piece[1:] for piece in model.scores)


def _split_step(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _unigram_model(model: SentencePieceModel, pieces: list[str], names: list[str], unknown: str) -> dict[str, Any]:
    low = min(model.scores.values())
    vocab = [[name, model.scores.get(piece, low)] for name, piece in zip(names, pieces, strict=True)]
    fallback = model.byte_fallback
    return {"type": "Unigram", "unk_id": pieces.index(unknown), "vocab": vocab, "byte_fallback": fallback}


def _word_model(model: SentencePieceModel, pieces: list[str], names: list[str], unknown: str) -> dict[str, Any]:
    """Unigram of whole words, whose edges are part of them, so that none is found in a longer one."""
    words = [
        name if piece not in model.scores else (name if piece[0] == METASPACE else WORD_EDGE + name) + WORD_EDGE
        for piece, name in zip(pieces, names, strict=True)
    ]
    return _unigram_model(model, pieces, words, unknown)


def _bpe_model(model: SentencePieceModel, pieces: list[str], names: list[str], unknown: str) -> dict[str, Any]:
    character_model = _character_model(model, pieces, names, unknown)
    return {**character_model, "merges": [list(cut) for cut in _merges(model, {*names})]}


def _character_model(model: SentencePieceModel, pieces: list[str], names: list[str], unknown: str) -> dict[str, Any]:
    """Byte-pair encoding without a merge: symbols that a user defined are whole all the same."""
    absent_settings = ("dropout", "continuing_subword_prefix", "end_of_word_suffix")
    return {
        "type": "BPE",
        **dict.fromkeys(absent_settings),
        "unk_token": unknown,
        "fuse_unk": True,
        "byte_fallback": model.byte_fallback,
        "ignore_merges": USER_DEFINED in model.types.values(),
        "vocab": {name: number for number, name in enumerate(names)},
        "merges": [],
    }


BUILDERS = {UNIGRAM: _unigram_model, BPE: _bpe_model, WORD: _word_model, CHAR: _character_model}
"""By the kind of a model what makes the model of tokenizer.json of it."""


def _merges(model: SentencePieceModel, names: Set[str]) -> list[tuple[str, str]]:
    """All ways to make a piece of two others, the piece of the highest score first."""
    known_pieces = model.scores.keys() & names
    cuts = (
        (piece[:position], piece[position:])
        for piece in known_pieces
        for position in range(1, len(piece))
        if piece[:position] in known_pieces and piece[position:] in known_pieces
    )
    merges = list(islice(cuts, MAX_MERGES + 1))
    if len(merges) > MAX_MERGES:
        raise ValueError(f"its SentencePiece model has more than {MAX_MERGES:,} ways to make a piece of two others")
    merges.sort(key=lambda cut: (-model.scores["".join(cut)], len(cut[0])))
    return merges


def build_tokenizer_json_with_model_ids(model: SentencePieceModel) -> dict[str, Any]:
    """Return tokenizer.json of a model with its own ids. Raises ValueError if it has no unknown token."""
    unknown = [piece for piece, of_type in model.types.items() if of_type == UNKNOWN]
    if len(unknown) != 1:
        raise ValueError(f"its SentencePiece model has {len(unknown)} pieces for what is unknown, and not one")
    control = [piece for piece, of_type in model.types.items() if of_type == CONTROL]
    return build_tokenizer_json(
        model, [*model.types], {each: each for each in (*unknown, *control)}, unknown=unknown[0]
    )


def add_unnumbered_model_pieces(document: dict[str, Any], model: SentencePieceModel) -> dict[str, Any]:
    """tokenizer.json that cuts texts by all pieces of the model; those that it does not have read as <unk>.

    document: of `build_tokenizer_json`, with a name for each id of the model. Raises ValueError for a model of words.
    """
    if model.kind == WORD:
        raise ValueError("its SentencePiece model is of words, and its vocabulary lacks some: give the model itself")
    numbered_pieces = {*document_pieces(document).values()}
    scores = {piece: score for piece, score in model.scores.items() if piece not in numbered_pieces}
    return append_pieces_read_as_unk(document, scores, _merges(model, model.scores.keys()) if model.kind == BPE else ())


def _read_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: number, and an integer or bytes."""
    offset = 0
    while offset < len(data):
        key, offset = _read_varint(data, offset)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, offset = _read_varint(data, offset)
            yield number, value
            continue
        if wire == 2:
            size, offset = _read_varint(data, offset)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError("is no SentencePiece model")
        if offset + size > len(data):
            raise ValueError("is no SentencePiece model: it ends too soon")
        yield number, data[offset : offset + size]
        offset += size


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for index in range(MAX_VARINT_BYTES):
        byte = data[offset + index]
        value |= (byte & 127) << 7 * index
        if not byte & 128:
            return value, offset + index + 1
    raise ValueError("is no SentencePiece model: an integer has more than 64 bits")
