"""The texts of an n-best list are distinct, best first, by every path that searches; samples stay as drawn."""

from collections import Counter

import pytest

from tests.tiny_model import TEXTS, numpy_of, tiny_model
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.inference.generation.generator import TextGenerator
from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
from tfm.pipeline.inference.numpy_translation import NumpyModel
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.train import train

LINES = [*TEXTS, "a dog", "the sea", "asleep"]


def tokenizer_of(kind):
    return train(TEXTS, TokenizerConfig.model_validate({"kind": kind, "vocab_size": 40, "min_frequency": 1}))


def model_of(kind, **changes):
    """A model that says what it does not know as often as what it says most, and no text shows it."""
    loaded = tiny_model(tokenizer=tokenizer_of(kind), tie="none", **changes)
    weight = loaded.model.output.weight.data
    weight[UNK_ID] = weight[weight[4:].norm(dim=1).argmax() + 4]
    return loaded


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["word", "bpe"])
@pytest.mark.parametrize("n_best", [2, 4])
def test_translations_are_distinct_and_best_first(kind, n_best):
    loaded, config = model_of(kind), DecodingConfig(beam=4, n_best=n_best, max_length=4)
    small = NumpyModel(numpy_of(loaded), loaded.source_tokenizer, loaded.target_tokenizer)
    found = list(translate_lines(loaded, LINES, config, reporter=NullReporter()))
    for n_best_texts in (found, list(small.translate(LINES, config, SourceProblems()))):
        for each in n_best_texts:
            assert max(Counter(one.text for one in each).values()) == 1
            assert len(each) == n_best
            assert [one.score for one in each] == sorted((one.score for one in each), reverse=True)
    alone = [translate_lines(loaded, [line], config, reporter=NullReporter()) for line in LINES]
    assert [[one.text for one in each] for (each,) in alone] == [[one.text for one in each] for each in found]


def test_generated_texts_are_distinct():
    loaded = model_of("word", task="language_model", architecture="decoder_only")
    writer = TextGenerator(PromptEncoder(loaded), DecodingConfig(beam=4, n_best=4, max_length=4), NullReporter())
    texts = [one.text for one in writer.generate_texts("the sea")]
    assert len(texts) == len(set(texts)) == 4


def test_samples_stay_as_they_were_drawn():
    config = DecodingConfig(strategy="sample", n_best=6, max_length=1, top_k=2)
    (found,) = translate_lines(model_of("word"), ["a dog"], config, reporter=NullReporter())
    assert len(found) == 6
