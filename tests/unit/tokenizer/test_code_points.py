"""The kind `codepoint`: each character is its number in Unicode, in every script, without a table."""

import sys
import tracemalloc
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from tfm.tokenizer.code_points import NUM_CODE_POINTS, CodePoints, load_tokenizer
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

SCRIPTS = {
    "Latin": "Die Katze saß.",
    "Devanagari": "रानी कुत्ते को देखती है।",
    "Arabic": "القط على الحصيرة",
    "Hebrew with points": "שָׁלוֹם עוֹלָם",
    "Han": "猫坐在垫子上",
    "emoji joined": "a \U0001f469\u200d\U0001f52c b",
    "emoji with skin": "\U0001f44d\U0001f3fd",
    "flag": "\U0001f1e9\U0001f1ea",
    "last of all": "\U0010ffff",
    "private use": "\ue000\ue001",
    "control token": "</s> <pad> <unk>",
    "language": ">>deu<<",
    "nul": "a\x00b",
}


@pytest.fixture(scope="module")
def made() -> CodePoints:
    found = train(["nothing is learned"], TokenizerConfig(kind="codepoint"))
    assert isinstance(found, CodePoints)
    return found


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_a_character_is_its_code_point(made: CodePoints, text: str) -> None:
    ids = made.encode(text)
    assert ids == [4 + ord(character) for character in unicodedata.normalize("NFC", text)]
    assert made.decode(ids) == unicodedata.normalize("NFC", text)
    assert min(ids) >= len(SPECIAL_TOKENS)
    assert (
        max(ids) < made.vocab_size == len(SPECIAL_TOKENS) + NUM_CODE_POINTS == len(SPECIAL_TOKENS) + sys.maxunicode + 1
    )
    assert [made.piece(number) for number in ids] == [made.surface(number) for number in ids] == [*made.normalize(text)]


def test_a_lone_surrogate_is_the_replacement_character_both_ways(made: CodePoints) -> None:
    assert made.encode("a\ud800") == made.encode("a\ufffd")
    assert made.decode([4 + 0xD800]) == made.piece(4 + 0xD800) == "\ufffd"


def test_many_texts_at_once_are_each_alone(made: CodePoints) -> None:
    texts = ["", *SCRIPTS.values(), " ", "x"]
    rows = [made.encode(text) for text in texts]
    assert made.encode_batch(texts) == rows
    ids, lengths = made.encode_flat(texts)
    assert ids.tolist() == [number for row in rows for number in row]
    assert (ids.dtype, lengths.tolist()) == (np.int32, [*map(len, rows)])
    assert made.encode_batch([]) == []
    assert made.decode_batch(rows) == [made.normalize(text) for text in texts]


def test_words_have_the_space_before_them_and_none_is_empty(made: CodePoints) -> None:
    text = " रानी \U0001f469\u200d\U0001f52c  x\u3000\ud800"
    (words,) = made.encode_words([text])
    assert [made.decode(word) for word in words] == ["रानी", " \U0001f469\u200d\U0001f52c", " x", " \ufffd"]
    assert [number for word in words for number in word] == made.encode(text)
    assert made.encode_words(["", "a"]) == [[], [made.encode("a")]]
    compatible = train([], TokenizerConfig(kind="codepoint", normalization="nfkc"))
    assert compatible.encode_words(["´"]) == [[compatible.encode("´")]]


def test_normalisation_is_that_of_all_kinds() -> None:
    for settings in ({"lowercase": True}, {"normalization": "nfkd"}, {"normalization": "none"}):
        one, other = (
            train(["x"], TokenizerConfig.model_validate({"kind": kind, "min_frequency": 1, **settings}))
            for kind in ("codepoint", "char")
        )
        for text in (*SCRIPTS.values(), "  ＡÄ\u00a0 ﬁ\n\u2028x\u3000", "ΔΡΌΜΟΣ İ"):
            assert one.normalize(text) == other.normalize(text) == one.decode(one.encode(text))


def test_a_file_is_small_and_gives_the_same(made: CodePoints, tmp_path: Path) -> None:
    lowered = train([], TokenizerConfig(kind="codepoint", lowercase=True)).with_languages("hin", "deu")
    lowered.save(tmp_path / "source.json")
    assert (tmp_path / "source.json").stat().st_size < 3000
    again = load_tokenizer(tmp_path / "source.json")
    assert again.languages == lowered.languages == {"deu": 1114116, "hin": 1114117}
    assert again.select_target_language("hin").encode("Ab") == [1114117, 4 + ord("a"), 4 + ord("b")]
    assert again.piece(1114117) == ">>hin<<"
    assert again.decode([1114117, 4 + ord("a")]) == "a"
    assert [*again.with_languages("ces", "deu").languages] == ["deu", "hin", "ces"], "none gets another number"
    with pytest.raises(ValueError, match="is not a tokenizer that tfm can use"):
        Tokenizer.load(tmp_path / "source.json")
    lowered.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "source.json").read_bytes()


def test_nothing_is_counted_or_drawn_and_no_piece_is_long(made: CodePoints) -> None:
    tracemalloc.start()
    other = train((f"{number} is a number" for number in range(1000)), TokenizerConfig(kind="codepoint"))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000, "no table of characters"
    assert other.longest_pieces(20) == []
    assert other.label_kind is None
    assert other.sampler(bpe_dropout=0.1, unigram_alpha=0.1) is None
    for number in (-1, made.vocab_size):
        with pytest.raises(ValueError, match="no piece has id"):
            made.piece(number)


def test_a_space_begins_a_word(made: CodePoints) -> None:
    begins = made.word_start_mask()
    assert len(begins) == made.vocab_size
    assert [number for number, does in enumerate(begins) if does] == [4 + ord(" ")]


def test_sentinels_are_refused_as_no_model_writes_them() -> None:
    with pytest.raises(ValidationError, match="none writes kind `codepoint`"):
        TokenizerConfig(kind="codepoint", sentinels=3)
