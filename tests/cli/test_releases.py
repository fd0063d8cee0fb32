"""Artifacts of earlier releases are opened by this one: verified, and computed with."""

import json
import shutil
from pathlib import Path

import pytest

import tfm
from tests.cli.user import ROOT
from tests.cli.user import tfm as run_tfm
from tests.releases.make import NUMBERS
from tfm.data.dataset.store import load_dataset
from tfm.pipeline.artifacts.artifact import open_artifact

RELEASES = ROOT / "tests" / "releases"
KINDS = sorted(folder.parent for folder in RELEASES.glob("*/*/model"))


def name_of(folder: Path) -> str:
    return "/".join(folder.relative_to(RELEASES).parts)


def test_each_release_left_a_model_of_each_kind() -> None:
    releases = {folder.parent.name for folder in KINDS}
    assert "0.1.0" in releases
    assert {folder.name for folder in KINDS if folder.parent.name == "0.1.0"} == NUMBERS.keys()


@pytest.mark.parametrize(
    "folder",
    # Captions compile the search.
    [pytest.param(each, marks=pytest.mark.slow if each.name == "captions" else (), id=name_of(each)) for each in KINDS],
)
def test_what_a_release_made_is_whole_and_gives_its_numbers(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(folder, run)
    (run / "expected.json").unlink()
    done = run_tfm("inspect", run)
    assert done.code == 0, done.err
    manifest = open_artifact(run / "dataset")
    data = load_dataset(run / "dataset")
    assert len(data.train) == manifest.figures["rows"]["train"]
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    # Products round differently from one CPU to another, in single precision.
    assert NUMBERS[folder.name](tfm.load(run / "model", device="cpu")) == pytest.approx(expected, rel=1e-4, abs=1e-5)
