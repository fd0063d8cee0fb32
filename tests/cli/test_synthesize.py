"""`tfm synthesize`, as typed and as a stage of a run; and training on what it made."""

import json
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, Stages, tfm, write_corpora

SYNTHESIS = """
[synthesis]
text = { source = "none", target = "mono.de" }
decoding = { beam = 1, max_length = 6 }
"""
FORWARD = """
extends = "tiny.toml"
name = "forward"
[data]
train = [{{ source = "train.en", target = "train.de" }}, {{ synthetic = "made", {more} }}]
valid = {{ source = "valid.en", target = "valid.de" }}
[data.tests.main]
source = "test.en"
target = "test.de"
"""


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_corpora(tmp_path)
    test = Path("test.de").read_text("utf-8").splitlines()[0]
    Path("mono.de").write_text(f"eins sechs sechs sechs sechs eins\n\n{test}\nzwei drei\n", "utf-8")
    Path("tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    return tmp_path


def test_text_of_a_model_is_an_artifact_that_training_takes(texts: Path, stages: Stages) -> None:
    words = (
        "synthesize",
        stages.folder,
        "--source",
        "mono.de",
        "--beam",
        "2",
        "--set",
        "synthesis.decoding.max_length=6",
    )
    done = tfm(*words, "--out", "made")
    assert done.code == 0, done.err
    assert done.out == ""
    assert "2 pairs of 4 lines" in done.err
    lost = [json.loads(line) for line in Path("made/dropped.jsonl").read_text("utf-8").splitlines()]
    assert [(each["line"], each["reason"]) for each in lost] == [(2, "empty"), (3, "held out")]
    assert "up to date" in tfm(*words, "--out", "made").err
    shown = tfm("inspect", "made")
    assert "synthesize" in shown.out
    assert "preprocess" in shown.out, "the lineage goes back to what the model learned from"
    Path("forward.toml").write_text(FORWARD.format(more='tag = "<BT>", weight = 2'), "utf-8")
    for stage in ("tokenize", "preprocess"):
        done = tfm(stage, "--recipe", "forward.toml")
        assert done.code == 0, done.err
    manifest = json.loads(Path("runs/forward/dataset/manifest.json").read_text("utf-8"))
    assert manifest["inputs"]["train: made"]["lineage"]["stage"] == "synthesize"
    assert "<BT>" in Path("runs/forward/tokenizer/tokenizer.json").read_text("utf-8")
    rows = json.loads(Path("runs/forward/dataset/report.json").read_text("utf-8"))["splits"]["train"]["rows"]
    assert rows == 202
    again = tfm(*words, "--n-best", "2", "--out", "made")
    assert again.code == 0, again.err
    assert "input train: made changed" in tfm("preprocess", "--recipe", "forward.toml").err
    Path("made/output.txt").write_text("eins\n", "utf-8")
    done = tfm("preprocess", "--recipe", "forward.toml")
    assert done.code == 65
    assert "output.txt" in done.err


@pytest.mark.slow
def test_a_recipe_ends_with_the_text_that_its_model_makes(texts: Path) -> None:
    Path("tiny.toml").write_text(RECIPE.format(folder=".") + SYNTHESIS, "utf-8")
    done = tfm("run", "tiny.toml")
    assert done.code == 0, done.err
    assert "[6/6] synthesize" in done.err
    assert len(Path("runs/tiny/synthetic/output.txt").read_text("utf-8").splitlines()) == 2
    assert tfm("run", "tiny.toml").err.count("up to date") == 6
    shown = json.loads(tfm("inspect", "runs/tiny", "--json").out)
    assert [each["kind"] for each in shown["parts"]][-1] == "synthesize"
    changed = tfm("synthesize", "--recipe", "tiny.toml", "--strategy", "sample", "--set", "synthesis.decoding.beam=5")
    assert changed.code == 0, changed.err


def test_the_text_of_a_test_set_is_refused(texts: Path, stages: Stages, corpora: Path) -> None:
    done = tfm("synthesize", stages.folder, "--source", corpora / "test.de", "--out", "made")
    assert done.code == 65
    assert "held-out data of the model" in done.err
    assert not Path("made").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--source", "mono.de", "--out", "c"), "give it, or --recipe"),
        (("MODEL", "--out", "c"), "give it, or --recipe"),
        (("MODEL", "--source", "mono.de"), "give it, or --recipe"),
        (("MODEL", "--source", "mono.de", "--out", "c", "--strategy", "sample", "--beam", "2"), "is for searching"),
        (("MODEL", "--recipe", "tiny.toml"), "whose [synthesis] names"),
        (("--recipe", "tiny.toml"), "the recipe has no [synthesis]"),
        (("MODEL", "--source", "m", "--out", "c", "--min-score", "1"), "synthesis.min_score"),
        (("MODEL", "--source", "m", "--out", "c", "--n-best", "9"), "cannot exceed beam"),
        (("MODEL", "--source", "m", "--out", "c", "--seed", "9"), "has no effect"),
        (("MODEL", "--source", "m", "--out", "c", "--set", "synthesis.decoding.batch_sentences=9"), "is fixed here"),
        (("MODEL", "--source", "m", "--out", "c", "--min-score", "-1", "--percentile", "5"), "give either"),
    ],
)
def test_words_that_do_not_go_together(texts: Path, stages: Stages, words: tuple[str, ...], reason: str) -> None:
    done = tfm("synthesize", *(str(stages.folder) if word == "MODEL" else word for word in words))
    assert done.code == 2
    assert reason in " ".join(done.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ('source = "a"', "remove `source` and `target`"),
        ('side = "both"', "side"),
        ('tag = "BT"', "capital letters"),
        ('format = "csv", path = "x"', "`synthetic` is a folder"),
    ],
)
def test_a_corpus_of_synthetic_text_that_is_none(texts: Path, more: str, reason: str) -> None:
    Path("forward.toml").write_text(FORWARD.format(more=more), "utf-8")
    done = tfm("recipe", "forward.toml")
    assert done.code == 2
    assert reason in done.err


@pytest.mark.parametrize(
    ("sets", "reason"),
    [
        ("data.tests={}", "give data.valid and data.tests"),
        ('data.valid={ synthetic = "made" }', "are for training corpora"),
        ('data.valid={ source = "valid.en", target = "valid.de", tag = "<BT>" }', "are for training corpora"),
        ("data.fold={ number = 1, of = 2 }", "train without folds"),
    ],
)
def test_nothing_is_scored_on_synthetic_text(texts: Path, sets: str, reason: str) -> None:
    Path("forward.toml").write_text(FORWARD.format(more="weight = 2"), "utf-8")
    done = tfm("recipe", "forward.toml", "--set", sets)
    assert done.code == 2
    assert reason in done.err
