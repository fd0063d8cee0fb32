"""Which models need one vocabulary is said once: recipes, trainings and the builder refuse two for the same models."""

from typing import Any

import pytest
import tokenizers

from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.training.checks import check_character_tokenizers, check_languages, check_one_vocabulary
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

STACK = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=8)
TO_TIE = 'set model.tie to "output" or "none", or tokenizer.shared = true'
SHARED = "and the dataset has one a side: tokenizer.shared = true"


def config(**changes: Any) -> ModelConfig:
    return ModelConfig.model_validate({"encoder": STACK, "decoder": STACK, "max_length": 16, **changes})


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (config(), f'model.tie = "all" needs one vocabulary, and the dataset has one a side: {TO_TIE}'),
        (config(tie="embeddings"), f'model.tie = "embeddings" needs one vocabulary, and .*: {TO_TIE}'),
        (config(architecture="recurrent"), f'model.tie = "all" needs one vocabulary, and .*: {TO_TIE}'),
        (config(architecture="decoder_only", tie="none"), f'model.architecture = "decoder_only" reads .*, {SHARED}'),
    ],
    ids=["all", "embeddings", "recurrent", "decoder alone"],
)
def test_two_vocabularies_are_refused_of_a_model_with_one(model: ModelConfig, reason: str) -> None:
    check_one_vocabulary(model, shared=True)
    with pytest.raises(RecipeError, match=reason):
        check_one_vocabulary(model, shared=False)
    build(model, source_vocab=9, target_vocab=9)
    with pytest.raises(ValueError, match=f"^{model.shared_vocabulary_reason} needs one vocabulary"):
        build(model, source_vocab=9, target_vocab=10)


@pytest.mark.parametrize(
    "model",
    [
        config(tie="output"),
        config(architecture="recurrent", tie="none"),
        config(architecture="decoder_only", task="language_model"),
        config(architecture="encoder_only", task="tagging"),
        config(architecture="cbow", task="word_vectors"),
    ],
    ids=["output", "recurrent", "language model", "tagging", "word vectors"],
)
def test_two_vocabularies_are_as_good_for_other_models(model: ModelConfig) -> None:
    check_one_vocabulary(model, shared=False)
    build(model, source_vocab=9, target_vocab=10)


def test_characters_are_read_by_models_that_read_characters_alone() -> None:
    """A table of all characters would fit into memory on some machines, and into no one's intentions."""
    characters, pieces = (train(["ab"], TokenizerConfig(kind=kind, min_frequency=1)) for kind in ("codepoint", "char"))
    plain, canine = config(tie="output"), config(tie="output", canine={})
    check_character_tokenizers(plain, pieces, pieces, flat=True)
    check_character_tokenizers(canine, characters, pieces, flat=False)
    for model, source, target, flat, reason in (
        (plain, characters, pieces, False, r"it is for models with \[model.canine\]"),
        (canine, pieces, pieces, False, 'make the dataset with tokenizer.kind = "codepoint"'),
        (canine, characters, characters, False, "no model writes one of all characters"),
        (plain, characters, characters, False, "no model writes one of all characters"),
        (canine, characters, pieces, True, 'training.layout = "flat"'),
    ):
        with pytest.raises(RecipeError, match=reason):
            check_character_tokenizers(model, source, target, flat=flat)


def test_a_model_that_is_told_languages_needs_sources_that_begin_with_them() -> None:
    plain = train(["a dog"], TokenizerConfig(kind="word"))
    whole = tokenizers.Tokenizer.from_str(plain._backend.to_str())
    whole.add_special_tokens([tokenizers.AddedToken(each, special=True) for each in ("eng_Latn", "deu_Latn")])
    named, told, said = Tokenizer(whole), config(languages="m2m100"), [["eng-deu"], ["eng-deu"]]
    check_languages(told, named, said, flat=False)
    check_languages(config(), plain, [None, None], flat=True)
    for source, directions, flat, reason in (
        (plain, said, False, 'model.languages = "m2m100" needs a tokenizer with tokens for the languages of texts'),
        (plain.with_languages("deu"), said, False, "needs a tokenizer with tokens for the languages of texts"),
        (named, [["eng-deu"], None], False, "say which languages each corpus has"),
        (named, said, True, 'training.layout = "flat"'),
    ):
        with pytest.raises(RecipeError, match=reason):
            check_languages(told, source, directions, flat=flat)
