"""The ledger as a user meets it: every scoring of a test set counts once, wherever it was asked for."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, tfm
from tfm.pipeline.scoring.ledger import read_ledger


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, corpora: Path) -> Path:
    """A folder with a recipe and its run, scored once."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "tiny.toml").write_text(RECIPE.format(folder=corpora), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = tfm("run", "tiny.toml")
    assert done.code == 0, done.err
    assert "main: this test set was scored once, by 1 model of this folder" in done.err
    return folder


@pytest.fixture
def here(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(trained, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return Path("runs")


@pytest.mark.slow
def test_every_scoring_is_a_look_and_a_fresh_one_is_none(here: Path, corpora: Path) -> None:
    texts = ("--source", corpora / "test.de", "--reference", corpora / "test.en")
    assert "nothing to do" in tfm("run", "tiny.toml").err
    fresh = tfm("evaluate", "--recipe", "tiny.toml")
    assert [(look.run, look.chosen, look.test) for look in read_ledger(here)] == [("tiny", "recipe", "main")]
    assert "scored once, by 1 model of this folder" in fresh.err

    ways: tuple[tuple[str | Path, ...], ...] = (
        ("--recipe", "tiny.toml", "--metric", "bleu"),
        ("--model", "runs/tiny", *texts, "--metric", "bleu"),
        ("--model", "runs/tiny/model", *texts, "--metric", "chrf", "--out", "elsewhere"),
        ("--hypotheses", "runs/tiny/translations/main.txt", "--reference", corpora / "test.en"),
        ("--hypotheses", "elsewhere/hypotheses.txt", "--reference", corpora / "test.en", "--model", "runs/tiny"),
    )
    for number, words in enumerate(ways, 2):
        done = tfm("evaluate", *words)
        assert done.code == 0, done.err
        assert f"scored {number} times, by 1 model of this folder" in done.err
    found = read_ledger(here)
    assert [look.chosen for look in found] == ["recipe", "recipe", "files", "files", "files", "files"]
    assert len({(look.texts, look.model) for look in found}) == 1
    assert "scored 4 times, by 1 model of this folder" in Path("elsewhere/report.html").read_text("utf-8")


def test_a_contrast_set_of_the_references_is_the_same_test_set(here: Path, corpora: Path) -> None:
    sources, targets = ((corpora / f"test.{side}").read_text("utf-8").splitlines() for side in ("de", "en"))
    rows = [{"source": one, "right": two, "wrong": f"{two} x"} for one, two in zip(sources, targets, strict=True)]
    Path("contrast.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = ("evaluate", "--model", "runs/tiny", "--contrast", "contrast.jsonl")
    assert "scored 2 times, by 1 model of this folder" in tfm(*words).err
    for _ in range(2):  # the same figures once more are nothing new, published or not
        assert "scored 2 times, by 1 model of this folder" in tfm(*words, "--out", "out").err
    Path("copy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[::-1]), encoding="utf-8")
    copied = ("evaluate", "--model", "runs/tiny", "--contrast", "copy.jsonl")
    assert "scored 2 times, by 1 model of this folder" in tfm(*copied).err, "of another name, in another order"
    questions = [{"context": row["source"], "choices": [row["right"], row["wrong"]], "answer": 0} for row in rows]
    Path("questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions), encoding="utf-8")
    assert "scored once" in tfm("evaluate", "--model", "runs/tiny", "--choices", "questions.jsonl").err
    looks = ["main", "contrast.jsonl", "contrast.jsonl", "copy.jsonl", "questions.jsonl"]
    assert [look.test for look in read_ledger(here)] == looks


def test_a_test_set_by_another_name_shows_nothing_new(here: Path, corpora: Path) -> None:
    for name in ("one", "two"):
        Path(name).write_bytes((corpora / "test.en").read_bytes())
    for name in ("one", "two", "one"):
        words = ("evaluate", "--model", "runs/tiny", "--source", corpora / "test.de", "--reference", name)
        assert f"{name}: this test set was scored 2 times" in tfm(*words, "--metric", "chrf").err


def test_scores_made_again_show_nothing_new_and_are_the_same(here: Path) -> None:
    scores = here / "tiny" / "scores"
    before = json.loads((scores / "manifest.json").read_text("utf-8"))["fingerprint"]
    shutil.rmtree(scores)
    done = tfm("evaluate", "--recipe", "tiny.toml")
    assert "scored once, by 1 model of this folder" in done.err
    assert json.loads((scores / "manifest.json").read_text("utf-8"))["fingerprint"] == before
    assert len(read_ledger(here)) == 2


def test_files_of_nobody_are_no_look(here: Path, corpora: Path) -> None:
    for words in (("--hypotheses", corpora / "test.en"), ("--hypotheses", "runs/tiny.txt")):
        Path("runs/tiny.txt").write_bytes((corpora / "test.en").read_bytes())
        done = tfm("evaluate", *words, "--reference", corpora / "test.en")
        assert done.code == 0, done.err
        assert "looked at" not in done.err
    assert len(read_ledger(here)) == 1


def test_a_received_manifest_does_not_say_where_a_look_is_entered(here: Path, corpora: Path) -> None:
    """Hypotheses count in the ledger of the runs in which they lie, never beside a path that their manifest names."""
    (here / "ledger.jsonl").unlink()
    shutil.copytree(here / "tiny" / "translations", "received/run/translations")
    words = ("evaluate", "--hypotheses", "received/run/translations/main.txt", "--reference", corpora / "test.en")
    done = tfm(*words)
    assert done.code == 0, done.err
    assert "looked at" not in done.err
    assert not list(Path().rglob("ledger.jsonl"))

    shutil.copytree(here / "tiny" / "model", "received/run/model")
    assert "scored once, by 1 model of this folder" in tfm(*words).err
    assert list(Path().rglob("ledger.jsonl")) == [Path("received/ledger.jsonl")]

    manifest = Path("received/run/model/manifest.json")
    shutil.copyfile("received/run/translations/manifest.json", manifest)  # of another stage
    assert "looked at" not in tfm(*words).err


def test_models_and_ensembles_count_each_by_itself(here: Path, corpora: Path) -> None:
    shutil.copytree("runs/tiny", "runs/copy")
    texts = ("--source", corpora / "test.de", "--reference", corpora / "test.en", "--metric", "bleu")
    same = tfm("evaluate", "--model", "runs/copy", *texts)
    assert "scored 2 times, by 1 model of this folder" in same.err
    both = tfm("evaluate", "--model", "runs/tiny", "--ensemble", "runs/copy", *texts)
    assert "scored 3 times, by 2 models of this folder" in both.err


def test_a_ledger_that_cannot_be_written_costs_no_score(here: Path) -> None:
    Path("runs/ledger.jsonl").unlink()
    Path("runs/ledger.jsonl").mkdir()
    done = tfm("evaluate", "--recipe", "tiny.toml", "--metric", "bleu")
    assert done.code == 0, done.err
    assert "runs/ledger.jsonl: this look at the test set could not be entered: Is a directory" in done.err
    assert "main: this test set was scored once, by 1 model of this folder" in done.err
