"""A model of transformers comes in by one command, and then does what a model of ours does."""

import json
from pathlib import Path

import pytest

from tests.cli.user import Stages, tfm
from tests.huggingface_models import KINDS, published
from tests.tiny_model import publish_model
from tfm.pipeline.artifacts.artifact import Plan, publish
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface


@pytest.mark.slow
def test_an_imported_model_translates_scores_attends_and_starts_a_training(
    stages: Stages, corpora: Path, tmp_path: Path
) -> None:
    out, back = tmp_path / "out", tmp_path / "back"
    assert tfm("export", stages.folder, "--to", "huggingface", "--out", out).code == 0
    made = tfm("import", out, "--out", back)
    assert made.code == 0, made.err
    assert "PegasusForConditionalGeneration" in made.err
    assert "nothing to do" in tfm("import", out, "--out", back).err
    manifest = json.loads((back / "manifest.json").read_text("utf-8"))
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {*manifest["inputs"]}

    both = stages.folder / "model", back
    translated = [tfm("translate", model, corpora / "test.de") for model in both]
    assert translated[0].out == translated[1].out
    assert translated[1].out.strip()
    test = ("--source", corpora / "test.de", "--reference", corpora / "test.en", "--json")
    scored = [json.loads(tfm("evaluate", "--model", model, *test).out) for model in both]
    assert scored[0]["metrics"] == scored[1]["metrics"]
    page = tfm("attend", back, "eins zwei", "--out", tmp_path / "page.html")
    assert page.code == 0, page.err
    assert tfm("inspect", back).code == 0

    pairs = {split: (corpora / f"{split}.de", corpora / f"{split}.en") for split in ("train", "valid", "test")}
    data = [word for split, files in pairs.items() for word in (f"--{split}", *files)]
    encoded = tfm("preprocess", *data, "--tokenizer", back, "--batch-tokens", "256", "--out", tmp_path / "dataset")
    assert encoded.code == 0, encoded.err
    trained = tfm(
        *("train", "--data", tmp_path / "dataset", "--init-from", back, "--max-steps", "2"),
        *("--device", "cpu", "--out", tmp_path / "run"),
    )
    assert trained.code == 0, trained.err


def test_an_imported_language_model_writes_on(tmp_path: Path) -> None:
    ours = published(tmp_path / "model", **KINDS["Llama, grouped heads"][1])
    (folder := tmp_path / "theirs").mkdir()
    to_huggingface(ours, folder, ModelCard())
    assert tfm("import", folder, "--out", tmp_path / "back").code == 0
    written = [
        tfm("generate", tmp_path / name, "--prompt", "a dog", "--temperature", "0", "--max-tokens", "9")
        for name in ("model", "back")
    ]
    assert written[1].code == 0, written[1].err
    assert written[0].out == written[1].out


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused = tfm("import", tmp_path / "empty", "--out", tmp_path / "back")
    assert refused.code == 65
    assert "has no config.json" in refused.err
    for name, problem in {
        "model.npz": "is a model of Marian: make one of transformers of it",
        "checkpoint_best.pt": "is a checkpoint of fairseq: make a model of transformers",
        "best.ckpt": "is a checkpoint of another program, as OpenNMT's or JoeyNMT's",
        "model.gguf": "is a model of llama.cpp (GGUF): give the folder that it was made from",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_bytes(b"")
        for place in (tmp_path / name, tmp_path / name / name):
            assert problem in tfm("import", place, "--out", tmp_path / "back").err
    (tmp_path / "empty" / "config.json").write_text('{"model_type": "t5"}', encoding="utf-8")
    refused = tfm("import", tmp_path / "empty", "--out", tmp_path / "back")
    assert refused.code == 65
    assert "cannot import model_type 't5', only PegasusForConditionalGeneration" in refused.err
    assert not (tmp_path / "back").exists()
    (tmp_path / "empty" / "config.json").write_text('{"architectures": 5}', encoding="utf-8")
    assert "cannot import model_type None" in tfm("import", tmp_path / "empty", "--out", tmp_path / "back").err
    refused = tfm("import", tmp_path / "nowhere", "--out", tmp_path / "back")
    assert refused.code == 65
    assert "nowhere: no such folder" in refused.err


def test_what_tfm_made_needs_no_import(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    publish_model(tmp_path / "run" / "model")
    for folder in (tmp_path / "run", tmp_path / "run" / "model"):
        refused = tfm("import", folder, "--out", tmp_path / "back")
        assert refused.code == 65
        assert "was made by tfm, and needs no import" in refused.err


def test_an_export_for_a_library_without_import_is_named_as_such(tmp_path: Path) -> None:
    with publish(Plan("export", tmp_path / "engine", {}, {}, None), command=["test"]) as draft:
        (draft.folder / "config.json").write_text("{}", encoding="utf-8")
    refused = tfm("import", tmp_path / "engine", "--out", tmp_path / "back")
    assert refused.code == 65
    assert refused.err.endswith("engine: is an export of tfm that tfm does not read: use the model it was made of\n")
