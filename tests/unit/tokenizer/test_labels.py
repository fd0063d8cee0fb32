"""Vocabularies of names: each name is one piece in its own spelling, whatever the script and however rare."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tfm.tokenizer.config import LabelKind, TokenizerConfig
from tfm.tokenizer.labels import split_words
from tfm.tokenizer.normalization import WHITE_SPACE
from tfm.tokenizer.special import SPECIAL_TOKENS, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import LabelTrainer, train

STRANGE = ("New York", "Good", "good", "ﬁ", "²", "İ", "<s>", "<unk>", "##x", "▁a", "e\u0301", "é", "好", "x" * 2000)
no_space = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=WHITE_SPACE), min_size=1, max_size=8)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def names(kind: LabelKind, texts: list[str]) -> Tokenizer:
    trainer = LabelTrainer(kind)
    for text in texts:
        trainer.add(text)
    return trainer.learn()


@given(st.lists(any_text | st.sampled_from(STRANGE), min_size=1, max_size=6))
def test_a_label_is_one_known_piece_in_its_own_spelling(texts: list[str]) -> None:
    made = names("label", texts)
    wanted = {text.strip(WHITE_SPACE) for text in texts} - {""}
    assert made.vocab_size == len(SPECIAL_TOKENS) + len(wanted)
    for text in texts:
        ids = made.encode(text)
        assert made.decode(ids) == text.strip(WHITE_SPACE)
        assert len(ids) == (text.strip(WHITE_SPACE) != "")
        assert all(number >= len(SPECIAL_TOKENS) for number in ids)
    assert made.encode("none of these") == [UNK_ID]


@given(st.lists(st.lists(no_space, max_size=5), min_size=1, max_size=4), st.sampled_from(" \t\u00a0\u3000"))
def test_each_tag_is_one_known_piece_in_its_own_spelling(lines: list[list[str]], space: str) -> None:
    texts = [f"{space} ".join(line) + space for line in lines]
    made = names("tags", texts)
    for line, text in zip(lines, texts, strict=True):
        assert split_words(text) == line
        ids = made.encode(text)
        assert made.decode(ids) == " ".join(line)
        assert len(ids) == len(line)
        assert made.encode_flat([text])[0].tolist() == ids
        assert all(number >= len(SPECIAL_TOKENS) for number in ids)


@pytest.mark.parametrize("kind", ["label", "tags"])
def test_a_vocabulary_of_names_is_known_as_one_from_its_file(kind: LabelKind, tmp_path: Path) -> None:
    made = names(kind, ["a b", "B", "B"])
    made.save(tmp_path / "target.json")
    assert Tokenizer.load(tmp_path / "target.json").label_kind == kind
    assert made.piece(4) == " B", "the most frequent first"
    for normalization in ("none", "nfc", "nfkc"):
        config = TokenizerConfig.model_validate(
            {"kind": "word", "normalization": normalization, "min_frequency": 1, "vocab_size": 20}
        )
        assert train(["a b", "B"], config).label_kind is None


def test_labels_that_are_several_others_are_known() -> None:
    """As of rows with several labels (GoEmotions), which would be classes of their own."""
    trainer = LabelTrainer("label")
    for text in ("4", "27", "4,27", "1, 5", "New York", "Rome", "Rome; New York", "x y", "x", "y", "Rome,Rome", "4,"):
        trainer.add(text)
    assert trainer.joined_labels == ["4,27", "Rome; New York", "x y"]
    tags = LabelTrainer("tags")
    tags.add("a b a,b")
    assert tags.joined_labels == []


def test_names_are_of_a_vocabulary_of_their_own() -> None:
    with pytest.raises(ValidationError, match="shared = false"):
        TokenizerConfig(target_kind="label")
    assert TokenizerConfig(shared=False, target_kind="tags").label_kind == "tags"
    assert TokenizerConfig(shared=False, target_kind="word").label_kind is None
