"""What a user asks a model to write is written letter by letter, or refused: prefixes, prompts, targets, phrases."""

import pytest

from tests.tiny_model import TEXTS, tiny_model
from tfm.pipeline.api.model import Model
from tfm.pipeline.attention_page.reading import attend
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.generation import Reader, Writer
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.runtime.progress import Quiet
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train

KINDS = ("bpe", "unigram", "wordpiece", "word", "char", "byte")
UNKNOWN = "the Ж sea"
SHORT = DecodingConfig(beam=2, max_length=4)


def tokenizer_of(kind):
    try:
        size = 400 if kind == "byte" else 60
        return train(TEXTS, TokenizerConfig.model_validate({"kind": kind, "vocab_size": size, "min_frequency": 1}))
    except ValueError as error:
        pytest.skip(f"no such kind: {error}")


def spells(tokenizer, text):
    return tokenizer.decode(tokenizer.encode(text)).strip() == text


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_to_be_written_is_written_or_refused(kind):
    tokenizer = tokenizer_of(kind)
    loaded = tiny_model(tokenizer=tokenizer)
    writer = Writer(
        Reader(tiny_model(tokenizer=tokenizer, task="language_model", architecture="decoder_only")),
        SHORT,
        Quiet(),
    )
    ways = {
        "a prefix": lambda text: (
            next(translate_lines(loaded, ["a dog"], SHORT, reporter=Quiet(), prefixes=[text]))[0].text
        ),
        "the target": lambda text: attend(loaded, "a dog", text, SHORT).target,
        "the prompt": lambda text: writer.shown(text) + writer.texts(text)[0].text,
    }
    for text in ("the sea", UNKNOWN):
        for what, write in ways.items():
            if spells(tokenizer, text):
                assert write(text).strip().startswith(text)
            else:
                with pytest.raises(DataError, match=f"{what} holds .*Ж.*cannot spell: omit it"):
                    write(text)


def test_a_prompt_in_python_is_refused_too():
    model = Model(tiny_model(task="language_model", architecture="decoder_only"), Quiet())
    with pytest.raises(DataError, match='the prompt holds "Ж"'):
        model.generate(UNKNOWN)
