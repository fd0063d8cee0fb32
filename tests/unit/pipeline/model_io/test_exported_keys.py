"""The law of exports: with any value of any key of [model], a model is exported as it computes, or it is refused."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.huggingface_models import KINDS, our_logits, published, their_logits
from tests.invariants.test_recipe_keys import MODEL
from tests.onnx_models import in_float64, onnx_logits, sessions_of
from tests.rounding import assert_rounds_like
from tests.tiny_model import STACK
from tests.unit.pipeline.model_io.huggingface.test_export import SOURCE, TARGET, theirs
from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.huggingface import registry
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.model_io.onnx import supported

ROTARY: dict[str, tuple[object, ...]] = {
    "rotary.base": (500.0,),
    "rotary.factor": (4.0,),
    "rotary.original_length": (30,),
    "encoder.layers": (1, 3),
    "decoder.layers": (1, 3),
}
VALUES = MODEL | ROTARY


def config_of(changes: dict[str, Any]) -> ModelConfig:
    return ModelConfig.model_validate({"encoder": STACK, "decoder": STACK, "max_length": 96} | changes)


def each_model(kind: str) -> Iterator[tuple[str, dict[str, Any], ModelConfig]]:
    """What a model of this kind can have otherwise, one key at a time: a label, what changes, the whole."""
    changes = KINDS[kind][1]
    for key, values in VALUES.items():
        table, _, name = key.rpartition(".")
        before = getattr(config_of(changes), table) if table else None
        for value in values:
            one = {table: ({} if before is None else before.model_dump()) | {name: value}} if table else {name: value}
            with suppress(ValidationError):  # no model has that
                yield f"model.{key} = {value}", changes | one, config_of(changes | one)


def as_onnx(ours: LoadedModel, folder: Path) -> Any:
    return onnx_logits(sessions_of(ours), ours, SOURCE, TARGET)


def as_transformers(ours: LoadedModel, folder: Path) -> Any:
    folder.mkdir()
    to_huggingface(ours, folder, ModelCard())
    return their_logits(theirs(folder), ours, SOURCE, TARGET)


EXPORTS: dict[str, tuple[Callable[[ModelConfig], bool], Callable[[LoadedModel, Path], Any]]] = {
    "onnx": (lambda config: supported.unsupported_reason(config) is None, as_onnx),
    "transformers": (lambda config: registry.find_export_class(config) is not None, as_transformers),
}
QUICK = (("pre-norm", "onnx"), ("Llama 3.1", "onnx"), ("masked", "transformers"))
CASES = [
    pytest.param(kind, library, marks=[pytest.mark.slow] * ((kind, library) not in QUICK))
    for kind in KINDS
    for library in EXPORTS
]


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize(("kind", "library"), CASES)
def test_every_key_is_in_the_exported_model_or_refused(kind: str, library: str, tmp_path: Path) -> None:
    holds, exported_logits = EXPORTS[library]
    done, refused, wrong = 0, 0, []
    for number, (label, changes, config) in enumerate(each_model(kind)):
        if not holds(config):
            refused += 1
            continue
        ours = published(tmp_path / f"{number}", **changes)
        found = exported_logits(ours, tmp_path / f"{number}-out")
        done += 1
        try:
            assert_rounds_like(found, our_logits(ours, SOURCE, TARGET), our_logits(in_float64(ours), SOURCE, TARGET))
        except AssertionError as error:
            wrong.append(f"{label}: {error}")
    assert not wrong, "\n".join(wrong)
    assert done >= 5
    assert refused
