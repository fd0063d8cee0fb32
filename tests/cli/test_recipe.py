"""Recipes at the command line: run, the same stage by stage, and what a recipe is understood as."""

import json
from pathlib import Path

import pytest

from tests.cli.user import tfm

STAGES = ("tokenize", "preprocess", "train", "translate", "evaluate")
ARTIFACTS = ("tokenizer", "dataset", "model", "translations", "scores")


def test_run_makes_everything_and_then_nothing(recipe: Path) -> None:
    first = tfm("run", recipe)
    assert first.code == 0, first.err
    run = Path("runs/tiny")
    assert all((run / artifact / "manifest.json").is_file() for artifact in ARTIFACTS)
    assert set(json.loads((run / "scores/scores.json").read_text("utf-8"))["metrics"]) >= {"bleu", "perplexity"}
    assert "report.html" in first.err
    assert "BLEU" in first.out
    assert "tokenizer" not in first.out  # the scores alone are data

    again = tfm("run", recipe)
    assert again.code == 0, again.err
    assert again.err.count("nothing to do") >= len(ARTIFACTS)

    # Another beam: translations and scores are made again, and it says why; what comes before stays.
    changed = tfm("run", recipe, "--set", "decoding.beam=1")
    assert changed.code == 0, changed.err
    assert "decoding.beam" in changed.err
    assert changed.err.count("nothing to do") == 3


def test_stage_by_stage_equals_run(recipe: Path) -> None:
    for stage in STAGES:
        result = tfm(stage, "--recipe", recipe)
        assert result.code == 0, result.err
    again = tfm("run", recipe)
    assert again.err.count("nothing to do") >= len(ARTIFACTS), again.err
    scores = tfm("evaluate", "--recipe", recipe, "--json")
    assert json.loads(scores.out)["split"] == "main"


def test_a_flag_beats_set_and_set_beats_the_recipe(recipe: Path) -> None:
    def size(*words: str) -> int:
        result = tfm("tokenize", "--recipe", recipe, *words, "--out", "t")
        assert result.code == 0, result.err
        made = json.loads(Path("t/manifest.json").read_text("utf-8"))
        return int(made["config"]["tokenizer"]["vocab_size"])

    assert size() == 40
    assert size("--set", "tokenizer.vocab_size=30") == 30
    assert size("--set", "tokenizer.vocab_size=30", "--vocab-size", "20") == 20


def test_recipe_prints_every_default(recipe: Path) -> None:
    result = tfm("recipe", recipe, "--set", "training.optimizer.name=adamw")
    assert result.code == 0, result.err
    content = json.loads(result.out)
    assert content["name"] == "tiny"
    assert content["training"]["label_smoothing"] == 0.1
    assert content["training"]["optimizer"]["name"] == "adamw"


def test_schema_is_a_schema() -> None:
    schema = json.loads(tfm("recipe", "--schema").out)
    assert schema["type"] == "object"
    assert {"name", "tokenizer", "data", "model", "training", "decoding", "evaluation"} <= set(schema["properties"])


@pytest.mark.parametrize(
    ("setting", "hints"),
    [
        ("training.max_stepz=3", ("max_steps",)),
        ("tokenizer.kind=bpee", ("bpe",)),
        ("decoding.beam=0", ("decoding.beam",)),
        ("training", ("training",)),
    ],
)
def test_a_wrong_setting_is_a_usage_error_that_says_what_would_be_right(
    recipe: Path, setting: str, hints: tuple[str, ...]
) -> None:
    result = tfm("recipe", recipe, "--set", setting)
    assert result.code == 2
    assert result.out == ""
    assert "Traceback" not in result.err
    assert len(result.err.strip().splitlines()) <= 2
    assert all(hint in result.err for hint in hints)


def test_a_wrong_flag_without_a_recipe_says_the_same(corpora: Path, tmp_path: Path) -> None:
    result = tfm("tokenize", corpora / "train.de", "--kind", "bpee", "--out", tmp_path / "t")
    assert result.code == 2
    assert "bpe" in result.err
    typo = tfm("tokenize", corpora / "train.de", "--set", "tokenizer.knd=bpe", "--out", tmp_path / "t")
    assert typo.code == 2
    assert "kind" in typo.err
    section = tfm("tokenize", corpora / "train.de", "--set", "tokeniser.kind=bpe", "--out", tmp_path / "t")
    assert section.code == 2
    assert "tokenizer" in section.err
