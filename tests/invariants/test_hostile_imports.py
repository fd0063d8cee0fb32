"""Folders of transformers made to harm: refused in a line, soon, in little memory; nothing else is read or written."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import hostile, hostile_imports
from tests.cli.user import tfm
from tests.huggingface_models import KINDS, published
from tests.peak_memory import peak_of
from tests.quick import third, thirds
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface
from tfm.pipeline.model_io.huggingface.registry import IMPORT_CLASSES

pytestmark = pytest.mark.promise("hostile")
SECONDS = 20.0
MEMORY = 1536 * 2**20
Record = Callable[[str, object], None]
KIN = {"M2M100ForConditionalGeneration": "pre-norm", "MBartForConditionalGeneration": "pre-norm"}
"""What a class that is imported alone is made of here: a folder of a class whose files have the same keys."""
NAMES = [each.name for each in IMPORT_CLASSES]
OWN = {class_name for class_name, _ in KINDS.values()}
"""Classes whose folders here could be imported."""
REASONS = ("a width of", "does not use", "its positions are", "do not fit", "it has no", "must divide")
"""In messages that do not name the key, but what of the weights does not fit it."""


def kind_of(name: str) -> str:
    """The kind of a tiny model whose folder has the keys and files of a class."""
    own = next((kind for kind, (class_name, _) in KINDS.items() if class_name == name), None)
    task = "tagger" if "Token" in name else "classifier" if "Sequence" in name else "masked"
    return (
        own or KIN.get(name) or {"tagger": "tagger, post-norm", "classifier": "classifier, post-norm"}.get(task, task)
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """By the name of a class a folder of it, made once."""
    base = tmp_path_factory.mktemp("made")

    def folder_of(name: str) -> Path:
        folder = base / name
        if not folder.exists():
            ours = published(base / f"{name} of ours", **KINDS[kind_of(name)][1])
            folder.mkdir()
            to_huggingface(ours, folder, ModelCard())
            config = json.loads((folder / "config.json").read_text("utf-8"))
            (folder / "config.json").write_text(json.dumps(config | {"architectures": [name]}), "utf-8")
        return folder

    return folder_of


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def copied(folder: Path, base: Path) -> Path:
    """A fresh copy of a folder, as `theirs`."""
    shutil.rmtree(base / "theirs", ignore_errors=True)
    return shutil.copytree(folder, base / "theirs")


def refused(base: Path) -> str:
    """What an import says that is refused."""
    began = time.monotonic()
    result = tfm("import", "theirs", "--out", "out")
    assert result.code == 65, result
    assert "theirs" in result.err
    assert len(result.err) < 1500
    assert time.monotonic() - began < SECONDS
    assert not (base / "out").exists()
    return result.err


def some(changes: Iterator[tuple[str, dict[str, object]]], name: str) -> list[tuple[str, dict[str, object]]]:
    """A few of the changes, others for each class: all of them are tried by the slow test."""
    return list(changes)[NAMES.index(name) :: 23]


@pytest.mark.few(7)
@pytest.mark.parametrize("name", NAMES)
def test_values_of_configs(name: str, made: Callable[[str], Path], base: Path, record_property: Record) -> None:
    folder = copied(made(name), base)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for key, change in some(hostile_imports.changes_of(config), name):
        (folder / "config.json").write_text(json.dumps(change), "utf-8")
        said = refused(base)
        assert key in said or name not in OWN or any(reason in said for reason in REASONS), said
        record_property("files", 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_values_of_configs(name: str, made: Callable[[str], Path], base: Path) -> None:
    folder = copied(made(name), base)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for _, change in hostile_imports.changes_of(config):
        (folder / "config.json").write_text(json.dumps(change), "utf-8")
        refused(base)


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "BertForMaskedLM"])
def test_ids_in_generation_configs(name: str, made: Callable[[str], Path], base: Path) -> None:
    folder = copied(made(name), base)
    for value in hostile_imports.WRONG_IDS[:4]:
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": value}), "utf-8")
        assert "generation_config.json: eos_token_id = " in refused(base)


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"])
def test_documents_that_are_none(file: str, made: Callable[[str], Path], base: Path, record_property: Record) -> None:
    folder = copied(made("GPT2LMHeadModel"), base)
    for data in hostile_imports.DOCUMENTS.values():
        (folder / file).write_bytes(data)
        assert file in refused(base)
        record_property("files", 1)


@thirds
def test_weights(made: Callable[[str], Path], base: Path, tmp_path: Path, number: int, record_property: Record) -> None:
    folder = copied(made("GPT2LMHeadModel"), base)
    marker = tmp_path / "it ran"
    for data in third({**hostile.WEIGHTS, **hostile.pickles(marker)}, number).values():
        (folder / "model.safetensors").write_bytes(data)
        refused(base)
        record_property("files", 1)
    assert not marker.exists()


def test_tokenizers(made: Callable[[str], Path], base: Path, record_property: Record) -> None:
    for name in ("GPT2LMHeadModel", "BertForMaskedLM"):
        folder = copied(made(name), base)
        original = (folder / "tokenizer.json").read_bytes()
        for change in hostile_imports.TOKENIZERS.values():
            (folder / "tokenizer.json").write_text(json.dumps(change(json.loads(original))), "utf-8")
            refused(base)
            record_property("files", 1)


def bomb(folder: Path, what: str) -> None:
    """Make the folder one that would take all memory."""
    file, place = folder / "model.safetensors", folder / "config.json"
    config = json.loads(place.read_text("utf-8"))
    if what == "positions":
        place.write_text(json.dumps(config | {"max_position_embeddings": 10**7, "n_positions": 10**7}), "utf-8")
    elif what == "width":
        place.write_text(json.dumps(config | {"n_embd": 2**20, "d_model": 2**20, "hidden_size": 2**20}), "utf-8")
    elif what == "rows":
        hostile_imports.swollen(file, file, lambda name: "wte" in name or "shared" in name, [2**24, 16])
    elif what == "a norm":
        hostile_imports.swollen(file, file, lambda name: "norm" in name or "ln_" in name, [2**31])
    elif what == "a weight that is left out":
        data = json.loads(file.read_bytes()[8 : 8 + int.from_bytes(file.read_bytes()[:8], "little")])
        shapes = {name: each["shape"] for name, each in data.items() if name != "__metadata__"}
        header = hostile_imports.weights({**shapes, "x.attn.bias": [2**33]}, dtype="F16")
        file.write_bytes(header)
        os.truncate(file, len(header) + 2 * (2**33 + sum(map(_count, shapes.values()))))
    elif what == "lists":
        (folder / "tokenizer.json").write_bytes(hostile_imports.LISTS)
    elif what == "values":
        (folder / "tokenizer.json").write_bytes(_values(3_900_000))


def _count(shape: list[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _values(count: int) -> bytes:
    return b'{"model":{"vocab":{' + b",".join(b'"%x":%d' % (n, n) for n in range(count)) + b"}}}"


BOMBS = ("positions", "width", "rows", "a norm", "a weight that is left out", "lists", "values")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PegasusForConditionalGeneration", "GPT2LMHeadModel", "MarianMTModel"])
def test_memory_and_time_are_bounded(
    name: str, made: Callable[[str], Path], base: Path, record_property: Record
) -> None:
    copied(made(name), base)
    code, said, usual = peak_of(base, "import", "theirs", "--out", "good")
    assert code == 0, said
    for what in BOMBS:
        bomb(copied(made(name), base), what)
        began = os.times().children_user  # of a process of its own; others may use the processors too
        code, said, peak = peak_of(base, "import", "theirs", "--out", "out")
        assert code == 65, (what, said)
        assert peak - usual < MEMORY, (what, peak - usual)
        assert os.times().children_user - began < SECONDS, what
        record_property("files", 1)
