"""Unknown words of translations: each becomes the word of the source that it is aligned to."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.tiny_model import TEXTS, tiny_model
from tfm.pipeline.attention_page.reading import trace_attention
from tfm.pipeline.config import DecodingConfig, GuidedAlignmentConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.inference.translation import translate_lines
from tfm.pipeline.inference.unknown_words import UnknownWordReplacer
from tfm.pipeline.model_io.ensemble import Ensemble
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.serving.dispatch.messages import ModelVersion, Query
from tfm.pipeline.serving.engine.networks import TorchNetwork
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.train import train

LINES = ["two zebras sit by the Danube , asleep .", "a dog", "", "Kasimir runs through the snow", "zebras"]
SAMPLES = DecodingConfig(strategy="sample", n_best=6, max_length=8, seed=5, temperature=3)
GUIDED = GuidedAlignmentConfig(links="links", layer=1)


def word_model(guided: GuidedAlignmentConfig | None = None) -> LoadedModel:
    """A model of words in float64, to which an unknown one is more probable than the full stop."""
    tokenizer = train(TEXTS, TokenizerConfig(kind="word", vocab_size=16, min_frequency=1))
    loaded = tiny_model(dtype=torch.float64, tokenizer=tokenizer)
    with torch.no_grad():
        table = loaded.model.output.weight
        table[UNK_ID] = 1.5 * table[tokenizer.encode(".")[0]]
    return LoadedModel(loaded.model, tokenizer, tokenizer, loaded.config, loaded.folder, guided=guided)


def write_plainly(loaded: LoadedModel, source: str, ids: list[int]) -> str:
    """The text by a loop over its words, from the weights that the page of attention shows."""
    crossing = trace_attention(loaded, source, loaded.source_tokenizer.encode(source), ids).layers("cross")
    if loaded.guided is None:
        weights, shift = crossing[-1].weights.astype(np.float64).mean(0), 0
    else:
        weights, shift = crossing[0].weights[0], 1
    words = source.split()
    return " ".join(
        words[int(weights[place + shift, : len(words)].argmax())]
        if number == UNK_ID
        else loaded.target_tokenizer.surface(number).strip()
        for place, number in enumerate(ids)
    )


def translated(loaded: LoadedModel, config: DecodingConfig, lines: list[str] = LINES) -> list[list[str]]:
    found = translate_lines(loaded, lines, config, reporter=NullReporter())
    return [[each.text for each in n_best] for n_best in found]


@pytest.mark.parametrize("guided", [None, GUIDED])
def test_translations_are_those_of_a_plain_loop(guided: GuidedAlignmentConfig | None) -> None:
    loaded = word_model(guided)
    lines = LINES * 3
    sources = loaded.source_tokenizer.encode_batch(lines)
    drawn = iter(decode(loaded.model, sources, SAMPLES.model_copy(update={"n_best": 1}), device=torch.device("cpu")))
    found = translated(loaded, SAMPLES.model_copy(update={"n_best": 1, "replace_unknown": True}), lines)
    unknown = 0
    for line, (text,) in zip(lines, found, strict=True):
        ids = list(next(drawn)[0].ids)
        if not line:
            assert text == ""
            continue
        unknown += ids.count(UNK_ID)
        assert text == write_plainly(loaded, line, ids)
    assert unknown > 3


def test_texts_without_unknown_words_stay_as_they_are() -> None:
    loaded = word_model()
    replaced, plain = (translated(loaded, SAMPLES.model_copy(update={"replace_unknown": on})) for on in (True, False))
    assert replaced != plain
    replacer = UnknownWordReplacer(loaded)
    known = loaded.target_tokenizer.encode("a dog .")
    assert replacer.replace_unknown(["zebras", "zebras"], [known, [*known, UNK_ID]]) == {1: "a dog . zebras"}
    for line, some in zip(LINES, replaced, strict=True):
        tokenizer = loaded.target_tokenizer
        vocabulary = {tokenizer.surface(number).strip() for number in range(tokenizer.vocab_size)}
        assert {word for text in some for word in text.split()} <= vocabulary | {*line.split()}


@pytest.mark.slow
def test_a_translation_does_not_depend_on_its_batch() -> None:
    loaded, config = (
        word_model(),
        SAMPLES.model_copy(update={"strategy": "search", "beam": 6, "temperature": 1.0, "replace_unknown": True}),
    )
    together = translated(loaded, config)
    assert together != translated(loaded, config.model_copy(update={"replace_unknown": False}))
    assert together == translated(loaded, config.model_copy(update={"batch_sentences": 1}))
    assert together == [some for line in LINES for some in translated(loaded, config, [line])]
    ids = [loaded.target_tokenizer.encode(f"zebras {line} zebras") for line in LINES]
    replacer = UnknownWordReplacer(loaded)
    assert replacer.replace_unknown(LINES, ids) == {
        row: text
        for row in range(len(LINES))
        for text in replacer.replace_unknown(LINES[row : row + 1], ids[row : row + 1]).values()
    }


def test_a_dictionary_translates_words() -> None:
    loaded = word_model()
    ids = [[UNK_ID]]
    assert UnknownWordReplacer(loaded).replace_unknown(["zebras"], ids) == {0: "zebras"}
    assert UnknownWordReplacer(loaded, {"zebras": "Zebras"}).replace_unknown(["zebras"], ids) == {0: "Zebras"}
    assert UnknownWordReplacer(loaded, {"dogs": "Hunde"}).replace_unknown(["zebras"], ids) == {0: "zebras"}


def test_models_of_other_pieces_and_ensembles_are_refused() -> None:
    config = DecodingConfig(replace_unknown=True)
    with pytest.raises(RecipeError, match="is for vocabularies of words"):
        translated(tiny_model(), config)
    loaded = word_model()
    both: Any = Ensemble([loaded.model, loaded.model])
    with pytest.raises(RecipeError, match="an ensemble has no one attention"):
        UnknownWordReplacer(LoadedModel(both, *[loaded.target_tokenizer] * 2, loaded.config, loaded.folder))


def test_settings_say_so_only_where_it_is_asked_for() -> None:
    assert "replace_unknown" not in DecodingConfig().as_json()
    assert DecodingConfig(replace_unknown=True).as_json()["replace_unknown"] is True


def test_a_server_copies_words_where_it_is_asked_to() -> None:
    loaded = word_model()
    line = "zebras sit by the Danube"
    version = ModelVersion("words", loaded.folder, "1", "translation")
    network = TorchNetwork(version, loaded, None)
    config = DecodingConfig(beam=4, n_best=4, batch_sentences=1, replace_unknown=True)
    wanted = next(iter(translate_lines(loaded, [line], config, reporter=NullReporter())))
    work: Any = network.make_work(Query(version.key, "translate", line, beam=4, n_best=4, replace_unknown=True))
    assert [record[0] for record in work()] == [each.text for each in wanted]
    assert any("zebras" in each.text or "Danube" in each.text for each in wanted)
    pieces = replace(loaded, target_tokenizer=tiny_model().target_tokenizer)
    plain: Any = TorchNetwork(version, pieces, None).make_work(
        Query(version.key, "translate", "a dog", replace_unknown=True)
    )
    assert len(plain()) == 1
