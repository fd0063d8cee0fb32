"""Rank files of tiktoken as tokenizer.json: on each line the bytes of a piece in base64, and its rank, which is its id.

Among all neighbors whose bytes together are a piece, those of the lowest rank are joined, again and again. A pattern,
which the file does not have, splits a text into words first; programs find it by the name of the encoding.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tfm.tokenizer.foreign.byte_level import byte_level_alphabet

RANK_LINE = re.compile(r"([A-Za-z0-9+/]+={0,2}) (\d{1,9})")
EMPTY_PIECE_LINE = re.compile(r"= \d{1,9}")
"""A rank without a piece, as Whisper's multilingual.tiktoken has one: no text has it."""
MAX_BYTES, MAX_MERGES = 8 * 2**20, 1_000_000
"""Bounds on the bytes of all pieces together and on the ways to make a piece of two others: several times those of
o200k_base, the largest that is published."""
MAX_PIECE_BYTES = 500
"""Bytes; published pieces have up to 128."""
TEKKEN_TOKENS = (("<unk>", 0), ("<s>", 1), ("</s>", 2), ("<pad>", 11))
"""Control tokens of a tekken.json that does not name them, with their ids."""
_GPT2_SPLIT_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_WORD_PATTERN = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3 = rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|{_WORD_PATTERN}|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS: Mapping[str, str] = {
    "gpt2": _GPT2_SPLIT_PATTERN,
    "r50k_base": _GPT2_SPLIT_PATTERN,
    "p50k_base": _GPT2_SPLIT_PATTERN,
    "cl100k_base": rf"'(?i:[sdmt]|ll|ve|re)|{_WORD_PATTERN}|\s+\z|\s*[\r\n]|\s+(?!\S)|\s",
    "o200k_base": _O200K,
    "llama3": _LLAMA3,
    "qwen": _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}"),
}
"""The pattern of each published encoding."""
PATTERN_BY_SIZE = {
    50_256: "gpt2",
    50_257: "gpt2",
    50_280: "p50k_base",
    100_256: "cl100k_base",
    199_998: "o200k_base",
    200_000: "o200k_base",
    128_000: "llama3",
    151_643: "qwen",
}
"""By how many pieces a file has, the encoding whose file it is."""


def read_ranks(lines: Sequence[str]) -> dict[bytes, int]:
    """Read the rank of each piece. Raises ValueError, naming the line, if a line has no rank or repeats one."""
    rank_by_piece: dict[bytes, int] = {}
    ranks: set[int] = set()
    size = 0
    for number, line in enumerate(lines, 1):
        if not line.strip() or EMPTY_PIECE_LINE.fullmatch(line.strip()):
            continue
        match = RANK_LINE.fullmatch(line.strip())
        try:
            piece = base64.b64decode(match[1], validate=True) if match is not None else b""
        except binascii.Error:
            piece = b""
        if match is None or not 0 < len(piece) <= MAX_PIECE_BYTES:
            raise ValueError(f"line {number} is not a piece in base64 and its rank")
        rank, size = int(match[2]), size + len(piece)
        if piece in rank_by_piece or rank in ranks:
            raise ValueError(f"line {number} has a piece or a rank of a line before it again")
        if size > MAX_BYTES:
            raise ValueError(f"its pieces have more than {MAX_BYTES:,} bytes")
        rank_by_piece[piece] = rank
        ranks.add(rank)
    return _check_has_all_bytes(rank_by_piece)


def _check_has_all_bytes(ranks: dict[bytes, int]) -> dict[bytes, int]:
    if missing := [byte for byte in range(256) if bytes([byte]) not in ranks]:
        raise ValueError(f"it has no piece for the byte {missing[0]}, so that there are texts that it cannot spell")
    return ranks


def is_tekken(document: Mapping[str, Any]) -> bool:
    """Whether a JSON file is Mistral's tekken.json: ranks as tiktoken has them, with their pattern."""
    config = document.get("config")
    return isinstance(config, Mapping) and "pattern" in config and isinstance(document.get("vocab"), list)


def build_tekken_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """tokenizer.json of a tekken.json, in which the first ids are those of control tokens, and pieces follow.

    As many of the ranks there count as the vocabulary has room for.
    """
    config = document["config"]
    num_control, size = int(config["default_num_special_tokens"]), int(config["default_vocab_size"])
    entries = document["vocab"][: max(size - num_control, 0)]
    lines = [f"{entry['token_bytes']} {int(entry['rank'])}" for entry in entries]
    tokenizer_json = build_tiktoken_json(
        {piece: num_control + rank for piece, rank in read_ranks(lines).items()}, config["pattern"]
    )
    special_tokens = document.get("special_tokens") or [
        {"rank": rank, "token_str": name} for name, rank in TEKKEN_TOKENS
    ]
    control = {int(each["rank"]): str(each["token_str"]) for each in special_tokens}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    vocab = tokenizer_json["model"]["vocab"]
    used_ids = {*vocab.values()}
    added_tokens = {rank: name for rank, name in control.items() if rank not in used_ids and name not in vocab}
    tokenizer_json["added_tokens"] = [
        {"id": rank, "content": name, **plain} for rank, name in sorted(added_tokens.items())
    ]
    return tokenizer_json


def choose_pattern(num_ranks: int, encoding: str | None) -> str:
    """The pattern that cuts texts.

    Args:
        num_ranks: how many pieces a file has.
        encoding: an encoding by its name, or the pattern itself; none: it follows from how many pieces there are.

    Raises:
        ValueError: no published encoding has so many, and none is given.
    """
    if encoding is None and num_ranks not in PATTERN_BY_SIZE:
        raise ValueError(
            f"it is a rank file of tiktoken with {num_ranks:,} pieces, as no encoding that is known has, and it does "
            f"not say how texts are cut: set tokenizer.pattern to {', '.join(PATTERNS)}, or to the pattern itself"
        )
    name = PATTERN_BY_SIZE[num_ranks] if encoding is None else encoding
    return PATTERNS.get(name, name)


def build_tiktoken_json(ranks: Mapping[bytes, int], pattern: str) -> dict[str, Any]:
    """tokenizer.json of a rank file. Raises ValueError if there are too many ways to make a piece of others."""
    alphabet = byte_level_alphabet()
    names = {piece: "".join(alphabet[byte] for byte in piece) for piece in ranks}
    merges: list[list[str]] = []
    for piece in sorted(ranks, key=ranks.__getitem__):
        cuts = [(piece[:position], piece[position:]) for position in range(1, len(piece))]
        valid_cuts = [cut for cut in cuts if cut[0] in ranks and cut[1] in ranks]
        valid_cuts.sort(key=lambda cut: (ranks[cut[0]], ranks[cut[1]]))
        merges += ([names[left], names[right]] for left, right in valid_cuts)
        if len(merges) > MAX_MERGES:
            raise ValueError(f"it has more than {MAX_MERGES:,} ways to make a piece of two others")
    absent_settings = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")
    return {
        **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor")),
        "version": "1.0",
        "added_tokens": [],
        **pattern_components(pattern),
        "model": {
            "type": "BPE",
            **dict.fromkeys(absent_settings),
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {names[piece]: rank for piece, rank in ranks.items()},
            "merges": merges,
        },
    }


def pattern_components(pattern: str) -> dict[str, Any]:
    """The steps before a text is split, at first by a pattern, and after pieces are joined, as of tokenizer.json."""
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, step]},
        "decoder": {**step, "use_regex": True},
    }
