"""`tfm synthesize`, as typed and as a stage of a run; and training on what it made."""

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, Stages, start, tfm, write_corpora, write_lines
from tests.damage import DAMAGES, damaged, files_of
from tests.faults import Faults, Killed
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.artifacts.corpus_inputs import corpus_inputs
from tfm.pipeline.errors import DataError

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


def test_the_closest_translation_to_a_reference(texts: Path, stages: Stages) -> None:
    write_lines(Path("few.de"), ["eins sechs", "zwei drei"])
    write_lines(Path("few.en"), ["one six", "two three"])
    words = ("synthesize", stages.folder, "--source", "few.de", "--reference", "few.en", "--out", "made")
    assert "nothing to choose" in tfm(*words).err
    done = tfm(*words, "--n-best", "3", "--utility", "chrf", "--set", "synthesis.decoding.max_length=6")
    assert done.code == 0, done.err
    assert Path("made/input.txt").read_text("utf-8") == "eins sechs\nzwei drei\n"
    write_lines(Path("few.en"), ["one six"])
    done = tfm(*words, "--n-best", "3")
    assert done.code == 65
    assert "few.en" in done.err


SHORT = ("--beam", "1", "--set", "synthesis.decoding.max_length=6", "--device", "cpu")


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        pytest.param("kill", marks=pytest.mark.promise("killed")),
        pytest.param("full", marks=pytest.mark.promise("failed")),
    ],
)
def test_whatever_goes_wrong_at_whichever_call(
    texts: Path,
    stages: Stages,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """The old artifact or the new one stands whole, and the same command makes the same bytes and leaves nothing."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    words = ("synthesize", stages.folder, "--source", "mono.de", *SHORT, "--out", "made")
    assert tfm(*words, "--n-best", "1", "--set", "synthesis.min_score=-99").code == 0
    shutil.copytree("made", "old")
    before = open_artifact(Path("old")).fingerprint
    with Faults().patched() as counted:
        assert tfm(*words).code == 0
    expected = open_artifact(Path("made")).fingerprint
    for at in range(1, len(counted.calls) + 1):
        shutil.rmtree("made")
        shutil.copytree("old", "made")
        faults, result = Faults(at, how), None
        with suppress(Killed), faults.patched():
            result = tfm(*words)
        assert open_artifact(Path("made")).fingerprint in (before, expected), (at, faults.hit)
        assert result is None or result.code in (0, 73, 74), (at, faults.hit, result)
        assert tfm(*words).code == 0, (at, faults.hit)
        assert open_artifact(Path("made")).fingerprint == expected, (at, faults.hit)
        left = [each.name for each in Path().iterdir() if each.name.startswith(".made") and each.suffix != ".lock"]
        assert left == [], (at, faults.hit)
    record_property("points", len(counted.calls))


@pytest.mark.slow
@pytest.mark.promise("killed")
def test_a_killed_process_goes_on_with_finished_chunks(texts: Path, stages: Stages) -> None:
    lines = [f"eins zwei {word}" for word in ("drei", "vier", "fünf", "sechs") for _ in range(275)]
    write_lines(Path("long.de"), lines)
    words = ("synthesize", stages.folder, "--source", "long.de", "--strategy", "sample", *SHORT[2:], "--out")
    assert tfm(*words, "whole").code == 0
    process = start(*words, "made", folder=texts)
    kept = texts / ".made.chunks"
    while process.poll() is None and len(list(kept.glob("[0-9a-f]*"))) < 2:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    before = {file.name: file.stat().st_mtime_ns for file in kept.glob("[0-9a-f]*")}
    assert before, "killed while it worked"
    assert not Path("made").exists()
    assert tfm(*words, "made").code == 0
    for name in ("input.txt", "output.txt", "scores.parquet", "dropped.jsonl"):
        assert (Path("made") / name).read_bytes() == (Path("whole") / name).read_bytes()
    assert not kept.exists()


@pytest.mark.promise("damaged")
def test_a_damaged_artifact_is_refused_and_made_anew(texts: Path, stages: Stages) -> None:
    words = ("synthesize", stages.folder, "--source", "mono.de", *SHORT, "--out", "made")
    assert tfm(*words).code == 0
    made, names = Path("made"), files_of(Path("made"))
    assert len(names) == 5
    corpus = CorpusConfig.model_validate({"synthetic": "made"})
    for name in names:
        for damage in DAMAGES.values():
            with damaged(made / name, damage), pytest.raises(DataError, match="made"):
                corpus_inputs({"train": [corpus]}, online=False)
    assert list(corpus_inputs({"train": [corpus]}, online=False)) == ["train: made"]
    (made / "output.txt").write_text("eins\n", "utf-8")
    assert "damaged: made: 'output.txt'" in tfm(*words).err
    assert "up to date" in tfm(*words).err


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
