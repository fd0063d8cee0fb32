"""`tfm clean`, as typed: of files and of a recipe, dry, and as a stage of a run."""

import json
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, tfm, write_corpora

RULES = """
[clean]
length = { max = 3 }
numbers = {}
"""


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_corpora(tmp_path)
    Path("tiny.toml").write_text(RECIPE.format(folder=".") + RULES, "utf-8")
    return tmp_path


def test_two_files_and_a_test_set(texts: Path) -> None:
    with open("train.de", "a", encoding="utf-8") as german, open("train.en", "a", encoding="utf-8") as english:
        german.write("sieben\neins zwei drei vier fünf sechs\n\n")
        english.write("Seven\none\nnothing\n")
    Path("test.de").write_text("sieben\n", "utf-8")
    Path("test.en").write_text("seven\n", "utf-8")
    done = tfm("clean", "train.de", "train.en", "--test", "test.de", "test.en", "--out", "clean")
    assert done.code == 0, done.err
    lost = [json.loads(line) for line in Path("clean/dropped.jsonl").read_text("utf-8").split("\n")[:-1]]
    assert {each["rule"] for each in lost[-3:]} == {"overlap", "ratio", "empty"}
    assert "after others" in done.err
    assert done.out == ""
    again = tfm("clean", "train.de", "train.en", "--test", "test.de", "test.en", "--out", "clean")
    assert "up to date" in again.err
    shown = tfm("inspect", "clean")
    assert shown.code == 0
    assert "clean: whole; 6 files" in shown.out


def test_dry_nothing_is_written_but_the_page(texts: Path) -> None:
    before = {each.name for each in texts.iterdir()}
    for words in (("--recipe", "tiny.toml"), ("train.de", "train.en", "--set", "clean.length.max=3")):
        done = tfm("clean", *words, "--dry-run", "--html", "page.html")
        assert done.code == 0, done.err
        assert "Nothing was written" in Path("page.html").read_text("utf-8")
    assert {each.name for each in texts.iterdir()} == {*before, "page.html"}


def test_a_run_learns_and_trains_on_what_is_left(texts: Path) -> None:
    done = tfm("run", "tiny.toml")
    assert done.code == 0, done.err
    assert "[1/6] clean" in done.err
    kept = len(Path("runs/tiny/clean/train.0.source.txt").read_text("utf-8").splitlines())
    report = json.loads(Path("runs/tiny/dataset/report.json").read_text("utf-8"))
    whole = len(Path("train.de").read_text("utf-8").splitlines())
    assert report["splits"]["train"]["rows"] == kept < whole
    manifest = json.loads(Path("runs/tiny/dataset/manifest.json").read_text("utf-8"))
    assert manifest["inputs"]["clean"]["lineage"]["stage"] == "clean"
    assert not [label for label in manifest["inputs"] if label.startswith("train:")]
    again = tfm("run", "tiny.toml")
    assert again.err.count("up to date") == 6
    changed = tfm("run", "tiny.toml", "--set", "clean.length.max=2", "--set", "training.max_steps=1")
    assert changed.code == 0, changed.err
    assert "clean: config changed: clean.length.max 3 -> 2" in changed.err
    assert "dataset: input clean changed" in changed.err
    shown = json.loads(tfm("inspect", "runs/tiny", "--json").out)
    assert [each["kind"] for each in shown["parts"]][:2] == ["clean", "tokenize"]
    assert tfm("run", "tiny.toml", "--folds", "2", "--set", "training.max_steps=1").code == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("train.de", "--out", "c"), "give two files, SRC and TGT"),
        (("--out", "c"), "give it, or --recipe"),
        (("train.de", "train.en"), "give it, or --recipe"),
        (("train.de", "train.en", "--html", "p.html", "--out", "c"), "it is for --dry-run"),
        (("train.de", "train.en", "--dry-run", "--out", "c"), "not allowed with --dry-run"),
        (("--recipe", "tiny.toml", "train.de", "train.en"), "not allowed with --recipe"),
        (("--recipe", "plain.toml"), "the recipe has no [clean]"),
        (("--recipe", "plain.toml", "--dry-run"), "has no [clean]"),
        (("train.de", "train.en", "--set", "clean.ratio=2", "--out", "c"), "clean.ratio"),
        (("train.de", "train.en", "--set", "clean.lenght.max=2", "--out", "c"), "clean.length"),
    ],
)
def test_words_that_do_not_go_together(texts: Path, words: tuple[str, ...], reason: str) -> None:
    Path("plain.toml").write_text(RECIPE.format(folder="."), "utf-8")
    done = tfm("clean", *words)
    assert done.code == 2
    assert reason in " ".join(done.err.replace("│", " ").split())


@pytest.mark.parametrize("command", ["clean", "dry run"])
def test_a_remark_that_explains_why_nothing_is_left_is_shown(command: str, texts: Path) -> None:
    """Lines of JSON that are read as text are dropped, all of them."""
    Path("objects").write_text('{"a": "x", "b": "1"}\n' * 9, "utf-8")
    done = tfm("clean", "objects", "objects", *({"clean": ("--out", "c"), "dry run": ("--dry-run",)}[command]))
    assert done.code == (65 if command == "clean" else 0), done.err
    assert ("no training pair is left" in done.err) == (command == "clean")
    assert done.err.count("its lines are objects of JSON") == 1
