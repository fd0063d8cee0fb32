"""Ranks of tiktoken cut texts as that program does, here written anew from its loop of merges."""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import regex
import tokenizers
from tokenizers import Regex, models, pre_tokenizers, trainers

from tests.foreign_tokenizers import ALPHABET, LINES
from tests.ten_scripts import lines_of
from tfm.data.errors import DataError
from tfm.data.foreign_tokenizers.loading import load_foreign_tokenizer
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.foreign.tiktoken import PATTERNS, choose_pattern
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

TEST = lines_of(1000, seed=2)


def taken(place: Path, **keys: Any) -> Tokenizer:
    return load_foreign_tokenizer(TokenizerConfig(file=str(place), **keys)).tokenizer


def there(ours: Tokenizer, line: str) -> list[int | None]:
    return [ours.original_ids[number] for number in ours.encode(line)]


def split_by_ranks(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """tiktoken: of all neighbours those whose bytes together have the lowest rank become one, until none have any."""
    if piece in ranks:
        return [ranks[piece]]
    parts = [bytes([byte]) for byte in piece]
    while True:
        pairs = [
            (ranks[left + right], place)
            for place, (left, right) in enumerate(zip(parts, parts[1:], strict=False))
            if left + right in ranks
        ]
        if not pairs:
            return [ranks[part] for part in parts]
        place = min(pairs)[1]
        parts[place : place + 2] = [parts[place] + parts[place + 1]]


def made_ranks(pattern: str) -> dict[bytes, int]:
    """Ranks that `tokenizers` learns, runs of one letter among them."""
    whole = tokenizers.Tokenizer(models.BPE())
    steps = [
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    whole.pre_tokenizer = pre_tokenizers.Sequence(steps)
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=ALPHABET, show_progress=False)
    whole.train_from_iterator([*LINES, *(f"{'a' * n} {' ' * n}{'-' * n}" for n in range(1, 30))] * 2, trainer)
    numbers = {letter: byte for byte, letter in enumerate(letters_by_table())}
    return {bytes(numbers[letter] for letter in piece): rank for piece, rank in whole.get_vocab().items()}


def letters_by_table() -> list[str]:
    """The letter of each byte, by what `tokenizers` makes of a character that has it."""
    plain = {each for each in ALPHABET if ord(each) < 256}
    others = iter(sorted({*ALPHABET} - plain))
    return [chr(byte) if chr(byte) in plain else next(others) for byte in range(256)]


def as_ranks(ranks: Mapping[bytes, int]) -> str:
    return "".join(
        f"{base64.b64encode(piece).decode()} {rank}\n"
        for piece, rank in sorted(ranks.items(), key=lambda each: each[1])
    )


WORDS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+",
    "cl100k_base": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|(?:[^\r\n\w]|_)?[^\W\d_]+|\d{1,3}| ?(?:[^\s\w]|_)+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
}
"""What words are, as Python's `re` spells it, which has no classes of Unicode: for letters, digits and ASCII."""


@pytest.mark.parametrize("name", WORDS)
def test_ranks_cut_texts_as_tiktoken_does(name: str, tmp_path: Path) -> None:
    ranks = made_ranks(PATTERNS[name])
    (tmp_path / "x.tiktoken").write_text(as_ranks(ranks), "utf-8")
    ours = taken(tmp_path / "x.tiktoken", pattern=name)
    assert ours.vocab_size == len(ranks) + 4
    plain = [line for line in TEST if re.fullmatch(r"[ -~а-яёА-Яა-ჿա-և一-鿿ぁ-んァ-ンー가-힣α-ω]*", line)]
    assert len(plain) > 300
    runs = [f"{'a' * n} {' ' * (n % 7)}{'-' * n}{'1' * n} x  " for n in range(40)]
    for line in (*plain, *runs, "", " ", "we'LL they'Re 's"):
        words = re.findall(WORDS[name], line)
        assert "".join(words) == line
        assert there(ours, line) == [each for word in words for each in split_by_ranks(word.encode(), ranks)], line
    for line in TEST:
        assert ours.decode(ours.encode(line)) == line
        assert UNK_ID not in ours.encode(line)


def test_the_pattern_of_ranks_is_told_by_their_number_or_by_a_key(tmp_path: Path) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 300}
    (tmp_path / "x.tiktoken").write_text(as_ranks(ranks))
    with pytest.raises(
        DataError, match=r"a rank file of tiktoken with 257 pieces, as no .* set tokenizer\.pattern to gpt2"
    ):
        taken(tmp_path)
    assert there(taken(tmp_path, pattern="."), "ab") == [97, 98]
    assert there(taken(tmp_path, pattern=".+"), "ab") == [300]
    with pytest.raises(DataError, match="repeats what repeats"):
        taken(tmp_path, pattern="(a+)+")
    numbers = {number.to_bytes(3, "big") + b"!": 300 + number for number in range(50_000)}
    (tmp_path / "x.tiktoken").write_text(as_ranks({bytes([byte]): byte for byte in range(256)} | numbers))
    assert there(taken(tmp_path), "12 a") == [49, 50, 32, 97]
    assert choose_pattern(200_000, None) == choose_pattern(199_998, None) == PATTERNS["o200k_base"]  # Llama 4


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("YQ== 0\nYQ== 1\n", "line 2 has a piece or a rank of a line before"),
        ("YQ== 0\nYg== 0\n", "line 2 has a piece or a rank"),
        ("YQ== 0\nb 1\n", "line 2 is not a piece in base64"),
        ("YQ== 0\n", "no piece for the byte 0"),
    ],
)
def test_ranks_that_are_none_are_refused(lines: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "x.tiktoken").write_text(lines)
    with pytest.raises(DataError, match=reason):
        taken(tmp_path, pattern="gpt2")


def test_ranks_with_too_many_ways_to_make_a_piece_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfm.tokenizer.foreign.tiktoken.MAX_MERGES", 20)
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"a" * n: 254 + n for n in range(2, 8)}
    (tmp_path / "x.tiktoken").write_text(as_ranks(ranks))
    with pytest.raises(DataError, match="more than 20 ways to make a piece of two others"):
        taken(tmp_path, pattern=".+")


def test_a_rank_without_a_piece_is_left_out(tmp_path: Path) -> None:
    """Whisper's multilingual.tiktoken ends in one."""
    ranks = [f"{base64.b64encode(bytes([byte])).decode()} {byte}" for byte in range(256)]
    (tmp_path / "a.tiktoken").write_text("\n".join([*ranks, "= 256", ""]))
    assert there(taken(tmp_path / "a.tiktoken", pattern="gpt2"), "hé") == [*"hé".encode()]


def test_a_tekken_json_has_its_pattern_and_ids_behind_control_tokens(tmp_path: Path) -> None:
    pattern = PATTERNS["o200k_base"]
    ranks = made_ranks(pattern)
    entries = [
        {"rank": rank, "token_bytes": base64.b64encode(piece).decode(), "token_str": None}
        for piece, rank in sorted(ranks.items(), key=lambda entry: entry[1])
    ]
    num_kept = len(entries) - 50  # of the others the vocabulary has no room
    config = {"pattern": pattern, "default_vocab_size": num_kept + 20, "default_num_special_tokens": 20}
    document: dict[str, Any] = {"config": config, "vocab": entries}
    (tmp_path / "tekken.json").write_text(json.dumps(document))
    ours = taken(tmp_path / "tekken.json")
    assert ours.original_ids[:4] == (11, 0, 1, 2)
    kept = {piece: rank for piece, rank in ranks.items() if rank < num_kept}
    words = regex.compile(pattern)
    for line in TEST[:200]:
        cut = [rank for word in words.findall(line) for rank in split_by_ranks(word.encode(), kept)]
        assert there(ours, line) == [20 + rank for rank in cut], line
    named = [{"rank": 3, "token_str": "<eos>", "is_control": True}]
    (tmp_path / "tekken.json").write_text(json.dumps(document | {"special_tokens": named}))
    assert taken(tmp_path / "tekken.json", eos_token="<eos>").original_ids[3] == 3
    (tmp_path / "tekken.json").write_text(json.dumps({"config": {"pattern": pattern}, "vocab": entries}))
    with pytest.raises(DataError, match="is not a tokenizer that tfm can use: it has no 'default_num_special_tokens'"):
        taken(tmp_path / "tekken.json")
