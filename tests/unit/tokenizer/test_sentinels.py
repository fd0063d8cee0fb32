"""Sentinels: control tokens behind all pieces, which no text spells and files keep."""

from pathlib import Path
from typing import get_args

import pytest
import tokenizers

from tfm.tokenizer.config import Kind, TokenizerConfig
from tfm.tokenizer.sentinels import sentinel_ids
from tfm.tokenizer.special import sentinel
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

TEXTS = [
    *("<extra_id_0>", " <extra_id_1> ", "a <extra_id_0> b", "<extra_id_0><extra_id_1>", "<EXTRA_ID_0>"),
    *("रानी <extra_id_0> है", "القط <extra_id_2>", "", " ", "the cat"),
]
TRAINING = [*TEXTS, "the cat sat on the mat", "रानी कुत्ते को देखती है।"] * 3  # it has seen what spells one
SIZE = 300


@pytest.fixture(scope="module", params=[kind for kind in get_args(Kind) if kind != "codepoint"])
def both(request: pytest.FixtureRequest) -> tuple[Tokenizer, Tokenizer]:
    """A tokenizer without sentinels, and one with three that learned from the same text."""
    plain = TokenizerConfig(kind=request.param, vocab_size=SIZE)
    return train(TRAINING, plain), train(TRAINING, plain.model_copy(update={"vocab_size": SIZE + 3, "sentinels": 3}))


def test_they_lie_behind_all_pieces_count_among_them_and_change_no_other(both: tuple[Tokenizer, Tokenizer]) -> None:
    plain, made = both
    assert plain.sentinels == ()
    assert made.sentinels == tuple(range(plain.vocab_size, plain.vocab_size + 3))
    assert made.vocab_size == plain.vocab_size + 3 <= SIZE + 3
    assert [made.piece(number) for number in made.sentinels] == ["<extra_id_0>", "<extra_id_1>", "<extra_id_2>"]
    assert made.encode_batch(TEXTS) == plain.encode_batch(TEXTS)


def test_no_text_spells_one_and_decoding_leaves_them_out(both: tuple[Tokenizer, Tokenizer]) -> None:
    plain, made = both
    found = [number for ids in made.encode_batch(TEXTS) for number in ids]
    assert set(found).isdisjoint(made.sentinels)
    assert made.encode_flat(TEXTS)[0].tolist() == found
    for text in TEXTS:
        ids = made.encode(text)
        assert made.decode([made.sentinels[1], *ids, made.sentinels[0]]) == plain.decode(ids)


def test_a_file_keeps_them_and_languages_come_behind(both: tuple[Tokenizer, Tokenizer], tmp_path: Path) -> None:
    made = both[1].with_languages("hin", "deu")
    assert made.sentinels == both[1].sentinels
    assert list(made.languages.values()) == [both[1].vocab_size, both[1].vocab_size + 1]
    made.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert (again.sentinels, again.languages) == (made.sentinels, made.languages)
    assert again.encode_batch(TEXTS) == made.encode_batch(TEXTS)


def test_other_pieces_are_drawn_as_without_them() -> None:
    config = TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1)
    plain, made = (train(TRAINING, config.model_copy(update=more)) for more in ({}, {"vocab_size": 63, "sentinels": 3}))
    samplers = [each.sampler(bpe_dropout=0.5) for each in (plain, made)]
    ids, lengths = made.encode_flat(["the cat sat on the mat"] * 20)
    keys = lengths.astype("uint64") * 0 + range(20)
    drawn = [sampler(ids, lengths, keys.astype("uint64"))[0].tolist() for sampler in samplers if sampler is not None]
    assert drawn[0] == drawn[1] != ids.tolist()


def test_their_numbers_say_which_is_first_not_their_ids() -> None:
    """T5's own vocabulary has them in the reverse order."""
    whole = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "<unk>": 1}, unk_token="<unk>"))
    whole.add_special_tokens([sentinel(number) for number in (10, 9, 0)])
    assert sentinel_ids(whole) == (4, 3, 2)


def test_a_vocabulary_that_has_no_room_for_them_is_refused() -> None:
    assert TokenizerConfig(kind="byte", vocab_size=280, sentinels=20).sentinels == 20
    with pytest.raises(ValueError, match="at least 280 for kind `byte`: 256 bytes, 4 control tokens and 20 sentinels"):
        TokenizerConfig(kind="byte", vocab_size=279, sentinels=20)
    with pytest.raises(ValueError, match=r"`sentinels` \(20\) leave too little of vocab_size \(27\)"):
        TokenizerConfig(kind="char", vocab_size=27, sentinels=20)
    with pytest.raises(ValueError, match="`file` is used unchanged, and nothing is learned: remove sentinels"):
        TokenizerConfig(file="tokenizer.json", sentinels=20)
