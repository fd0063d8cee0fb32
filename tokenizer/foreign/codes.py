"""Codes of subword-nmt (Sennrich et al. 2016) and of fastBPE, two pieces to join a line, as tokenizer.json.

Both cut each word between spaces into letters, the last one with `</w>`, and join the pair of the earliest line again
and again. Written, a piece inside a word has `@@` behind it, and the last one nothing: so vocabularies have them.

In subword-nmt 0.1 `</w>` is a piece of its own behind the last letter, which codes join as any other, and which is not
written. Here the word gets two characters for it: codes join the first, and when none applies any more, the second
joins what is last, with or without the first between: so a last piece has one name, whichever way it was made.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfm.tokenizer.special import UNK

END, CONTINUES = "</w>", "@@"
MAX_PIECE_CHARACTERS = 1000
"""Characters."""
VERSION_LINE = re.compile(r"#version: *(\S+)")
CONTROL_NAMES = ("<unk>", "<s>", "</s>", "<pad>", "<eos>", "<bos>", "<blank>", "<mask>")
"""Entries of vocabularies that are no pieces of texts."""
ENTRY_PATTERN = re.compile(r"(?P<piece>\S.*?)[ \t]+\d+")
"""A piece with its count."""
END_MARK, CLOSING_MARK, MARK_IN_TEXT = "\ue001", "\ue002", "\ue003"
"""Behind a word for `</w>` of subword-nmt 0.1; the third takes the place of either in a text."""
CLOSED = END_MARK + CLOSING_MARK + END
OBJECT_START = re.compile(r"\s*\{(?:\s*\".*)?")
YAML_ENTRY = re.compile(r"(?:\"(?:[^\"\\]|\\.)+\"|'(?:[^']|'')+'|[^\s\"'#]\S*): +\d+")
Code = tuple[str, str]


@dataclass(frozen=True)
class Codes:
    """pairs: pieces to join, in order, each pair once. end_is_piece: whether `</w>` is a piece behind the last letter,
    as in subword-nmt 0.1; in the pairs it is `END_MARK` then."""

    pairs: Sequence[Code]
    end_is_piece: bool = False


def read_codes(lines: Sequence[str]) -> Codes:
    """The codes of a file.

    Lines have two pieces, or two and how often they occurred, as fastBPE writes them. Raises ValueError, which names
    the line, where one has not, or joins pieces that no line before it makes, so that the order of joins would depend
    on the program.
    """
    end_is_piece = _is_end_a_piece(lines)
    codes: dict[Code, None] = {}
    merged_pieces: set[str] = set()
    for number, line in enumerate(lines, 1):
        version = VERSION_LINE.match(line) if number == 1 else None
        if version is not None and version[1] not in ("0.1", "0.2"):
            raise ValueError(f"it has codes of subword-nmt {version[1]}, and only those of 0.1 and 0.2 are read")
        if version is not None or not line.strip("\r\n "):
            continue
        parts = line.strip("\r\n ").split(" ")
        if len(parts) == 3 and parts[2].isdecimal():
            parts = parts[:2]
        if len(parts) != 2 or not all(0 < len(part) <= MAX_PIECE_CHARACTERS for part in parts):
            raise ValueError(f"line {number} has no two pieces to join, with a space between them")
        if END in parts and not end_is_piece:
            raise ValueError(f"line {number} joins {END} itself, as codes of subword-nmt 0.1 do, and line 1 says 0.2")
        if END_MARK in line or CLOSING_MARK in line:
            raise ValueError(f"line {number} has U+E001 or U+E002, which stand for the end of a word here")
        for part in parts:
            if len(part.removesuffix(END)) > 1 and part not in merged_pieces:
                raise ValueError(f"line {number} joins {part!r:.80}, which no line before it makes")
        codes[parts[0], parts[1]] = None
        merged_pieces.add(parts[0] + parts[1])
    if not codes:
        raise ValueError("it has no codes")
    pairs = [(_mark_end(left), _mark_end(right)) for left, right in codes] if end_is_piece else [*codes]
    return Codes(pairs, end_is_piece)


def _mark_end(piece: str) -> str:
    return piece.removesuffix(END) + END_MARK if piece.endswith(END) else piece


def _is_end_a_piece(lines: Sequence[str]) -> bool:
    """Whether codes are of subword-nmt 0.1, by their first line, or because they join `</w>` itself."""
    version = VERSION_LINE.match(lines[0]) if lines else None
    return version[1] == "0.1" if version is not None else any(END in line.split() for line in lines)


def read_vocabulary(lines: Iterable[str]) -> list[str]:
    """The pieces of a vocabulary, in the order of its lines, spelled as codes have them.

    A line has a piece, and maybe how often it occurred. Raises ValueError if two lines have one piece, or if lines are
    JSON or YAML.
    """
    pieces: dict[str, None] = {}
    lines = list(lines)
    if lines and OBJECT_START.fullmatch(lines[0].rstrip()):
        remedy = "jq -r 'to_entries | sort_by(.value)[].key' FILE"
        raise ValueError(f"it is JSON that numbers pieces, as Nematus's: write its pieces, one a line, as by {remedy}")
    filled = [line.strip() for line in lines if line.strip()]
    if filled and all(map(YAML_ENTRY.fullmatch, filled)):
        remedy = r'''sort -n -t: -k2 FILE | sed -E "s/^[\"']?(.*[^\"'])[\"']?: +[0-9]+$/\1/"'''
        raise ValueError(f"it is YAML that numbers pieces, as Marian's: write its pieces, one a line, as by {remedy}")
    for number, line in enumerate(lines, 1):
        entry = line.strip("\r\n ")
        counted = ENTRY_PATTERN.fullmatch(entry)
        entry = entry if counted is None else counted["piece"]
        if not entry or " " in entry or len(entry) > MAX_PIECE_CHARACTERS:
            raise ValueError(f"line {number} has no piece, or one with a space in it")
        is_continued = entry.endswith(CONTINUES) and entry != CONTINUES
        piece = entry.removesuffix(CONTINUES) if is_continued else entry if entry in CONTROL_NAMES else entry + END
        if piece in pieces:
            raise ValueError(f"line {number} has the piece {entry!r:.80} again")
        pieces[piece] = None
    return [*pieces]


def build_bpe_codes_json(codes: Codes, vocabulary: Sequence[str] | None) -> dict[str, Any]:
    """tokenizer.json of codes. vocabulary: its pieces, by their ids; none: all letters that codes have, as the first
    and inner ones of a word and as its last, then the pieces that they make.

    Pieces that the vocabulary lacks are in no text; see `pieces_missing_from_vocabulary`.
    """
    own_pieces = [*_iterate_written_pieces(codes)]
    names = own_pieces if vocabulary is None else [_piece_name(piece, codes) for piece in vocabulary]
    if {*names}.isdisjoint(own_pieces):
        raise ValueError("the vocabulary has no piece that the codes make: give the one that belongs to them")
    name_set = {*names}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    model: dict[str, Any] = dict.fromkeys(("dropout", "continuing_subword_prefix"))
    model |= {
        "type": "BPE",
        "unk_token": UNK if UNK in name_set else None,
        "end_of_word_suffix": END,
        "fuse_unk": False,
    }
    model |= {"byte_fallback": False, "ignore_merges": False}
    model["vocab"] = {name: number for number, name in enumerate(names)}
    model["merges"] = [[*code] for code in codes.pairs if {*code, "".join(code)} <= name_set]
    return {
        **dict.fromkeys(("truncation", "padding", "post_processor")),
        "version": "1.0",
        "added_tokens": [
            {"id": model["vocab"][name], "content": name, **plain} for name in CONTROL_NAMES if name in name_set
        ],
        "normalizer": _end_marker(_letters(codes, vocabulary or ())) if codes.end_is_piece else None,
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": False},
        "decoder": {"type": "BPEDecoder", "suffix": CLOSED if codes.end_is_piece else END},
        "model": model,
    }


def pieces_missing_from_vocabulary(codes: Codes, document: Mapping[str, Any]) -> tuple[dict[str, float], list[Code]]:
    """The pieces that codes make or join and a tokenizer.json of them has no ids for, with scores that nothing uses,
    and all joins that lead to pieces with an id."""
    names: Mapping[str, int] = document["model"]["vocab"]
    pairs, pieces = [*codes.pairs], [*_iterate_written_pieces(codes)]
    if codes.end_is_piece:
        closing = CLOSING_MARK + END
        letters = _letters(codes, names)
        pairs.append((END_MARK, closing))
        for piece in dict.fromkeys((*letters, *map("".join, codes.pairs))):
            pairs.append((piece, closing if piece.endswith(END_MARK) else CLOSED))
        pieces = [*dict.fromkeys((*letters, END_MARK, closing, *map("".join, pairs)))]
    return {piece: 0.0 for piece in pieces if piece not in names}, pairs


def _iterate_written_pieces(codes: Codes) -> Iterator[str]:
    """Every piece that codes may leave of a word, once: letters in the order of Unicode, inner ones first, then in the
    order of codes."""
    alphabet = _letters(codes, ())
    yield from dict.fromkeys(
        (*alphabet, *(_piece_name(letter + END, codes) for letter in alphabet), *_iterate_joined_pieces(codes))
    )


def _iterate_joined_pieces(codes: Codes) -> Iterator[str]:
    for left, right in codes.pairs:
        piece = left + right
        if not codes.end_is_piece:
            yield piece
        elif not piece.endswith(END_MARK):
            yield from (piece, piece + CLOSED)
        else:
            yield piece.removesuffix(END_MARK) + CLOSED


def _piece_name(piece: str, codes: Codes) -> str:
    """The name of a piece that is spelled as codes of 0.2 have it."""
    is_last = codes.end_is_piece and piece.endswith(END)
    return piece.removesuffix(END) + CLOSED if is_last else piece


def _letters(codes: Codes, vocabulary: Iterable[str]) -> list[str]:
    """The letters of codes, and those that are pieces of a vocabulary."""
    letters = {letter for code in codes.pairs for piece in code for letter in piece.removesuffix(END)}
    names = (piece.removesuffix(END).removesuffix(END_MARK + CLOSING_MARK) for piece in vocabulary)
    return sorted({*letters, *(name for name in names if len(name) == 1)} - {END_MARK, CLOSING_MARK})


def _end_marker(letters: Sequence[str]) -> dict[str, Any]:
    """The normalizer that puts the marks behind each word whose last letter is one of these; nothing joins others."""
    behind = "".join(map(re.escape, letters))
    steps = ((f"[{END_MARK}{CLOSING_MARK}]", MARK_IN_TEXT), (f"(?<=[{behind}])(?= |\\z)", END_MARK + CLOSING_MARK))
    return {
        "type": "Sequence",
        "normalizers": [{"type": "Replace", "pattern": {"Regex": regex}, "content": mark} for regex, mark in steps],
    }
