"""Tokenizers in the forms of other programs than `tokenizers`: the ids and pieces of those, by an independent way."""

import base64
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import Regex, models, pre_tokenizers, trainers

from tests.foreign_tokenizers import ALPHABET, LINES, bert, gpt2
from tests.ten_scripts import lines_of
from tfm.data.errors import DataError
from tfm.data.foreign_tokenizers.loading import load_foreign
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.foreign.tiktoken import PATTERNS
from tfm.tokenizer.special import BOS, EOS, PAD, UNK, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

TEST = lines_of(1000, seed=2)
WILD = Path(__file__).parents[4].parent / "shared" / "data" / "wild"
Code = tuple[str, str]


def taken(place: Path, **keys: Any) -> Tokenizer:
    return load_foreign(TokenizerConfig(file=str(place), **keys)).tokenizer


def there(ours: Tokenizer, line: str) -> list[int | None]:
    return [ours.original_ids[number] for number in ours.encode(line)]


# subword-nmt and fastBPE


def learned_codes(lines: Sequence[str], count: int) -> list[Code]:
    """Sennrich et al. 2016, algorithm 1: the most frequent pair becomes a symbol, again and again."""
    words = {(*word[:-1], word[-1] + "</w>"): times for word, times in Counter(" ".join(lines).split()).items()}
    codes = []
    for _ in range(count):
        pairs: Counter[Code] = Counter()
        for word, times in words.items():
            for pair in zip(word, word[1:], strict=False):
                pairs[pair] += times
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        codes.append(best)
        words = Counter({merged(word, best): times for word, times in words.items()})
    return codes


def merged(word: tuple[str, ...], pair: Code) -> tuple[str, ...]:
    """A word in which a pair is joined wherever it stands."""
    found: list[str] = []
    for symbol in word:
        if found and (found[-1], symbol) == pair:
            found[-1] += symbol
        else:
            found.append(symbol)
    return tuple(found)


def applied(line: str, ranks: Mapping[Code, int]) -> list[str]:
    """apply_bpe of subword-nmt: of the pairs of a word the one that was learned first is joined, until none is left."""
    found = []
    for text in line.strip("\r\n ").split(" "):
        word: tuple[str, ...] = (*text[:-1], text[-1] + "</w>") if text else ()
        while pairs := [pair for pair in zip(word, word[1:], strict=False) if pair in ranks]:
            word = merged(word, min(pairs, key=ranks.__getitem__))
        found += [
            f"{symbol}@@" if place < len(word) else symbol.removesuffix("</w>") for place, symbol in enumerate(word, 1)
        ]
    return found


CODES = learned_codes(LINES, 300)
RANKS = {code: rank for rank, code in enumerate(CODES)}
APPLIED = [applied(line, RANKS) for line in TEST]
COUNTS = Counter(piece for line in LINES for piece in applied(line, RANKS)).most_common()
SUBWORD_NMT = "".join(["#version: 0.2\n", *(f"{left} {right}\n" for left, right in CODES)])
FAST_BPE = "".join(f"{left} {right} {1000 - rank}\n" for rank, (left, right) in enumerate(CODES))


def spelled(ours: Tokenizer, line: str) -> list[str]:
    """The pieces as apply_bpe writes them."""
    pieces = ours.pieces(line)
    return [each if each == UNK else each[:-4] if each.endswith("</w>") else f"{each}@@" for each in pieces]


@pytest.mark.parametrize("content", [SUBWORD_NMT, FAST_BPE, SUBWORD_NMT.replace("\n", "\r\n")])
def test_codes_cut_texts_as_their_own_programs_do(content: str, tmp_path: Path) -> None:
    (tmp_path / "codes").write_bytes(content.encode())
    ours = taken(tmp_path / "codes")
    assert ours.original_ids == ()
    letters = {letter for code in CODES for each in code for letter in each.removesuffix("</w>")}
    known = {*(f"{each}@@" for each in letters), *letters}
    known |= {each[:-4] if each.endswith("</w>") else f"{each}@@" for each in map("".join, CODES)}
    assert ours.vocab_size == len(known) + 4
    for line, wanted in zip(TEST, APPLIED, strict=True):
        assert spelled(ours, line) == [each if each in known else UNK for each in wanted], line
    whole = next(line for line, wanted in zip(TEST, APPLIED, strict=True) if {*wanted} <= known and len(wanted) > 8)
    assert ours.decode(ours.encode(whole)) == whole


@pytest.mark.parametrize("with_counts", [True, False])
def test_a_vocabulary_numbers_the_pieces_of_codes(with_counts: bool, tmp_path: Path) -> None:
    (tmp_path / "codes").write_text(SUBWORD_NMT, "utf-8")
    kept = [(piece, count) for piece, count in COUNTS if count > 2]
    control = [("<s>", 0), ("<pad>", 0), ("</s>", 0), ("<unk>", 0)]
    lines = [f"{piece} {count}" if with_counts else piece for piece, count in [*control, *kept]]
    (tmp_path / "vocab").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    found = load_foreign(TokenizerConfig(file=str(tmp_path / "codes"), codes_vocabulary=str(tmp_path / "vocab")))
    ours, numbers = found.tokenizer, {piece: number for number, (piece, _) in enumerate([*control, *kept])}
    assert found.control_tokens == {PAD: "<pad>", UNK: "<unk>", BOS: "<s>", EOS: "</s>"}
    assert ours.vocab_size == len(numbers)
    assert {UNK} < {piece for wanted in APPLIED for piece in wanted} - numbers.keys() | {UNK}
    for line, wanted in zip(TEST, APPLIED, strict=True):
        assert there(ours, line) == [numbers.get(piece, 3) for piece in wanted], line


def test_codes_of_other_versions_or_without_order_are_refused(tmp_path: Path) -> None:
    for content, reason in (
        ("#version: 0.1\nt h\n", "codes of subword-nmt 0.1, and only those of 0.2"),
        ("t h\ne </w>\n", "line 2 joins </w> itself"),
        ("th e\nt h\n", "line 1 joins 'th', which no line before it makes"),
        ("#version: 0.2\n", "none of the forms"),
        ("t h\nt h e x\n", "none of the forms"),
        ("t h\n" * 200 + "t h e x\n", "line 201 has no two pieces"),
    ):
        (tmp_path / "codes").write_text(content)
        with pytest.raises(DataError, match=f"codes: .*{reason}"):
            taken(tmp_path / "codes")
    (tmp_path / "codes").write_text(SUBWORD_NMT, "utf-8")
    for content, reason in (("a 1\na 2\n", "line 2 has the piece 'a' again"), ("a b c\n", "line 1 has no piece")):
        (tmp_path / "vocab").write_text(content)
        with pytest.raises(DataError, match=f"vocab: is no vocabulary of subword-nmt: {reason}"):
            taken(tmp_path / "codes", codes_vocabulary=str(tmp_path / "vocab"))
    with pytest.raises(DataError, match=r"no such file \(tokenizer\.codes_vocabulary\)"):
        taken(tmp_path / "codes", codes_vocabulary=str(tmp_path / "none"))


@pytest.mark.skipif(not WILD.exists(), reason="needs ../shared/data/wild")
def test_codes_as_published() -> None:
    ours = taken(WILD / "subword_nmt.codes")
    assert spelled(ours, "the ant or hen") == [*("the", "an@@", "t", "o@@", "r", "h@@", "e@@", "n")]


# tiktoken


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


# BERT and GPT-2


def in_order(vocab: Mapping[str, int]) -> list[str]:
    return sorted(vocab, key=vocab.__getitem__)


def test_a_vocab_txt_is_read_as_transformers_reads_it(tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in in_order(bert().get_vocab())), "utf-8")
    theirs = transformers.BertTokenizer.from_pretrained(str(tmp_path))
    for place in (tmp_path, tmp_path / "vocab.txt"):
        ours = taken(place)
        assert ours.original_ids[:4] == (0, 1, 2, 3)
        for line in TEST:
            assert there(ours, line) == theirs.encode(line, add_special_tokens=False), line


def test_a_vocabulary_with_capitals_is_not_lower_cased_unless_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nBerlin\nberlin\n")
    assert there(taken(tmp_path), "Berlin berlin") == [4, 5]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert there(taken(tmp_path), "Berlin berlin") == [5, 5]
    for said, reason in (
        ({"do_lower_case": 1}, "do_lower_case = 1 beside it is not true or false"),
        ({"tokenizer_class": "BertJapaneseTokenizer"}, "is of the class BertJapaneseTokenizer: load it"),
        ({"added_tokens_decoder": {"9": {}}}, "has added tokens: load it"),
    ):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(said))
        with pytest.raises(DataError, match=reason):
            taken(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match=r"lacks \[UNK\]: name the piece for what is unknown \(tokenizer\.unk_token\)"):
        taken(tmp_path)
    assert there(taken(tmp_path, unk_token="b"), "a x") == [0, 1]


def test_a_vocab_json_with_merges_is_read_as_transformers_reads_it(tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    whole = json.loads(gpt2().to_str())
    vocab = whole["model"]["vocab"] | {"<|endoftext|>": 600}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    for name in ("vocab.json", ""):
        with pytest.raises(
            DataError, match=r"one of the two files vocab\.json and merges\.txt: put merges\.txt beside it"
        ):
            taken(tmp_path / name)
    merges = "".join(f"{left} {right}\n" for left, right in whole["model"]["merges"])
    (tmp_path / "merges.txt").write_text(f"#version: 0.2\n{merges}", "utf-8")
    theirs = transformers.GPT2Tokenizer.from_pretrained(str(tmp_path))
    for place in (tmp_path, tmp_path / "vocab.json", tmp_path / "merges.txt"):
        ours = taken(place)
        assert ours.original_ids[:4] == (None, None, None, 600)
        for line in TEST:
            assert there(ours, line) == theirs.encode(line), line
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b</w>\n")
    with pytest.raises(DataError, match=r"ends words with </w>, as those of CLIP"):
        taken(tmp_path)
    (tmp_path / "merges.txt").write_text("é ж\n", "utf-8")
    with pytest.raises(DataError, match=r"merges\.txt has 'ж', which is none of the letters"):
        taken(tmp_path)


# SentencePiece


def test_a_sentencepiece_model_is_taken_with_its_control_tokens(tmp_path: Path) -> None:
    package: Any = pytest.importorskip("sentencepiece", reason="needs the extra `dev`")
    package.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_prefix=str(tmp_path / "m"),
        vocab_size=500,
        hard_vocab_limit=False,
        minloglevel=2,
        pad_id=3,
        unk_piece="[UNK]",
    )
    (tmp_path / "m.vocab").unlink()
    theirs = package.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    found = load_foreign(TokenizerConfig(file=str(tmp_path)))
    assert found.form == "a SentencePiece model"
    assert found.control_tokens == {PAD: "<pad>", UNK: "[UNK]", BOS: "<s>", EOS: "</s>"}
    for line in TEST:
        assert there(found.tokenizer, line) == theirs.encode(line), line


@pytest.mark.parametrize("magic", [b"\x1f\x8b", b"PK\x03\x04", b"BZh9", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ"])
def test_a_compressed_file_is_named_as_such(magic: bytes, tmp_path: Path) -> None:
    (tmp_path / "codes").write_bytes(magic + b"\x00" * 20)
    with pytest.raises(DataError, match="is compressed: unpack it"):
        taken(tmp_path / "codes")
