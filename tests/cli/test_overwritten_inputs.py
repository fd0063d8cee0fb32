"""No output of a command overwrites another one, or what the command reads: it is refused before any work."""

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.user import tfm
from tests.tiny_model import publish_model
from tfm.pipeline.model_io.loaded_model import LoadedModel

TEXT = "a dog runs\nthe sea is blue\n"
COMMANDS = {
    "translate": ["model", "text", "--alignments", "text"],
    "translate prefixes": ["model", "other", "--prefixes", "text", "--alignments", "text"],
    "clean": ["text", "other", "--dry-run", "--html", "text"],
    "clean test": ["other", "third", "--test", "other", "text", "--dry-run", "--html", "text"],
    "rerank": ["text", "--language-model", "lm", "--reference", "other", "--tune", "text"],
    "rerank reference": ["other", "--language-model", "lm", "--reference", "text", "--tune", "text"],
    "compare": ["a=text", "b=other", "--reference", "third", "--html", "text"],
    "compare reference": ["a=other", "b=third", "--reference", "text", "--html", "text"],
    "embed": ["text", "--nearest", "dog", "--out", "text"],
    "attend": ["model", "--head-report", "text", "--out", "text"],
}

TWO_OUTPUTS = {
    "embed": (["text", "--out", "new.png", "--picture", "./new.png"], "--out", "--picture"),
    "embed, there already": (["text", "--out", "old.png", "--picture", "link.png"], "--out", "--picture"),
    "attend": (["model", "a dog", "--out", "new.png", "--png", "folder/../new.png"], "--out", "--png"),
    "attend alignments": (["model", "a dog", "--png", "new.png", "--alignments", "new.png"], "--png", "--alignments"),
    "compare": (["model", "lm", "--plot", "new.svg", "--html", "new.svg"], "--plot", "--html"),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation model and a language model."""
    folder = tmp_path_factory.mktemp("models")
    publish_model(folder / "model")
    publish_model(folder / "lm", architecture="decoder_only", task="language_model")
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_is_an_input_is_refused(
    command: str, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("text", "other", "third"):
        Path(name).write_text(TEXT, "utf-8")
    for name in ("model", "lm"):
        Path(name).symlink_to(models / name)
    done = tfm(command.split()[0], *COMMANDS[command])
    assert (done.code, done.out) == (73, ""), done.err
    assert "text: is read by this command too, which would overwrite it: give another file" in done.err
    assert Path("text").read_text("utf-8") == TEXT


def test_an_artifact_that_holds_an_input_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clean text that is cleaned once more into its own folder would be lost."""
    monkeypatch.chdir(tmp_path)
    for name, word in (("a", "one"), ("b", "eins")):
        Path(name).write_text("".join(f"{word} {'x ' * count}\n" for count in range(9)), "utf-8")
    assert tfm("clean", "a", "b", "--set", "clean.copies=none", "--out", "first").code == 0
    before = Path("first/train.0.source.txt").read_text("utf-8")
    sides = ("first/train.0.source.txt", str(tmp_path / "first" / "train.0.target.txt"))
    again = ("clean", *sides, "--set", "clean.copies=none", "--set", "clean.length.max=3")
    Path("link").symlink_to(".")
    for place in ("first", "link/first"):
        done = tfm(*again, "--out", place)
        assert done.code == 73, done.err
        assert f"{place}: contains first/train.0.source.txt, which this command reads and would lose" in done.err
        assert Path("first/train.0.source.txt").read_text("utf-8") == before
    assert tfm(*again, "--out", "second").code == 0


@pytest.mark.parametrize("command", TWO_OUTPUTS)
def test_two_outputs_are_not_one_file(
    command: str, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("text").write_text(TEXT, "utf-8")
    Path("old.png").write_text(TEXT, "utf-8")
    Path("link.png").hardlink_to("old.png")
    for name in ("model", "lm"):
        Path(name).symlink_to(models / name)
    words, option, other_option = TWO_OUTPUTS[command]
    done = tfm(command.split(",")[0].split()[0], *words)
    assert (done.code, done.out) == (73, ""), done.err
    assert f"is the file of both {option} and {other_option}: give each its own" in done.err
    assert not {each.name for each in tmp_path.glob("new*")}
    assert Path("old.png").read_text("utf-8") == TEXT


def test_an_artifact_is_not_written_into(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another name in it is one that does not belong to it: it would no longer be read."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(models / "model", "model")
    Path("text").write_text(TEXT, "utf-8")
    for words in (
        ("embed", "model", "--out", "model/vectors.txt"),
        ("embed", "text", "--out", "model/manifest.json"),
        ("translate", "model", "text", "--alignments", "model/links"),
        ("attend", "model", "a dog", "--out", "model/page.html"),
        ("clean", "text", "text", "--set", "clean.copies=none", "--out", "model/clean"),
        ("translate", "model", "text", "--out", "model/translations"),
    ):
        done = tfm(*words)
        assert (done.code, done.out) == (73, ""), done.err
        assert f"lies in {tmp_path / 'model'}, an artifact of tfm, which it would damage" in done.err
    assert tfm("inspect", "model").code == 0


def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The administrator may write anywhere, so the system's answer is a stand-in."""
    monkeypatch.chdir(tmp_path)
    Path("text").write_text(TEXT, "utf-8")
    Path("locked").mkdir()
    real_access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and real_access(path, mode))
    monkeypatch.setattr(LoadedModel, "for_languages", lambda *_: pytest.fail("a model was loaded"))
    for words in (
        ("attend", models / "model", "a dog", "--out", "locked/page.html"),
        ("embed", "text", "--out", "locked/vectors"),
        ("translate", models / "model", "text", "--alignments", "locked/links"),
    ):
        done = tfm(*words)
        assert (done.code, done.out) == (73, ""), done.err
        assert f"{words[-1]}: cannot be written: Permission denied" in done.err


def test_standard_output_is_not_the_file_of_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by `tfm embed text --nearest dog --out new > new`."""
    monkeypatch.chdir(tmp_path)
    Path("text").write_text(TEXT, "utf-8")
    with Path("new").open("wb") as stream:
        monkeypatch.setattr("tfm.pipeline.artifacts.place.STDOUT_FILENO", stream.fileno())
        done = tfm("embed", "text", "--nearest", "dog", "--out", "new")
        assert (done.code, done.out) == (73, ""), done.err
        assert "new: is the file to which standard output goes: give another one" in done.err
        assert tfm("embed", "text", "--nearest", "dog", "--out", "other").code == 0
