"""Law: decoding the encoding gives the normalised text back, for every kind that can spell it."""

from functools import cache
from typing import get_args

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tfm.tokenizer.config import Kind, Normalization, TokenizerConfig
from tfm.tokenizer.special import SPECIAL_TOKENS, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

KINDS = get_args(Kind)
NASTY = (
    "a",
    "b",
    "ß",
    "İ",  # lower-cased it is two characters
    "\u0300",  # combining: alone, it may stand at the beginning of a text
    "\u0327",
    "\u00a8",  # compatibility forms give it a space: " \u0308"
    "ﬁ",
    "각",
    "\u2581",  # what others write for a space
    "Ġ",
    "#",
    "##",
    "7",
    "٣",
    ".",
    "'",
    " ",
    "  ",
    "\t",
    "\n",
    "\r",
    "\x85",
    "\u2028",
    "\u3000",
    "\u200b",
    "\u200d",
    "\x00",
    "\x1c",
    "\ufeff",
    "\ufffd",
    "\ud800",  # a lone surrogate, as JSON can spell it
    "\U0001f469",
    "\U0010ffff",
    "<s>",
    "</s>",
    "<unk>",
    "<",
    ">",
)
nasty_texts = st.lists(st.sampled_from(NASTY), max_size=12).map("".join)
any_text = st.text(st.characters(), max_size=30)  # surrogates too
searching = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def config(kind: Kind, normalization: Normalization, lowercase: bool) -> TokenizerConfig:
    """A vocabulary in which every character of the training text finds room."""
    return TokenizerConfig(
        kind=kind, vocab_size=1000, normalization=normalization, lowercase=lowercase, min_frequency=1
    )


@cache
def trained(kind: Kind, normalization: Normalization, lowercase: bool) -> Tokenizer:
    """A tokenizer whose alphabet is the nasty one; `word`, which spells only words it saw, has no law to break."""
    around = [f"{one}{other}{one}x" for one in NASTY for other in NASTY]
    return train([*around, *(f"x {one}{one} y" for one in NASTY)], config(kind, normalization, lowercase))


forms = st.sampled_from(get_args(Normalization))


def check(tokenizer: Tokenizer, text: str, *, spells_all: bool) -> None:
    ids = tokenizer.encode(text)
    assert not set(ids) & {0, 2, 3}
    if spells_all:
        assert UNK_ID not in ids
    if UNK_ID not in ids:
        assert tokenizer.decode(ids) == tokenizer.normalize(text)


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
@searching
@given(text=nasty_texts, normalization=forms, lowercase=st.booleans())
@example(text="##b a##b ## #", normalization="nfkc", lowercase=False)
@example(text="\u2581a \u2581 \u2581\u2581", normalization="none", lowercase=False)
@example(text="a</s> </s> <s>", normalization="nfkc", lowercase=False)
@example(text="\u00a8", normalization="nfkc", lowercase=False)
@example(text="", normalization="none", lowercase=False)
def test_nasty_text_comes_back(kind: Kind, text: str, normalization: Normalization, lowercase: bool) -> None:
    check(trained(kind, normalization, lowercase), text, spells_all=kind != "word")


@pytest.mark.parametrize("kind", KINDS)
@searching
@given(text=any_text, normalization=forms, lowercase=st.booleans())
@example(text=" \x1c", normalization="nfkc", lowercase=False)
@example(text="é\u0301\ud800 \u0301", normalization="nfd", lowercase=True)
@pytest.mark.few(3)
def test_any_text_comes_back_from_a_vocabulary_that_covers_it(
    kind: Kind, text: str, normalization: Normalization, lowercase: bool
) -> None:
    check(train([text], config(kind, normalization, lowercase)), text, spells_all=True)


@searching
@given(text=any_text)
def test_bytes_spell_text_never_seen(text: str) -> None:
    tokenizer = trained("byte", "none", False)
    check(tokenizer, text, spells_all=True)
    assert tokenizer.decode_batch(tokenizer.encode_batch([text, text])) == [tokenizer.normalize(text)] * 2


@searching
@given(text=any_text | nasty_texts, normalization=forms, lowercase=st.booleans())
@example(text="İ\u0327", normalization="nfc", lowercase=True)  # lower-cased, its marks are in the wrong order
def test_normalised_text_is_clean_and_stays_as_it_is(text: str, normalization: Normalization, lowercase: bool) -> None:
    normalize = trained("byte", normalization, lowercase).normalize
    once = normalize(text)
    assert normalize(once) == once
    assert "  " not in once
    assert once == once.strip(" ")
    assert not any(character in once for character in "\t\n\r\x85\u2028\u2029")


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
@searching
@given(texts=st.lists(nasty_texts | any_text, max_size=6), normalization=forms, lowercase=st.booleans())
@example(texts=["\t a  b\u3000", "\u00a8 \u00a8", "", " \n", "a\nb"], normalization="nfkc", lowercase=False)
@example(texts=["\u0300 a", "a \u0300", "\x85\u2028a \x1c", "\ud800 a \ud800"], normalization="nfc", lowercase=True)
def test_encoding_word_by_word_is_encoding_whole(
    kind: Kind, texts: list[str], normalization: Normalization, lowercase: bool
) -> None:
    tokenizer, texts = trained(kind, normalization, lowercase), texts * 3  # only words that come again are remembered
    for _ in range(2):  # what the first time is encoded is the second time remembered
        ids, lengths = tokenizer.encode_flat(texts)
        expected = tokenizer.encode_batch(texts)
        assert lengths.tolist() == [len(each) for each in expected]
        assert ids.tolist() == [number for each in expected for number in each]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("special", SPECIAL_TOKENS)
def test_a_control_token_in_text_is_text(kind: Kind, special: str) -> None:
    text = f"{special} a {special}{special} b{special}c"
    tokenizer = train([text] * 3, TokenizerConfig(kind=kind, vocab_size=300))
    ids = tokenizer.encode(text)
    assert min(ids) >= len(SPECIAL_TOKENS)
    assert tokenizer.decode(ids) == text
