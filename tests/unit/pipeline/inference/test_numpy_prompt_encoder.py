"""Texts of a language model without torch: those of torch, drawn or searched for, of lines and running text."""

from typing import Any

import pytest
import torch

from tests.tiny_model import numpy_language_model, tiny_model
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding import decode as decoding
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.inference.generation.generator import TextGenerator
from tfm.pipeline.inference.generation.numpy_prompt_encoder import (
    MAX_NUMPY_PIECES,
    MAX_NUMPY_TEXTS,
    NumpyPromptEncoder,
    supports_numpy_generation,
)
from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.special import EOS_ID

BASE: dict[str, Any] = {"architecture": "decoder_only", "task": "language_model", "dtype": torch.float64}
PROMPTS = ["a dog", "", "the sea is cold !", "a dog runs through the snow ."]
SETTINGS: dict[str, dict[str, Any]] = {
    "drawn": {"strategy": "sample", "n_best": 4, "seed": 3},
    "cold": {"strategy": "sample", "n_best": 2, "temperature": 0.3},
    "of the best": {"strategy": "sample", "n_best": 3, "top_k": 5, "seed": 8},
    "of the nucleus": {"strategy": "sample", "n_best": 3, "top_p": 0.7, "temperature": 1.4},
    "of both": {"strategy": "sample", "n_best": 3, "top_p": 0.9, "top_k": 9, "length_norm": "wu"},
    "likeliest": {"beam": 1},
    "not drawn": {"strategy": "sample", "temperature": 0.0},
    "at least": {"strategy": "sample", "n_best": 3, "min_length": 9, "max_length": 11},
}
SEARCHES: dict[str, dict[str, Any]] = {
    "beam": {"beam": 4, "n_best": 4, "max_length": 9},
    "few of many": {"beam": 5, "n_best": 2, "length_norm": "average", "min_length": 3, "max_length": 12},
}


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "num_workers", lambda *_: 0)


def make_model(**changes: Any) -> LoadedModel:
    loaded = tiny_model(positions="rotary", activation="gelu", **BASE | {"max_length": 24} | changes)
    with torch.no_grad():
        loaded.model.output.weight[EOS_ID].mul_(3)  # so that texts end at different lengths
    return loaded


LINES, RUNNING = make_model(), make_model(block=12)


def assert_same_texts(loaded: LoadedModel, config: DecodingConfig) -> list[int]:
    """Compare the texts of both; the numbers of their tokens."""
    ours = NumpyPromptEncoder(
        numpy_language_model(loaded), loaded.config, loaded.target_tokenizer, loaded.folder, continue_past_line_end=None
    )
    both = [TextGenerator(reader, config, NullReporter()) for reader in (ours, PromptEncoder(loaded))]
    lengths = []
    for prompt in PROMPTS if loaded is RUNNING else PROMPTS[:3]:
        found, wanted = (writer.generate_texts(prompt) for writer in both)
        assert [each.text for each in found] == [each.text for each in wanted]
        assert [each.num_tokens for each in found] == [each.num_tokens for each in wanted]
        assert [each.log_prob for each in found] == pytest.approx([each.log_prob for each in wanted], abs=1e-9)
        assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-9)
        lengths += [each.num_tokens for each in found]
        if config.n_best == 1 and not both[0].searches:
            assert "".join(both[0].stream(prompt)) == "".join(both[1].stream(prompt))
    return lengths


def test_few_texts_after_several_prompts_are_written_by_numpy() -> None:
    config = DecodingConfig(strategy="sample", max_length=MAX_NUMPY_PIECES // 16, n_best=2)
    assert supports_numpy_generation(config, 8)
    assert not supports_numpy_generation(config, 9)
    assert supports_numpy_generation(config.model_copy(update={"max_length": 10 * MAX_NUMPY_PIECES}), 1)


def test_texts_beside_others_are_those_after_a_prompt_alone() -> None:
    ours = NumpyPromptEncoder(
        numpy_language_model(LINES), LINES.config, LINES.target_tokenizer, LINES.folder, continue_past_line_end=None
    )
    writer = TextGenerator(ours, DecodingConfig(strategy="sample", n_best=2, max_length=9), NullReporter())
    prompts = ["a dog", "the sea", "", "a cat", "a dog"]
    for found, prompt in zip(writer.generate_batch(prompts), prompts, strict=True):
        assert found == writer.generate_texts(prompt)


@pytest.mark.parametrize("loaded", [LINES, RUNNING], ids=["lines", "running text"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.few(3)
def test_texts_are_those_of_torch(settings: dict[str, Any], loaded: LoadedModel) -> None:
    if loaded is RUNNING:  # as long as max_length, whatever min_length would say
        settings = {"max_length": 40} | {key: value for key, value in settings.items() if key != "min_length"}
    config = DecodingConfig(**settings)
    assert supports_numpy_generation(config)
    lengths = assert_same_texts(loaded, config)
    assert max(lengths) > 3


@pytest.mark.parametrize("settings", SEARCHES.values(), ids=SEARCHES)
def test_searched_texts_are_those_of_torch(settings: dict[str, Any]) -> None:
    config = DecodingConfig(**settings)
    assert supports_numpy_generation(config)
    assert len(set(assert_same_texts(LINES, config))) > 1


@pytest.mark.parametrize(
    "settings",
    [
        {"strategy": "sample", "n_best": MAX_NUMPY_TEXTS + 1},
        {"beam": MAX_NUMPY_TEXTS + 1},
        {"beam": 2, "n_best": 3},
        {"no_repeat_ngram": 2},
        {"forbidden": ("sea",)},
        {"forced": ("sea",), "beam": 2},
        {"precision": "bf16"},
    ],
    ids=str,
)
def test_settings_that_numpy_does_not_know_are_left_to_torch(settings: dict[str, Any]) -> None:
    assert not supports_numpy_generation(DecodingConfig(**settings))


def test_problems_are_said_as_by_torch() -> None:
    ours = NumpyPromptEncoder(
        numpy_language_model(LINES), LINES.config, LINES.target_tokenizer, LINES.folder, continue_past_line_end=True
    )
    with pytest.raises(RecipeError, match="beam search needs an end"):
        TextGenerator(ours, DecodingConfig(beam=2), NullReporter())
    with pytest.raises(RecipeError, match="forced words need beam search"):
        TextGenerator(ours, DecodingConfig(beam=1), NullReporter()).generate_texts("a dog", ["sea"])
    with pytest.raises(DataError, match="cannot spell"):
        TextGenerator(ours, DecodingConfig(beam=1), NullReporter()).generate_texts("\u5bb6")
    with pytest.raises(DataError, match="is not a language model"):
        NumpyPromptEncoder(
            numpy_language_model(LINES),
            tiny_model().config,
            LINES.target_tokenizer,
            LINES.folder,
            continue_past_line_end=None,
        )


def test_weights_that_are_no_numbers_are_an_error() -> None:
    broken = make_model()
    with torch.no_grad():
        broken.model.norm.weight.fill_(torch.nan)
    ours = NumpyPromptEncoder(
        numpy_language_model(broken), broken.config, broken.target_tokenizer, broken.folder, continue_past_line_end=None
    )
    for config in (DecodingConfig(strategy="sample"), DecodingConfig(beam=3)):
        with pytest.raises(DataError, match="no finite probabilities"):
            TextGenerator(ours, config, NullReporter()).generate_texts("a dog")
