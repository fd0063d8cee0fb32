"""What a model that reads characters attends to: the rows that they become, under the characters of each."""

from pathlib import Path

import numpy as np
import pytest

from tests.character_models import CANINE, STACK
from tests.tiny_model import tiny_model
from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.pipeline.attention_page.head_statistics import measure_heads
from tfm.pipeline.attention_page.reading import trace_text
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train

TEXT = "रानी \U0001f469\u200d\U0001f52c, x"  # ten characters: with the end token four rows of three
ROWS = ["रान", "ी␣\U0001f469", "\\u200d\U0001f52c,", "␣x</s>"]


def loaded(**about: object) -> LoadedModel:
    config = ModelConfig.model_validate(
        {"encoder": STACK, "decoder": STACK, "max_length": 40, "canine": CANINE, **about}
    )
    source, target = train([], TokenizerConfig(kind="codepoint")), tiny_model().target_tokenizer
    sizes = {"source_vocab": source.vocab_size, "target_vocab": target.vocab_size}
    return LoadedModel(build(config, **sizes, seed=1).eval(), source, target, config, Path("characters"))


def test_a_translation_attends_to_rows_of_characters() -> None:
    read = trace_text(loaded(tie="output"), TEXT, "a dog", DecodingConfig(beam=1))
    assert [each.text for each in read.axes["cross"].keys] == ROWS
    assert [each.text for each in read.axes["encoder"].queries] == ROWS
    assert [len(read.layers(kind)) for kind in ("encoder", "decoder", "cross")] == [2, 2, 2]
    for each in read.attentions:
        axes = read.axes[each.kind]
        assert each.weights.shape == (2, len(axes.queries), len(axes.keys))
        np.testing.assert_allclose(each.weights.sum(2), 1, atol=1e-5)


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_so_do_those_that_label(task: str) -> None:
    read = trace_text(loaded(architecture="encoder_only", task=task), TEXT, None, DecodingConfig())
    assert [each.text for each in read.axes["encoder"].keys] == ROWS
    assert [each.weights.shape for each in read.attentions] == [(2, 4, 4)] * 2


def test_a_head_report_is_refused_as_rows_are_of_no_word(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text(TEXT, "utf-8")
    with pytest.raises(RecipeError, match="rows of characters, which are of no one word"):
        measure_heads(loaded(tie="output"), [tmp_path / "some.txt"], DecodingConfig(), NullReporter())
