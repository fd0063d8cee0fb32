"""A training that starts from a model: what it takes of the model's shape, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.recording_reporter import Listening
from tests.tiny_training import MODEL, STACK, WHOLE_WORDS, run, training, write_dataset
from tfm.model.config import DropoutConfig, ModelConfig
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.training.init_from import config_from_pretrained

STILL = {"max_steps": 1, "schedule": {"name": "constant", "peak": 1e-30, "warmup_steps": 0}}
STILL |= {"validation": {"every_steps": 1, "bleu": False}}
OTHER = {"norm": "post", "activation": "gelu", "positions": "learned", "tie": "output", "scale_embedding": False}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset")


@pytest.fixture(scope="module")
def first(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = ModelConfig.model_validate({**MODEL.model_dump(), **OTHER})
    return run(dataset, tmp_path_factory.mktemp("first"), training(**STILL), model=model)


def test_the_shape_that_a_recipe_does_not_name_is_that_of_the_model(first: Path, dataset: Path, tmp_path: Path) -> None:
    model = ModelConfig(dropout=DropoutConfig(residual=0.3))
    second = run(dataset, tmp_path, training(**STILL, init_from=str(first)), model=model)
    expected, found = (load_model(each, "cpu").config for each in (first, second))
    assert found == expected.model_copy(update={"dropout": model.dropout})
    weights = [load_file(each / "model.safetensors") for each in (first, second)]
    assert all(torch.allclose(weights[0][name], weights[1][name], rtol=0, atol=1e-20) for name in weights[0])
    again = Listening()
    run(dataset, tmp_path, training(**STILL, init_from=str(first)), model=model, reporter=again)
    assert "up to date" in again.lines[0]


@pytest.mark.parametrize(
    ("named", "key"),
    [
        ({"norm": "pre"}, "norm = 'pre'"),
        ({"encoder": {"dim": 32}, "embedding_dim": 16}, "embedding_dim"),
        ({"decoder": {"layers": 2}}, "decoder.layers = 2"),
        ({"architecture": "recurrent"}, "architecture = 'recurrent'"),
        ({"adaptive": {"factor": 2}}, "adaptive.factor = 2"),
        ({"max_length": 64}, "max_length = 64"),  # of positions that are learned
    ],
)
def test_another_shape_is_refused_by_its_key(first: Path, named: dict[str, Any], key: str) -> None:
    with pytest.raises(RecipeError, match=rf"model\.{key}.*remove it"):
        config_from_pretrained(open_artifact(first, "train"), ModelConfig.model_validate(named))


def test_the_same_shape_may_be_named(first: Path) -> None:
    model = ModelConfig.model_validate(
        {"encoder": STACK, "decoder": {"layers": 1}, "embedding_dim": 16} | {"tie": "output"}
    )
    with pytest.raises(RecipeError, match=r"embedding_dim = 16"):  # which is not none, though as wide
        config_from_pretrained(open_artifact(first, "train"), model)
    named = ModelConfig.model_validate({"decoder": {"layers": 1}, "norm": "post", "tie": "output", "adaptive": None})
    assert config_from_pretrained(open_artifact(first, "train"), named) == load_model(first, "cpu").config.model_copy(
        update={"dropout": DropoutConfig()}
    )


def test_a_model_of_another_task_does_not_say_what_is_learned(dataset: Path, tmp_path: Path) -> None:
    texts = MODEL.model_copy(update={"architecture": "decoder_only", "task": "language_model"})
    first = run(dataset, tmp_path / "first", training(**STILL), model=texts)
    with pytest.raises(RecipeError, match=r"learned language_model: set model\.task"):
        run(dataset, tmp_path / "second", training(**STILL, init_from=str(first)), model=ModelConfig())
    said, model = Listening(), ModelConfig(architecture="decoder_only", task="translation", dropout=MODEL.dropout)
    second = run(dataset, tmp_path / "second", training(**STILL, init_from=str(first)), model=model, reporter=said)
    assert f"training: begins with all weights of {first} (language_model)" in said.lines
    weights = [load_file(each / "model.safetensors") for each in (first, second)]
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.allclose(weights[0][name], weights[1][name], rtol=0, atol=1e-20) for name in weights[0])
    other = write_dataset(tmp_path / "dataset", words="eins zwei drei vier fünf sechs sieben acht neun zehn")
    with pytest.raises(DataError, match=r"with the model's \(`tfm preprocess --tokenizer "):
        run(other, tmp_path / "third", training(**STILL, init_from=str(first)), model=model)


@pytest.mark.parametrize("tie", ["all", "none"])
def test_a_model_with_an_encoder_alone_takes_that_of_an_encoder_decoder(tie: str, tmp_path: Path) -> None:
    pieces = WHOLE_WORDS.model_copy(update={"sentinels": 4})
    dataset = write_dataset(tmp_path / "dataset", pieces=pieces)
    spans = {**MODEL.model_dump(), "task": "span_corruption", "norm": "post", "tie": tie, "positions": "rotary"}
    model = ModelConfig.model_validate({**spans, "encoder": {**STACK.model_dump(), "layers": 2}})
    first = run(dataset, tmp_path / "first", training(**STILL), model=model)
    alone = ModelConfig(architecture="encoder_only", task="masked_language_model", tie="none", dropout=MODEL.dropout)
    said = Listening()
    second = run(dataset, tmp_path / "second", training(**STILL, init_from=str(first)), model=alone, reporter=said)
    assert any("begins with the encoder of" in line and "(span_corruption)" in line for line in said.lines)
    config = load_model(second, "cpu").config
    assert (config.encoder, config.norm, config.positions) == (model.encoder, "post", "rotary")
    assert (config.tie, config.architecture) == ("none", "encoder_only")
    given, taken = (load_file(each / "model.safetensors") for each in (first, second))
    taken = {name: weight for name, weight in taken.items() if not name.startswith(("output", "head"))}
    kept = {f"source_{name}" if name.startswith("embedding") else name: weight for name, weight in taken.items()}
    assert {name for name in given if name.startswith(("encoder", "source_"))} == kept.keys()
    assert len(kept) > 12
    assert all(torch.allclose(given[name], kept[name], rtol=0, atol=1e-20) for name in kept)
