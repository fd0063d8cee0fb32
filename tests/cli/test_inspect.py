"""`tfm inspect` of the folder of a run."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.user import Stages, tfm
from tests.tiny_artifact import as_link
from tfm.pipeline.artifacts.folder_lock import lock_folder


@pytest.fixture
def run(stages: Stages, corpora: Path, tmp_path: Path) -> Path:
    """A copy of a run, with translations."""
    run = tmp_path / "run"
    shutil.copytree(stages.folder, run)
    words = ("--beam", "1", "--device", "cpu", "--out", run / "translations")
    assert tfm("translate", run, corpora / "test.de", *words).code == 0
    return run


def du(folder: Path) -> int:
    """Bytes of the files under a folder, by the system's own command."""
    sizes = subprocess.run(
        ["find", folder, "-type", "f", "-printf", "%s\\n"], capture_output=True, text=True, check=True
    )
    return sum(map(int, sizes.stdout.split()))


def rows(out: str) -> dict[str, str]:
    """The lines of the table, by the first word."""
    return {line.split()[0].rstrip(":"): line for line in out.splitlines()[1:]}


def test_a_run_says_what_it_holds_and_what_room_it_takes(run: Path) -> None:
    shown, found = tfm("inspect", run), json.loads(tfm("inspect", run, "--json").out)
    assert shown.code == 0, shown.err
    assert [each["name"] for each in found["parts"]] == ["tokenizer", "dataset", "training", "model", "translations"]
    assert [each["kind"] for each in found["parts"]] == ["tokenize", "preprocess", "training", "train", "translate"]
    assert all((each["made"] is None) == (each["kind"] == "training") for each in found["parts"])
    assert found["bytes"] == du(run)
    for each in found["parts"]:
        assert each["bytes"] == du(run / each["name"]), each
        assert f"{each['bytes']:,}" in rows(shown.out)[each["name"]]
        assert each["state"] == ("work in progress" if each["name"] == "training" else "whole")
    assert shown.out.startswith(f"{run}: {found['bytes']:,} bytes\n")
    steps = found["parts"][2]["steps"]
    assert steps == sorted(int(path.name[5:]) for path in (run / "training" / "checkpoints").iterdir())
    assert f"checkpoints {', '.join(map(str, steps))}" in rows(shown.out)["training"]
    assert found["left_over"] == {}


def test_trainings_set_aside_and_what_was_left_behind_are_shown(run: Path) -> None:
    shutil.copytree(run / "training", run / "training.old-1")
    shutil.copytree(run / "model", run / "model-good")
    shutil.copytree(run / "model", run / ".model.0123456789abcdef")
    (run / "notes").mkdir()
    shown = tfm("inspect", run)
    assert shown.code == 0, shown.err
    assert "set aside" in rows(shown.out)["training.old-1"]
    assert f"{du(run / 'training.old-1'):,}" in rows(shown.out)["training.old-1"]
    assert "whole" in rows(shown.out)["model-good"]
    assert f"{du(run / 'model'):,} bytes of a draft" in rows(shown.out)[".model.0123456789abcdef"]
    assert "notes" not in rows(shown.out)


def test_what_was_made_from_something_else_and_who_writes_are_said(run: Path, corpora: Path) -> None:
    pair = (corpora / "test.de", corpora / "test.en")
    words = ("--kind", "char", "--out", run / "tokenizer")
    assert tfm("tokenize", *pair, *words).code == 0
    with lock_folder(run / "training"):
        shown = tfm("inspect", run)
    assert shown.code == 0
    assert "whole, but made from another tokenizer than is here" in rows(shown.out)["dataset"]
    assert "process" in rows(shown.out)["training"]
    assert "is writing it" in rows(shown.out)["training"]
    assert "is writing it" not in tfm("inspect", run).out


@pytest.mark.parametrize("as_json", [False, True])
def test_a_damaged_artifact_is_an_error_once_all_is_told(run: Path, as_json: bool) -> None:
    with (run / "model" / "model.safetensors").open("ab") as file:
        file.write(b"x")
    result = tfm("inspect", run, *(["--json"] if as_json else []))
    assert result.code == 65
    assert f"{run}: damaged: model; make them again" in " ".join(result.err.split())
    if as_json:
        (model,) = (each for each in json.loads(result.out)["parts"] if each["kind"] == "damaged")
        assert "'model.safetensors' has" in model["state"]
    else:
        assert "'model.safetensors' has" in rows(result.out)["model"]
        assert "whole" in rows(result.out)["translations"]


def test_a_run_of_an_earlier_tfm(run: Path) -> None:
    before = tfm("inspect", run).out
    as_link(run / "model")
    assert tfm("inspect", run).out == before
    shutil.rmtree((run / "model").resolve())
    dangling = tfm("inspect", run)
    assert dangling.code == 65
    assert "damaged" in rows(dangling.out)["model"]


def test_a_folder_that_is_no_run_is_said(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "dataset" / "tokenizer").mkdir(parents=True)  # of a dataset whose manifest is gone
    for folder in (tmp_path, tmp_path / "absent", tmp_path / "dataset"):
        refused = tfm("inspect", folder)
        assert refused.code == 65
        assert refused.out == ""
