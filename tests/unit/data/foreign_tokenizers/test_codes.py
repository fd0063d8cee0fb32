"""Codes of subword-nmt and fastBPE cut texts as those programs do, here written anew from their papers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest

from tests.foreign_tokenizers import LINES
from tests.ten_scripts import lines_of
from tfm.data.errors import DataError
from tfm.data.foreign_tokenizers.loading import load_foreign_tokenizer
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import BOS, EOS, PAD, UNK
from tfm.tokenizer.tokenizer import Tokenizer

TEST = lines_of(1000, seed=2)
WILD = Path(__file__).parents[4].parent / "shared" / "data" / "wild"
Code = tuple[str, str]


def taken(place: Path, **keys: Any) -> Tokenizer:
    return load_foreign_tokenizer(TokenizerConfig(file=str(place), **keys)).tokenizer


def there(ours: Tokenizer, line: str) -> list[int | None]:
    return [ours.original_ids[number] for number in ours.encode(line)]


def letters_of(word: str, end: Literal["0.1", "0.2"]) -> tuple[str, ...]:
    """The symbols of a word, before any is joined; 0.1 and others: </w> is one of them."""
    return (*word, "</w>") if end == "0.1" else (*word[:-1], word[-1] + "</w>")


def learned_codes(lines: Sequence[str], count: int, end: Literal["0.1", "0.2"] = "0.2") -> list[Code]:
    """Sennrich et al. 2016, algorithm 1: the most frequent pair becomes a symbol, again and again."""
    words = {letters_of(word, end): times for word, times in Counter(" ".join(lines).split()).items()}
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


def applied(line: str, ranks: Mapping[Code, int], end: Literal["0.1", "0.2"] = "0.2") -> list[str]:
    """apply_bpe of subword-nmt: of the pairs of a word the one that was learned first is joined, until none is left."""
    found = []
    for text in line.strip("\r\n ").split(" "):
        word = letters_of(text, end) if text else ()
        while pairs := [pair for pair in zip(word, word[1:], strict=False) if pair in ranks]:
            word = merged(word, min(pairs, key=ranks.__getitem__))
        word = word[:-1] if word[-1:] == ("</w>",) else word
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
    pieces = [piece.replace("\ue001\ue002", "") for piece in ours.pieces(line)]
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


@pytest.mark.parametrize("mark", [" ", "\t", ""])
def test_a_vocabulary_numbers_the_pieces_of_codes(mark: str, tmp_path: Path) -> None:
    (tmp_path / "codes").write_text(SUBWORD_NMT, "utf-8")
    kept = [(piece, count) for piece, count in COUNTS if count > 2]
    control = [("<s>", 0), ("<pad>", 0), ("</s>", 0), ("<unk>", 0)]
    lines = [f"{piece}{mark}{count}" if mark else piece for piece, count in [*control, *kept]]
    (tmp_path / "vocab").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    found = load_foreign_tokenizer(
        TokenizerConfig(file=str(tmp_path / "codes"), codes_vocabulary=str(tmp_path / "vocab"))
    )
    ours, numbers = found.tokenizer, {piece: number for number, (piece, _) in enumerate([*control, *kept])}
    assert found.control_tokens == {PAD: "<pad>", UNK: "<unk>", BOS: "<s>", EOS: "</s>"}
    assert ours.vocab_size == len(numbers)
    assert {UNK} < {piece for wanted in APPLIED for piece in wanted} - numbers.keys() | {UNK}
    for line, wanted in zip(TEST, APPLIED, strict=True):
        assert there(ours, line) == [numbers.get(piece, 3) for piece in wanted], line


def shuffled_codes(codes: Sequence[Code]) -> list[Code]:
    """The same codes in another order in which each joins what is made before."""
    draw, rest, order = Random(3), [*codes], list[Code]()
    while rest:
        made = {*map("".join, order)}
        ready = [code for code in rest if all(len(part.removesuffix("</w>")) < 2 or part in made for part in code)]
        order.append(draw.choice(ready[:40]))
        rest.remove(order[-1])
    return order


@pytest.mark.parametrize("header", ["", "#version: 0.1\n"])
@pytest.mark.parametrize("has_learned_order", [True, False])
def test_codes_whose_end_of_word_is_a_piece_cut_texts_as_subword_nmt_does(
    header: str, has_learned_order: bool, tmp_path: Path
) -> None:
    """Codes of subword-nmt 0.1; in another order more words keep a `</w>` that no code joins."""
    codes = learned_codes(LINES, 300, "0.1")
    codes = codes if has_learned_order else shuffled_codes(codes)
    ranks = {code: rank for rank, code in enumerate(codes)}
    (tmp_path / "codes").write_text(header + "".join(f"{left} {right}\n" for left, right in codes), "utf-8")
    letters = {letter for code in codes for each in code for letter in each.removesuffix("</w>")}
    wanted = [applied(line, ranks, "0.1") for line in TEST]
    ours = taken(tmp_path / "codes")
    for line, pieces in zip(TEST, wanted, strict=True):
        known = [each if len(each.removesuffix("@@")) > 1 or each[0] in letters else UNK for each in pieces]
        assert spelled(ours, line) == known, line
        assert UNK in known or ours.decode(ours.encode(line)) == " ".join(line.split())
    counts = Counter(piece for line in LINES for piece in applied(line, ranks, "0.1")).most_common()
    kept = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece, count in counts if count > 2)]
    (tmp_path / "vocab").write_text("".join(f"{piece}\n" for piece in kept), "utf-8")
    ours = taken(tmp_path / "codes", codes_vocabulary=str(tmp_path / "vocab"))
    numbers = {piece: number for number, piece in enumerate(kept)}
    assert ours.vocab_size == len(kept)
    for line, pieces in zip(TEST, wanted, strict=True):
        assert there(ours, line) == [numbers.get(piece, 3) for piece in pieces], line
    for line in ("", " ", "a  b ", "the\ue001 \ue002", "the</w>", "</w>"):
        assert there(ours, line) == [
            numbers.get(piece, 3) for piece in applied(line.replace("\ue001", "\ue003"), ranks, "0.1")
        ], line


def test_codes_of_other_versions_or_without_order_are_refused(tmp_path: Path) -> None:
    for content, reason in (
        ("#version: 0.3\nt h\n", "codes of subword-nmt 0.3, and only those of 0.1 and 0.2"),
        ("#version: 0.2\nt h\ne </w>\n", "line 3 joins </w> itself"),
        ("t h\nx \ue001\n", r"line 2 has U\+E001 or U\+E002"),
        ("th e\nt h\n", "line 1 joins 'th', which no line before it makes"),
        ("#version: 0.2\n", "is not a tokenizer in a form"),
        ("t h\nt h e x\n", "is not a tokenizer in a form"),
        ("t h\n" * 200 + "t h e x\n", "line 201 has no two pieces"),
    ):
        (tmp_path / "codes").write_text(content)
        with pytest.raises(DataError, match=f"codes: .*{reason}"):
            taken(tmp_path / "codes")
    (tmp_path / "codes").write_text(SUBWORD_NMT, "utf-8")
    for content, reason in (
        ("a 1\na 2\n", "line 2 has the piece 'a' again"),
        ("a b c\n", "line 1 has no piece"),
        ('{"</s>": 0, "<unk>": 1, "the": 2}', "it is JSON that numbers pieces, as Nematus's: write its pieces"),
        ('{\n  "</s>": 0,\n  "the": 2\n}\n', "it is JSON that numbers"),
        ('"</s>": 0\n"<unk>": 1\nthe: 2\n', "it is YAML that numbers pieces, as Marian's"),
    ):
        (tmp_path / "vocab").write_text(content)
        with pytest.raises(DataError, match=f"vocab: is no vocabulary of subword-nmt: {reason}"):
            taken(tmp_path / "codes", codes_vocabulary=str(tmp_path / "vocab"))
    (tmp_path / "vocab").write_text("<unk>\n▁zzqq\n▁qqzz\n", "utf-8")
    with pytest.raises(DataError, match="the vocabulary has no piece that the codes make"):
        taken(tmp_path / "codes", codes_vocabulary=str(tmp_path / "vocab"))
    with pytest.raises(DataError, match=r"no such file \(tokenizer\.codes_vocabulary\)"):
        taken(tmp_path / "codes", codes_vocabulary=str(tmp_path / "none"))


@pytest.mark.skipif(not WILD.exists(), reason="needs ../shared/data/wild")
def test_codes_as_published() -> None:
    ours = taken(WILD / "subword_nmt.codes")
    assert spelled(ours, "the ant or hen") == [*("the", "an@@", "t", "o@@", "r", "h@@", "e@@", "n")]
