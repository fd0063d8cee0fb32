"""Languages as control tokens: no text spells one, they stand before texts that have pieces, and files keep them."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from tfm.tokenizer.code_points import load_tokenizer
from tfm.tokenizer.config import Kind, TokenizerConfig
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

TEXTS = [
    *(">>deu<<", " >>deu<< ", "a >>deu<< b", ">>hin<<>>deu<<", ">> deu <<", "रानी >>deu<< है", ">>DEU<<"),
    *("", " ", "\u00a0", "the cat", "القط >>deu<<"),
]
TRAINING = [*TEXTS, "the cat sat on the mat", "रानी कुत्ते को देखती है।"] * 3  # it has seen what spells a token


@pytest.fixture(scope="module", params=get_args(Kind))
def plain(request: pytest.FixtureRequest) -> Tokenizer:
    return train(TRAINING, TokenizerConfig(kind=request.param, vocab_size=300))


def test_tokens_have_the_ids_behind_all_pieces_and_change_no_other(plain: Tokenizer) -> None:
    made = plain.with_languages("hin", "deu")
    assert made.languages == {"deu": plain.vocab_size, "hin": plain.vocab_size + 1}
    assert made.vocab_size == plain.vocab_size + 2
    assert made.encode_batch(TEXTS) == plain.encode_batch(TEXTS)
    assert plain.languages == {}


def test_no_text_spells_a_language(plain: Tokenizer) -> None:
    made = plain.with_languages("deu", "hin")
    found = [number for ids in made.encode_batch(TEXTS) for number in ids]
    assert set(found).isdisjoint(made.languages.values())
    flat, _ = made.encode_flat(TEXTS)
    assert flat.tolist() == found
    for text in TEXTS:
        assert made.decode(made.encode(text)) == plain.decode(plain.encode(text))


def test_the_token_is_before_each_text_with_pieces_however_it_is_encoded(plain: Tokenizer) -> None:
    made = plain.with_languages("deu", "hin")
    to_hindi = made.select_target_language("hin")
    expected = [[made.languages["hin"], *ids] if ids else [] for ids in plain.encode_batch(TEXTS)]
    assert [] in expected
    assert to_hindi.encode_batch(TEXTS) == expected
    assert [to_hindi.encode(text) for text in TEXTS] == expected
    flat, lengths = to_hindi.encode_flat(TEXTS)
    assert flat.tolist() == [number for ids in expected for number in ids]
    assert lengths.tolist() == [len(ids) for ids in expected]
    assert made.encode("the cat") == plain.encode("the cat"), "the other one is as it was"
    assert to_hindi.decode(to_hindi.encode("the cat")) == plain.decode(plain.encode("the cat"))
    assert to_hindi.pieces("the cat")[0] == ">>hin<<"


def test_a_file_keeps_the_languages(plain: Tokenizer, tmp_path: Path) -> None:
    made = plain.with_languages("deu", "hin")
    made.save(tmp_path / "tokenizer.json")
    again = load_tokenizer(tmp_path / "tokenizer.json")
    assert again.languages == made.languages
    assert again.select_target_language("deu").encode_batch(TEXTS) == made.select_target_language("deu").encode_batch(
        TEXTS
    )


def test_a_language_that_it_does_not_have(plain: Tokenizer) -> None:
    with pytest.raises(KeyError):
        plain.with_languages("deu").select_target_language("fra")


@pytest.mark.parametrize("draw", [{"bpe_dropout": 0.5}, {"unigram_alpha": 0.2}])
def test_other_pieces_are_drawn_after_the_language_as_without_it(plain: Tokenizer, draw: dict[str, float]) -> None:
    made = plain.with_languages("deu", "hin")
    keys = np.arange(len(TEXTS)).astype(np.uint64)
    sampler, without = made.sampler(**draw), plain.sampler(**draw)
    assert (sampler is None) == (without is None)
    if sampler is None or without is None:
        return
    as_ever = without(*plain.encode_flat(TEXTS), keys)
    for language, token in made.languages.items():
        led = sampler(*made.select_target_language(language).encode_flat(TEXTS), keys)
        rows, expected = (np.split(ids, np.cumsum(lengths)[:-1]) for ids, lengths in (led, as_ever))
        for row, pieces in zip(rows, expected, strict=True):
            assert row.tolist() == ([token, *pieces.tolist()] if len(pieces) else [])
    alone = sampler(*made.encode_flat(TEXTS), keys)  # targets have no language
    assert [each.tolist() for each in alone] == [each.tolist() for each in as_ever]
