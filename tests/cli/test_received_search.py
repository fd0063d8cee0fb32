"""A search that somebody sent: no link below its folder is followed by what writes and removes."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, tfm, write_corpora
from tests.damage import listing

QUICK = ("--set", "training.validation.every_steps=5", "--set", "training.validation.bleu=false")
SEARCH = """
[search]
base = "tiny.toml"
method = "grid"
keep = 1

[search.space]
"training.schedule.peak" = {{ values = [{values}] }}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished search."""
    folder = tmp_path_factory.mktemp("made")
    write_corpora(folder)
    (folder / "tiny.toml").write_text(RECIPE.format(folder=folder).replace("max_steps = 10", "max_steps = 5"), "utf-8")
    (folder / "some.toml").write_text(SEARCH.format(values="0.001, 0.01"), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = tfm("search", "some.toml", *QUICK)
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the working folder; the best trial is whole, the other one's bulk was removed."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def outside(here: Path, tmp_path: Path) -> Path:
    """A folder that looks like a trial's, and nothing may touch."""
    (whole,) = [each for each in (here / "runs/some/trials").iterdir() if (each / "model").exists()]
    return shutil.copytree(whole, tmp_path / "outside")


ENTRIES = ["0000", "0000-x", "0001", "0001-1", "0001/training", "0000/model", "0000/log.txt"]
QUICK_ONES = {("0000-x", ()), ("0000/model", ())}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param(name, words, marks=() if (name, words) in QUICK_ONES else pytest.mark.slow)
        for name in ENTRIES
        for words in ((), ("--final",))
    ],
)
@pytest.mark.few(1)
def test_a_link_among_trials_reaches_nothing(here: Path, outside: Path, name: str, words: tuple[str, ...]) -> None:
    place = here / "runs/some/trials" / name
    if os.path.lexists(place):
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    inside = outside / "log.txt" if name.endswith("txt") else outside / "training" if "training" in name else outside
    place.symlink_to(inside)
    before = listing(outside)
    done = tfm("search", "some.toml", *words, *QUICK)
    assert done.code in (0, 65, 73), done.err
    assert listing(outside) == before


def test_a_link_of_the_best_trial_is_not_copied(here: Path, outside: Path) -> None:
    (whole,) = [each for each in (here / "runs/some/trials").iterdir() if (each / "model").exists()]
    (outside / "secret").write_text("secret")
    (whole / "training" / "notes").symlink_to(outside / "secret")
    done = tfm("search", "some.toml", "--final", *QUICK)
    assert done.code == 73
    assert "training/notes: is a link that tfm did not make" in done.err
    assert not (here / "runs/some-final").exists()


def test_a_folder_that_is_read_only_is_reported_and_stays_as_it_is(here: Path) -> None:
    folders = [here / "runs/some", *(each for each in (here / "runs/some").rglob("*") if each.is_dir())]
    shutil.rmtree(here / "runs/some/search")
    for each in folders[::-1]:
        if each.exists():
            each.chmod(0o555)
    before = listing(here / "runs/some")
    shown = tfm("search", "some.toml", "--report", "--json", *QUICK)
    for each in folders:
        if each.exists():
            each.chmod(0o755)
    assert shown.code == 0, shown.err
    assert [each["ended"] for each in json.loads(shown.out)["trials"]] == ["finished", "finished"]
    assert "runs/some: is read-only, so that no report is written" in shown.err
    assert listing(here / "runs/some") == before
