"""Codes of subword-nmt (Sennrich et al. 2016) and of fastBPE, two pieces to join a line, as tokenizer.json.

Both cut each word between spaces into letters, the last one with `</w>`, and join the pair of the earliest line again
and again. Written, a piece inside a word has `@@` behind it, and the last one nothing: so vocabularies have them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
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
OBJECT_START = re.compile(r"\s*\{(?:\s*\".*)?")
YAML_ENTRY = re.compile(r"(?:\"(?:[^\"\\]|\\.)+\"|'(?:[^']|'')+'|[^\s\"'#]\S*): +\d+")
Code = tuple[str, str]


def read_codes(lines: Sequence[str]) -> list[Code]:
    """The pairs of a file of codes, in their order, each once.

    Lines have two pieces, or two and how often they occurred, as fastBPE writes them. Raises ValueError, which names
    the line, where one has not, or joins pieces that no line before it makes, so that the order of joins would depend
    on the program.
    """
    codes: dict[Code, None] = {}
    merged_pieces: set[str] = set()
    for number, line in enumerate(lines, 1):
        version = VERSION_LINE.match(line) if number == 1 else None
        if version is not None and version[1] != "0.2":
            raise ValueError(f"it has codes of subword-nmt {version[1]}, and only those of 0.2 are read")
        if version is not None or not line.strip("\r\n "):
            continue
        parts = line.strip("\r\n ").split(" ")
        if len(parts) == 3 and parts[2].isdecimal():
            parts = parts[:2]
        if len(parts) != 2 or not all(0 < len(part) <= MAX_PIECE_CHARACTERS for part in parts):
            raise ValueError(f"line {number} has no two pieces to join, with a space between them")
        if END in parts:
            raise ValueError(
                f"line {number} joins {END} itself, as codes of subword-nmt 0.1 do, and only those of 0.2 are read: "
                "learn them with a newer version"
            )
        for part in parts:
            if len(part.removesuffix(END)) > 1 and part not in merged_pieces:
                raise ValueError(f"line {number} joins {part!r:.80}, which no line before it makes")
        codes[parts[0], parts[1]] = None
        merged_pieces.add(parts[0] + parts[1])
    if not codes:
        raise ValueError("it has no codes")
    return [*codes]


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


def build_bpe_codes_json(codes: Sequence[Code], vocabulary: Sequence[str] | None) -> dict[str, Any]:
    """tokenizer.json of codes. vocabulary: its pieces, by their ids; none: all letters that codes have, as the first
    and inner ones of a word and as its last, then the pieces that they make.

    Pieces that the vocabulary lacks are in no text; see `pieces_missing_from_vocabulary`.
    """
    names = [*_iterate_bpe_pieces(codes)] if vocabulary is None else [*vocabulary]
    if {*names}.isdisjoint(_iterate_bpe_pieces(codes)):
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
    model["merges"] = [[*code] for code in codes if {*code, "".join(code)} <= name_set]
    return {
        **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor")),
        "version": "1.0",
        "added_tokens": [
            {"id": model["vocab"][name], "content": name, **plain} for name in CONTROL_NAMES if name in name_set
        ],
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": False},
        "decoder": {"type": "BPEDecoder", "suffix": END},
        "model": model,
    }


def pieces_missing_from_vocabulary(codes: Sequence[Code], vocabulary: Sequence[str]) -> dict[str, float]:
    """The pieces that codes make or join and the vocabulary does not have, with scores that nothing uses."""
    known_pieces = {*vocabulary}
    return {piece: 0.0 for piece in _iterate_bpe_pieces(codes) if piece not in known_pieces}


def _iterate_bpe_pieces(codes: Sequence[Code]) -> Iterator[str]:
    """Every piece of codes once: letters in the order of Unicode, inner ones first, then in the order of codes."""
    alphabet = sorted({letter for code in codes for piece in code for letter in piece.removesuffix(END)})
    yield from dict.fromkeys(
        (*alphabet, *(letter + END for letter in alphabet), *(left + right for left, right in codes))
    )
