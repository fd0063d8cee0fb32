"""Tags as control tokens: no text spells one, they stand before sources, behind languages, and files keep them."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from tfm.tokenizer.code_points import load_tokenizer
from tfm.tokenizer.config import Kind, TokenizerConfig
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

TEXTS = ["<BT>", " <BT> ", "a <BT> b", "<BT><BT>", "< BT >", "<bt>", "", " ", "the cat", "القط <BT>"]
TRAINING = [*TEXTS, "the cat sat on the mat"] * 3  # it has seen what spells a tag


@pytest.fixture(scope="module", params=[kind for kind in get_args(Kind) if kind != "codepoint"])
def plain(request: pytest.FixtureRequest) -> Tokenizer:
    return train(TRAINING, TokenizerConfig(kind=request.param, vocab_size=300))


def test_no_text_spells_a_tag(plain: Tokenizer) -> None:
    made = plain.with_tags("<BT>", "<FT>")
    assert made.tags == {"<BT>": plain.vocab_size, "<FT>": plain.vocab_size + 1}
    assert plain.tags == {}
    found = made.encode_batch(TEXTS)
    assert found == plain.encode_batch(TEXTS)
    assert made.control_ids.isdisjoint(number for ids in found for number in ids)
    assert [made.decode(ids) for ids in found] == [plain.decode(ids) for ids in found]


def test_the_tag_stands_behind_the_language_and_is_no_text(plain: Tokenizer) -> None:
    made = plain.with_languages("deu").with_tags("<BT>")
    tagged = made.select_target_language("deu").select_tag("<BT>")
    before = [made.languages["deu"], made.tags["<BT>"]]
    expected = [[*before, *ids] if ids else [] for ids in plain.encode_batch(TEXTS)]
    assert tagged.encode_batch(TEXTS) == expected
    assert tagged.encode_flat(TEXTS)[0].tolist() == [number for ids in expected for number in ids]
    assert tagged.decode(tagged.encode("the cat")) == plain.decode(plain.encode("the cat"))
    assert made.encode("the cat") == plain.encode("the cat"), "the other one is as it was"
    with pytest.raises(KeyError):
        plain.select_tag("<BT>")


def test_a_file_keeps_the_tags(plain: Tokenizer, tmp_path: Path) -> None:
    plain.with_tags("<BT>").save(tmp_path / "tokenizer.json")
    assert load_tokenizer(tmp_path / "tokenizer.json").tags == {"<BT>": plain.vocab_size}


@pytest.mark.parametrize("draw", [{"bpe_dropout": 0.5}, {"unigram_alpha": 0.2}])
def test_other_pieces_are_drawn_after_language_and_tag(plain: Tokenizer, draw: dict[str, float]) -> None:
    made = plain.with_languages("deu").with_tags("<BT>")
    sampler, without = made.sampler(**draw), plain.sampler(**draw)
    assert (sampler is None) == (without is None)
    if sampler is None or without is None:
        return
    keys = np.arange(len(TEXTS)).astype(np.uint64)
    as_ever, lengths = without(*plain.encode_flat(TEXTS), keys)
    expected = np.split(as_ever, np.cumsum(lengths)[:-1])
    for chosen in (made.select_tag("<BT>"), made.select_target_language("deu").select_tag("<BT>")):
        ids, counts = sampler(*chosen.encode_flat(TEXTS), keys)
        before = chosen.encode("the cat")[: -len(plain.encode("the cat"))]
        for row, pieces in zip(np.split(ids, np.cumsum(counts)[:-1]), expected, strict=True):
            assert row.tolist() == ([*before, *pieces.tolist()] if len(pieces) else [])


def test_characters_by_their_numbers_have_none() -> None:
    with pytest.raises(ValueError, match="no tags beside them"):
        train([], TokenizerConfig(kind="codepoint")).with_tags("<BT>")
