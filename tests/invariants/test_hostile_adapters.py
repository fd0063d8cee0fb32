"""Adapters and word vectors made to harm, every checksum in order: refused in a line by what reads a model folder."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

import tfm as tfm_api
from tests import hostile
from tests.cli.user import tfm
from tests.huggingface_models import published
from tests.quick import third, thirds
from tests.tiny_artifact import signed
from tfm.data.errors import DataError
from tfm.pipeline.model_io.adapter import SETTINGS_FILE, WEIGHTS_FILE, AdapterSettings, save_adapter
from tfm.pipeline.model_io.vector_files import read_vectors

pytestmark = pytest.mark.promise("hostile")
Record = Callable[[str, object], None]
LAYER = "encoder.0.attention.query_key_value"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model with an adapter beside it."""
    monkeypatch.chdir(tmp_path)
    published(tmp_path / "model")
    rows, columns = safetensors.torch.load_file(tmp_path / "model" / "model.safetensors")[f"{LAYER}.weight"].shape
    adapters = {f"{LAYER}.a": torch.ones(2, columns), f"{LAYER}.b": torch.ones(rows, 2)}
    save_adapter(tmp_path / "model", adapters, AdapterSettings(rank=2, alpha=4))
    signed(tmp_path / "model")
    (tmp_path / "text").write_text("a dog\n", "utf-8")
    return tmp_path / "model"


DOORS = (("translate", "model", "text"), ("export", "model", "--to", "huggingface", "--out", "out"))


def all_refused(model: Path, names: str) -> None:
    signed(model)
    for words in DOORS:
        result = tfm(*words)
        assert result.code == 65, result
        assert names in result.err
        assert len(result.err) < 1000
    assert not (model.parent / "out").exists()
    with pytest.raises(DataError, match=names):
        tfm_api.load(model, device="cpu")


def test_an_adapter_is_read_by_each_door(model: Path) -> None:
    for words in DOORS:
        assert tfm(*words).code == 0


@thirds
def test_weights_of_adapters(model: Path, tmp_path: Path, number: int, record_property: Record) -> None:
    marker = tmp_path / "it ran"
    known = {"nothing in it", "a name of a million characters"}  # the first adapts nothing
    others = {
        "another layer": safetensors.torch.save({"x.a": torch.ones(2, 2), "x.b": torch.ones(2, 2)}),
        "half": safetensors.torch.save({f"{LAYER}.a": torch.ones(2, 16)}),
        "wide": safetensors.torch.save({f"{LAYER}.a": torch.ones(2, 5), f"{LAYER}.b": torch.ones(5, 2)}),
        "numbers": safetensors.torch.save({f"{LAYER}.a": torch.ones(()), f"{LAYER}.b": torch.ones(())}),
    }
    for kind, data in third({**hostile.WEIGHTS, **hostile.pickles(marker), **others}, number).items():
        if kind not in known:
            (model / WEIGHTS_FILE).write_bytes(data)
            with pytest.raises(DataError, match="model"):
                tfm_api.load(signed(model), device="cpu")
            record_property("files", 1)
    all_refused(model, "model")
    assert not marker.exists()


@pytest.mark.few(3)
@pytest.mark.parametrize("value", [-1, 0, 10**400, float("nan"), float("inf"), None, [], {}, "x"], ids=range(9))
@pytest.mark.parametrize("key", ["rank", "alpha"])
def test_settings_of_adapters(model: Path, key: str, value: object) -> None:
    (model / SETTINGS_FILE).write_text(json.dumps({"rank": 2, "alpha": 4.0, key: value}), "utf-8")
    all_refused(model, "adapter.json")


VECTORS = {
    "a count of 5,000 digits": b"9" * 5000 + b" 2\na 1 2\n",
    "a width of 5,000 digits": b"1 " + b"9" * 5000 + b"\na 1 2\n",
    "a terabyte of vectors": b"1000000000000 2\na 1 2\n",
    "another width": b"1 1000000\na 1 2\n",
    "beyond fp32": b"a 1e39 2\n",
    "beyond fp64": b"a 1e999 2\n",
    "no number": b"a nan 2\n",
    "words for numbers": b"a b c\n",
    "word2vec's binary form": b"1 2\na \x00\x00\x80\xbf\xff\xff\xff\xff\n",
    "NUL": b"\0" * 100,
    "a line without an end": b"a " * 10_000_000,
    "a pickle": hostile.pickles(Path("marker"))["pickle"],
    "not UTF-8": b"\xff\xfe 1 2\n",
}


@pytest.mark.parametrize("what", VECTORS)
def test_word_vectors(what: str, tmp_path: Path, record_property: Record) -> None:
    (tmp_path / "vectors.txt").write_bytes(VECTORS[what])
    with pytest.raises(DataError, match=r"vectors\.txt") as raised:
        read_vectors(tmp_path / "vectors.txt", 2, {"a", ""})
    assert len(str(raised.value)) < 500
    record_property("files", 1)
