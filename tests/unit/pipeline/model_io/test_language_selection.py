"""Which tokens are before the sources of a model that is asked for a language, and what it says of other languages."""

from pathlib import Path

import pytest
import tokenizers

from tfm.data.errors import DataError
from tfm.pipeline.model_io.language_selection import tokenizer_for_languages
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.languages import ISO_639_3, to_iso_639_3
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

TEXT = "a dog runs"
NLLB = ("eng_Latn", "deu_Latn", "zho_Hans", "zho_Hant", "kas_Arab")
MBART = ("de_DE", "en_XX", "zh_CN")
M2M100 = ("__de__", "__en__", "__ast__", "__ns__")


def with_tokens(*tokens: str) -> Tokenizer:
    """A small vocabulary with these control tokens behind it."""
    whole = tokenizers.Tokenizer.from_str(train([TEXT], TokenizerConfig(kind="word"))._backend.to_str())
    whole.add_special_tokens([tokenizers.AddedToken(each, special=True, normalized=False) for each in tokens])
    return Tokenizer(whole)


def asked(tokenizer: Tokenizer, to: str | None, source: str | None = None, languages: str = "m2m100") -> list[str]:
    """The pieces of a text whose translation is asked for."""
    return tokenizer_for_languages(tokenizer, languages, to, source, Path("model")).pieces(TEXT)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tokens", "to", "source", "before"),
    [
        (NLLB, "deu", "eng", ["deu_Latn", "eng_Latn"]),
        (NLLB, "eng_Latn", "zho_Hant", ["eng_Latn", "zho_Hant"]),
        (MBART, "zho", "de_DE", ["zh_CN", "de_DE"]),
        (M2M100, "nso", "ast", ["__ns__", "__ast__"]),
        (M2M100, "de", "eng", ["__de__", "__en__"]),
    ],
)
def test_its_own_codes_and_those_of_iso(tokens: tuple[str, ...], to: str, source: str, before: list[str]) -> None:
    tokenizer = with_tokens(*tokens)
    assert tokenizer.has_source_language
    plain = tokenizer.pieces(TEXT)
    assert plain[0] not in tokens
    assert asked(tokenizer, to, source) == [*before, *plain]
    assert tokenizer.select_target_language(*(each.strip("_") for each in before)).encode("") == []


def test_opus_tokens_ask_for_the_target_alone() -> None:
    tokenizer = with_tokens(">>deu<<", ">>zho_Hans<<", "de_DE")
    assert not tokenizer.has_source_language
    assert list(tokenizer.languages) == ["deu", "zho_Hans"]
    assert asked(tokenizer, "zho", languages="source")[0] == ">>zho_Hans<<"


def test_a_model_that_was_trained_with_no_language_reads_the_text_alone() -> None:
    tokenizer = with_tokens(*MBART)
    assert asked(tokenizer, None, languages="source") == tokenizer.pieces(TEXT)
    assert asked(tokenizer, "deu", "eng", languages="source")[:2] == ["de_DE", "en_XX"]


@pytest.mark.parametrize(
    ("tokens", "to", "source", "problem"),
    [
        (NLLB, "zho", "eng", "has 2 languages zho: say which, zho_Hans or zho_Hant"),
        (NLLB, "deu", None, "say which, --from eng_Latn or deu_Latn"),
        (NLLB, None, "eng", "say which, --to eng_Latn or deu_Latn"),
        (NLLB, None, None, "is told the languages of source and target: say which, --to"),
        (NLLB, "fra", "eng", "does not translate into fra; it translates into eng_Latn"),
        (NLLB, "deu", "fra", "does not translate from fra; it translates from eng_Latn"),
        ((">>deu<<",), "deu", "eng", "takes no source language: remove --from"),
        ((">>deu<<",), None, None, "translates into several languages: say which, --to deu"),
        ((), "deu", None, "was not trained with languages, so it cannot translate into deu: remove --to"),
    ],
)
def test_what_is_refused(tokens: tuple[str, ...], to: str | None, source: str | None, problem: str) -> None:
    with pytest.raises(DataError) as raised:
        asked(with_tokens(*tokens), to, source)
    assert problem in str(raised.value)


def test_of_many_languages_those_alike_are_shown() -> None:
    many = with_tokens(*(f"{a}{b}x_Latn" for a in "abcdef" for b in "abcdef"))
    with pytest.raises(DataError) as raised:
        asked(many, "abcx_Latn", "aax")
    assert "abx_Latn" in str(raised.value)
    assert str(raised.value).count("_Latn") == 9


def test_a_text_that_spells_a_language_is_text() -> None:
    tokenizer = with_tokens(*NLLB, *MBART)
    ids = tokenizer.encode("a deu_Latn de_DE dog")
    assert not {*ids} & {*tokenizer.languages.values()}


def test_codes_are_those_of_iso() -> None:
    assert all(len(two) == 2 and len(three) == 3 for two, three in ISO_639_3.items())
    assert len({*ISO_639_3.values()}) == len(ISO_639_3)
    assert [to_iso_639_3(code) for code in ("deu", "deu_Latn", "de_DE", "de", "ast", "xx")] == ["deu"] * 4 + [
        "ast",
        None,
    ]
