"""Texts that a model is to write: letter by letter as they were asked for, or refused with what would be written."""

import pytest

from tfm.data.errors import DataError
from tfm.pipeline.decoding.constraints.spelling import encode_without_unknown
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train as train_tokenizer

LINES = ["the owl saw 2 dogs", "a dog ran, the owl slept"] * 20


@pytest.mark.parametrize(
    ("settings", "text", "written"),
    [({"lowercase": True}, "The owl", "the owl"), ({"normalization": "nfkc"}, "the owl saw \uff12", "the owl saw 2")],
)
def test_other_letters_than_those_asked_for_are_refused(settings: dict[str, object], text: str, written: str) -> None:
    config = TokenizerConfig.model_validate({"kind": "bpe", "vocab_size": 60, **settings})
    tokenizer = train_tokenizer(LINES, config)
    with pytest.raises(DataError, match=f'the prefix "{text}" would be written as "{written}"'):
        encode_without_unknown(tokenizer, [written, text], "the prefix")
    assert encode_without_unknown(tokenizer, [written], "the prefix") == tokenizer.encode_batch([written])


@pytest.mark.parametrize("kind", ["word", "bpe", "byte", "unigram", "wordpiece"])
def test_texts_that_are_written_as_they_are_pass_whatever_their_spaces(kind: str) -> None:
    tokenizer = train_tokenizer(LINES, TokenizerConfig.model_validate({"kind": kind, "vocab_size": 300}))
    texts = ["the owl", " a dog ran,", ""]
    assert encode_without_unknown(tokenizer, texts, "the prefix") == tokenizer.encode_batch(texts)
