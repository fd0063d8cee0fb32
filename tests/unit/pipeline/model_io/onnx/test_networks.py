"""The graphs of a model compute what it does: whatever its parts, beside other texts, at once or step by step."""

from pathlib import Path
from typing import Any

import pytest

from tests.huggingface_models import our_logits, published
from tests.onnx_models import MODELS, in_float64, onnx_logits, onnxruntime, sessions_of
from tests.rounding import assert_rounds_like
from tfm.pipeline.errors import RecipeError

SOURCE, TARGET = [5, 6, 7, 8, 20, 9], [9, 10, 30, 12]
QUICK = (
    "post-norm, untied, GELU",
    "rotary, RMS, norms of queries and keys",
    "stacks of two widths, post-norm",
    "GPT-2, scaled, tanh",
    "GPT-2 that translates",
    "Llama, grouped heads",
    "Llama 3.1",
    "classifier, max",
    "masked language model, as BERT",
)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] * (each not in QUICK)) for each in MODELS]
)
def test_logits_are_those_of_the_model(name: str, tmp_path: Path) -> None:
    """Also with padding on either side and a longer text beside, and where the target comes in parts."""
    ours = published(tmp_path / "model", **MODELS[name])
    sessions, exact = sessions_of(ours), in_float64(ours)
    plain, wanted = our_logits(ours, SOURCE, TARGET), our_logits(exact, SOURCE, TARGET)
    assert wanted.std() > 0.1
    for around in ({}, {"right": 3}, {"left": 4}, {"left": 1, "right": 2, "parts": (2, 3)}):
        found = onnx_logits(sessions, ours, SOURCE, TARGET, **around)  # type: ignore[arg-type]
        assert_rounds_like(found, plain, wanted)


def test_a_tied_table_is_stored_once(tmp_path: Path) -> None:
    onnxruntime()
    from tfm.pipeline.model_io.onnx.networks import build_graphs

    tied, untied = (published(tmp_path / tie, tie=tie) for tie in ("all", "none"))
    sizes = []
    for ours in (tied, untied):
        decoder = build_graphs(ours.model, ours.config)["decoder"]
        sizes.append(sum(list(each.dims) in ([60, 16], [16, 60]) for each in decoder.graph.initializer))
    assert sizes == [1, 2]


def test_weights_beyond_two_gibibytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnxruntime()
    from tfm.pipeline.model_io.onnx import graph
    from tfm.pipeline.model_io.onnx.networks import build_graphs

    ours: Any = published(tmp_path / "model")
    monkeypatch.setattr(graph, "MAX_MODEL_BYTES", 1000)
    with pytest.raises(RecipeError, match=r"the weights of the encoder take .* holds 2 GiB at most"):
        build_graphs(ours.model, ours.config)
