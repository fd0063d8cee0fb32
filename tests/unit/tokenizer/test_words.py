"""Word by word where that is exact, whole where it is not, and never more memory than a bound."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import AddedToken, normalizers, pre_tokenizers
from tokenizers.models import BPE

from tfm.tokenizer import words
from tfm.tokenizer.config import Kind, Normalization, TokenizerConfig
from tfm.tokenizer.kinds import TOKENIZER_METHODS
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train
from tfm.tokenizer.words import (
    LaterWords,
    WordEncodingCache,
    encodes_words_independently,
    make_backend_keeping_leading_space,
)

TEXTS = ["a cat sat", "the cat  sat on a mat.", "", "mat"]


def whole(tmp_path: Path, kind: Kind = "bpe", **changes: Any) -> tokenizers.Tokenizer:
    train(TEXTS, TokenizerConfig(kind=kind, vocab_size=300, min_frequency=1, **changes)).save(tmp_path / "t.json")
    return tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))


@pytest.mark.parametrize("kind", [kind for kind, method in TOKENIZER_METHODS.items() if method.learn is not None])
def test_every_kind_is_encoded_word_by_word(kind: Kind, tmp_path: Path) -> None:
    assert encodes_words_independently(whole(tmp_path, kind))
    assert encodes_words_independently(whole(tmp_path, kind, lowercase=True, normalization="none"))


def truncated(made: tokenizers.Tokenizer) -> None:
    made.enable_truncation(3)


def padded(made: tokenizers.Tokenizer) -> None:
    made.enable_padding(length=30)


def phrase(made: tokenizers.Tokenizer) -> None:
    made.add_tokens([AddedToken("cat sat")])


def unstripped(made: tokenizers.Tokenizer) -> None:
    made.normalizer = normalizers.NFC()


def looking_across(made: tokenizers.Tokenizer) -> None:
    made.normalizer = normalizers.Sequence([normalizers.Replace("t s", "-"), made.normalizer])


def uncut(made: tokenizers.Tokenizer) -> None:
    made.pre_tokenizer = pre_tokenizers.Metaspace(split=False)


def merging_across(made: tokenizers.Tokenizer) -> None:
    vocabulary = made.get_vocab()
    number = vocabulary.setdefault("t s", len(vocabulary))
    assert {"t", " ", "s", "t "} - vocabulary.keys() == {"t "}
    vocabulary["t "] = number + 1
    made.model = BPE(vocab=vocabulary, merges=[("t", " "), ("t ", "s")], unk_token="<unk>")
    made.pre_tokenizer = None  # type: ignore[assignment]


@pytest.mark.parametrize("change", [truncated, padded, phrase, unstripped, looking_across, uncut, merging_across])
def test_what_looks_across_spaces_is_encoded_whole(change: Any, tmp_path: Path) -> None:
    made = whole(tmp_path)
    change(made)
    made.save(str(tmp_path / "t.json"))
    tokenizer = Tokenizer.load(tmp_path / "t.json")
    ids, lengths = tokenizer.encode_flat(TEXTS)
    expected = tokenizer.encode_batch(TEXTS)
    assert not encodes_words_independently(made)
    assert lengths.tolist() == [len(each) for each in expected]
    assert ids.tolist() == [number for each in expected for number in each]


def test_words_that_do_not_come_again_are_not_remembered(tmp_path: Path) -> None:
    by_words = WordEncodingCache(whole(tmp_path))
    by_words.encode(["cat sat", "cat sat", "cat sat"])
    assert sorted(by_words._numbers) == ["\ncat", "sat"]
    texts = ["the cat sat", "mat on a", "tea ant the"]
    ids, _ = by_words.encode(texts)
    assert ids.tolist() == [number for text in texts for number in by_words._backend.encode(text).ids]
    assert sorted(by_words._numbers) == ["\ncat", "sat"]


@pytest.mark.parametrize("limit", ["MAX_CACHED_WORDS", "MAX_CACHED_IDS"])
def test_what_is_remembered_is_bounded(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, limit, 5)
    made = whole(tmp_path)
    by_words = WordEncodingCache(made)
    for round_ in range(4):
        texts = [f"cat{round_} sat{round_}"] * 2
        ids, _ = by_words.encode(texts)
        assert ids.tolist() == made.encode(texts[0], add_special_tokens=False).ids * 2
        assert len(by_words._numbers) <= 5 + 2


def test_no_text_has_no_ids(tmp_path: Path) -> None:
    ids, lengths = WordEncodingCache(whole(tmp_path)).encode([])
    assert (len(ids), len(lengths)) == (0, 0)


LEARNED_KINDS = [kind for kind, method in TOKENIZER_METHODS.items() if method.learn is not None]
# A space by compatibility (¨, ﷺ, ͺ), marks alone, spaces that are not plain, a control character, a lone surrogate,
# unknown letters, the characters that other programs write a space with.
STRANGE_WORDS = [
    "",
    "¨",
    "a¨b",
    "\ufdfa",
    "\u037a",
    "\u0301",
    "\u200b",
    "a\tb",
    "\u00a0",
    "x\u3000y",
    "\x00",
    "\ud800",
    "щ",
]
STRANGE_WORDS += [
    "猫猫",
    "▁",
    "Ġ",
    "Ġa",
    "␣",
    "<s>",
    "</s>",
    "<unk>",
    "##a",
    "İ",
    "ΟΔΟΣ",
    "🙂",
    "\ufeff",
    "\u1680",
    "´",
    "a\u0301",
]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("normalization", ["none", "nfc", "nfkd"])
@pytest.mark.parametrize("kind", LEARNED_KINDS)
def test_words_in_one_text_have_the_ids_of_each_alone(
    kind: Kind, normalization: Normalization, lowercase: bool, tmp_path: Path
) -> None:
    draw = random.Random(f"{kind} {normalization} {lowercase}")
    backend = whole(tmp_path, kind, normalization=normalization, lowercase=lowercase)
    alone = make_backend_keeping_leading_space(backend)
    usual = ["cat", "sat", "mat", "the", "a.", "on", "tha-t", "cats!", "20mats"]
    for strange in (0.0, 0.02, 0.3):
        sampled = [draw.choice(STRANGE_WORDS if draw.random() < strange else usual) for _ in range(200)]
        expected = words.encode_batch_ids(alone, [" " + word for word in sampled])
        assert LaterWords(backend).encode(sampled) == expected
    one_less_one_more = ["cat", "", "a\tsat", "mat"]
    expected = words.encode_batch_ids(alone, [" " + word for word in one_less_one_more])
    assert LaterWords(backend).encode(one_less_one_more) == expected


def test_words_share_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    encode = words.encode_batch_ids

    def keep(backend: tokenizers.Tokenizer, texts: Sequence[str]) -> list[list[int]]:
        encoded.extend(texts)
        return encode(backend, texts)

    monkeypatch.setattr(words, "encode_batch_ids", keep)
    sampled = [left + right for left in "cthe" for right in ["at", "sat", "mat"]] * 8
    LaterWords(whole(tmp_path)).encode(sampled)
    assert len(encoded) == len(sampled) / words.WORDS_PER_TEXT
