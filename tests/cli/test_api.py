"""`import tfm`: what a model says in Python is what the commands say of it."""

import gzip
import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tfm as in_python
from tests.cli.user import Stages, tfm, write_lines

CPU = ("--device", "cpu")


@pytest.fixture(scope="module")
def model(stages: Stages) -> in_python.Model:
    return in_python.load(stages.folder, device=torch.device("cpu"))


def test_the_version_is_that_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tfm("--version").out.strip() == f"tfm {in_python.__version__}"
    assert "__version__" in dir(in_python)
    monkeypatch.setattr("tfm.pipeline.distribution.DISTRIBUTION_NAME", "not-installed")
    assert in_python.__version__ == "0+source"


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        ((), {}),
        (("--beam", "1"), {"beam": 1}),
        (
            ("--beam", "3", "--length-norm", "none", "--max-length", "4"),
            {"beam": 3, "length_norm": "none", "max_length": 4},
        ),
        (("--strategy", "sample", "--seed", "9"), {"strategy": "sample", "seed": 9}),
        (("--forbidden", "two", "--forbidden", "one"), {"forbidden": ("two", "one")}),
    ],
    ids=str,
)
def test_translations_are_those_of_the_command(
    stages: Stages, corpora: Path, model: in_python.Model, flags: tuple[str, ...], settings: dict[str, object]
) -> None:
    file = corpora / "test.de"
    said = tfm("translate", stages.folder, file, *flags, *CPU)
    assert said.code == 0, said.err
    assert "".join(f"{each}\n" for each in model.translate(file.read_text().splitlines(), **settings)) == said.out  # type: ignore[arg-type]


def test_n_best_prefixes_and_forced_words_are_those_of_the_command(
    stages: Stages, model: in_python.Model, tmp_path: Path
) -> None:
    lines, starts, words = ["eins zwei", "", "drei"], ["six", "", "two one"], [["five one"], [], ["six", "four"]]
    files = [write_lines(tmp_path / name, each) for name, each in (("source", lines), ("starts", starts))]
    forced = write_lines(tmp_path / "words", ["\t".join(each) for each in words])
    asked = ("--prefixes", files[1], "--forced", forced, "--beam", "4", "--n-best", "3", "--jsonl")
    said = tfm("translate", stages.folder, files[0], *asked, *CPU)
    assert said.code == 0, said.err
    found = model.translations(lines, beam=4, n_best=3, prefixes=starts, forced_in_each=words)
    assert [[vars(each) for each in n_best] for n_best in found] == [
        json.loads(line)["translations"] for line in said.out.splitlines()
    ]


def test_scores_are_those_of_evaluate(stages: Stages, corpora: Path, model: in_python.Model) -> None:
    files = [corpora / "test.de", corpora / "test.en"]
    asked = ("--source", files[0], "--reference", files[1], "--metric", "perplexity", "--json")
    printed = json.loads(tfm("evaluate", "--model", stages.folder, *asked, *CPU).out)["metrics"]
    found = model.score(*(file.read_text().splitlines() for file in files))
    assert {name: (each.score, each.signature) for name, each in found.figures.items()} == {
        name: (printed[name]["score"], printed[name]["signature"]) for name in found.figures
    }
    assert found.perplexity == pytest.approx(math.exp(-found.log_probs.sum() / found.num_tokens.sum()), rel=1e-12)


def test_vectors_are_those_that_embed_writes(stages: Stages, model: in_python.Model, tmp_path: Path) -> None:
    assert tfm("embed", stages.folder, "--out", tmp_path / "vectors.gz", *CPU).code == 0
    lines = gzip.decompress((tmp_path / "vectors.gz").read_bytes()).decode().splitlines()[1:]
    words = [line.split(" ")[0] for line in lines]
    numbers = np.array([line.split(" ")[1:] for line in lines], np.float32)
    assert np.array_equal(model.embed(words), numbers)
    said = json.loads(tfm("embed", stages.folder, "--nearest", "two", "--count", "3", "--json", *CPU).out)
    assert [vars(each) for each in model.neighbours("two", 3)] == said["two"]


def test_the_page_of_attention_is_that_of_the_command(stages: Stages, model: in_python.Model, tmp_path: Path) -> None:
    said = tfm("attend", stages.folder, "eins zwei", "--json", "--beam", "5", *CPU, "--out", tmp_path / "page.html")
    found, printed = model.attend("eins zwei"), json.loads(said.out)
    assert found.html() == (tmp_path / "page.html").read_text("utf-8").replace(
        f"Attention of {stages.folder}", f"Attention of {stages.folder / 'model'}"
    )
    found.save(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text("utf-8") == found.html()
    assert (found.source, found.target) == (printed["source"], printed["target"])
    for kind in found.kinds:
        layers = [each["weights"] for each in printed["attentions"] if each["kind"] == kind]
        assert found.weights(kind).tolist() == layers
        assert list(found.tokens(kind)) == [printed["tokens"][kind][side] for side in ("queries", "keys")]


def test_a_run_has_its_figures_and_curves(stages: Stages, tmp_path: Path) -> None:
    run = in_python.read_run(stages.folder)
    shown = json.loads(tfm("compare", stages.folder, "--json").out)
    (row,) = shown["runs"]
    assert {name: each.score for name, each in run.figures.items()} == {
        name: each["value"] for name, each in row["figures"].items()
    }
    lines = [json.loads(line) for line in (stages.folder / "training" / "metrics.jsonl").read_text().splitlines()]
    losses = {line["step"]: line["loss"] for line in lines if line["event"] == "valid"}
    curve = run.curves["valid.loss"]
    assert dict(zip(curve.steps.tolist(), curve.values.tolist(), strict=True)) == losses
    assert (curve.steps.dtype, curve.values.dtype) == (np.int64, np.float64)
    assert run.config["model.encoder.dim"] == 16
    assert run._repr_html_().startswith("<figure><svg")
    assert in_python.read_run(stages.folder / "model").curves.keys() == run.curves.keys()


def test_a_training_that_goes_on_has_curves_alone(stages: Stages, tmp_path: Path) -> None:
    (tmp_path / "training").mkdir()
    metrics = (stages.folder / "training" / "metrics.jsonl").read_text()
    (tmp_path / "training" / "metrics.jsonl").write_text(metrics + '{"event": "train", "st')
    run = in_python.read_run(tmp_path)
    assert run.curves.keys() == in_python.read_run(stages.folder).curves.keys()
    assert (run.figures, run.config) == ({}, {})
    assert run.notes == ["has no model yet: its training goes on, or was stopped"]


def test_curves_of_another_training_are_left_out_and_that_is_said(stages: Stages, tmp_path: Path) -> None:
    (tmp_path / "model").symlink_to(stages.folder / "model")
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "metrics.jsonl").write_text('{"event": "valid", "step": 20, "loss": 1.0}\n')
    run = in_python.read_run(tmp_path)
    assert run.curves == {}
    assert run.notes == ["training/ belongs to another training than model/: its curve and tokens/s are omitted"]


def test_where_there_is_nothing_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(in_python.DataError, match="there is nothing here"):
        in_python.load(tmp_path / "none")
    with pytest.raises(in_python.TfmError, match="has no model yet"):
        in_python.read_run(tmp_path)


def test_sources_that_the_model_cannot_read_are_said_where_translations_are_scored(
    model: in_python.Model, caplog: pytest.LogCaptureFixture
) -> None:
    text = "안녕 하세요"
    for read in (
        lambda: model.score([text], ["one"]),
        lambda: model.encode(text),
        lambda: model.attend(text),
        lambda: model.attend(text, "one"),
    ):
        caplog.clear()
        read()
        assert "1 of 1 source consists by half or more of what the model's vocabulary lacks" in caplog.text
    caplog.clear()
    model.encode("eins"), model.attend("eins")
    assert not caplog.text


def test_what_is_no_folder_and_what_is_no_number_is_said() -> None:
    for read in (in_python.load, in_python.read_run):
        with pytest.raises(in_python.TfmError, match="has a null character, which no name"):
            read("a\0b")
        for name in ("a" * 5000, "b" * 300, "a\ud800"):
            with pytest.raises(in_python.TfmError, match=r"^folder '.*' (is a name of .* too long|has half of a char)"):
                read(name)
    wrong: list[Any] = ["a", [[1.0], [1.0, 2.0]], [{}]]
    for given in wrong:
        with pytest.raises(TypeError, match="attention: key is no array of numbers"):
            in_python.attention([[1.0]], given, [[1.0]])


def test_what_a_page_is_saved_as_and_what_is_no_reporter_is_said(model: in_python.Model) -> None:
    page = model.attend("eins")
    wrong: Any = 3
    for name in ("a" * 5000, "a\0b", "", ".", "a\ud800"):
        with pytest.raises(in_python.TfmError, match=r"^file "):
            page.save(name)
    with pytest.raises(TypeError, match="file is int"):
        page.save(wrong)
    for reporter in (wrong, "x", print, object()):
        with pytest.raises(TypeError, match=r"^reporter is .* with the methods line, warn, table, bar, or None"):
            in_python.load(model.folder, reporter=reporter)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have names of folders in UTF-8 alone")
def test_a_model_is_read_in_a_working_folder_whose_name_is_not_utf8(
    stages: Stages, model: in_python.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / os.fsdecode(b"caf\xe9")
    shutil.copytree(model.folder, place / "model")
    monkeypatch.chdir(place)
    assert in_python.load("model").translate(["eins"]) == model.translate(["eins"])
