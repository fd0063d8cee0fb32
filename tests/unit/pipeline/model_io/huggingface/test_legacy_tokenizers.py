"""A folder whose tokenizer.json does not name the type of its model is imported as one that does."""

import json
from pathlib import Path

import pytest

from tests.huggingface_models import KINDS, published
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface
from tfm.pipeline.model_io.huggingface.importing import import_model
from tfm.pipeline.runtime.progress import NullReporter


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["GPT-2", "masked", "pre-norm", "Llama, grouped heads"])
def test_its_pieces_and_weights_are_the_same(name: str, tmp_path: Path) -> None:
    theirs, made = tmp_path / "theirs", []
    theirs.mkdir()
    to_huggingface(published(tmp_path / "ours", **KINDS[name][1]), theirs, ModelCard())
    document = json.loads((theirs / "tokenizer.json").read_text("utf-8"))
    untyped = {key: value for key, value in document["model"].items() if key != "type"}
    for number, each in enumerate((document, {**document, "model": untyped})):
        (theirs / "tokenizer.json").write_text(json.dumps(each), "utf-8")
        out = tmp_path / f"out-{number}"
        import_model(theirs, out, command=["tfm", "import"], reporter=NullReporter())
        made.append([(out / file).read_bytes() for file in ("tokenizer.json", "model.safetensors", "config.json")])
    assert "type" not in each["model"]
    assert made[0] == made[1]
