"""Tests that are used once: runs that score their validation split, and the one of them that validation chooses."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from tests.cli.user import RECIPE, Result, tfm, write_lines
from tfm.pipeline.recipes.final_evaluation import final_scores
from tfm.pipeline.recipes.final_evaluation.candidates import CandidateRun
from tfm.pipeline.scoring.ledger import read_ledger

FINAL = '\n[evaluation]\ntests = "final"\nmetrics = ["bleu", "chrf", "perplexity"]\n'


def run_of(recipe: str, *sets: str) -> Result:
    done = tfm("run", recipe, *(word for each in sets for word in ("--set", each)))
    assert done.code == 0, done.err
    return done


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, corpora: Path) -> Path:
    """A folder with a recipe that keeps its tests, and three runs of it; the first is trained longest."""
    folder = tmp_path_factory.mktemp("final")
    (folder / "tiny.toml").write_text(RECIPE.format(folder=corpora) + FINAL, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_of("tiny.toml", "training.max_steps=30", "name=long", "training.schedule.warmup_steps=5")
        run_of("tiny.toml", "training.max_steps=1", "name=short")
    return folder


@pytest.fixture
def here(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(trained, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return Path("runs")


def perplexities(run: Path, folder: str) -> float:
    return float(json.loads((run / folder / "scores.json").read_text("utf-8"))["metrics"]["perplexity"]["score"])


@pytest.mark.slow
def test_a_run_scores_its_validation_split_and_touches_no_test(here: Path, corpora: Path) -> None:
    run = here / "long"
    assert not {each.name for each in run.iterdir()} & {"translations", "scores"}
    assert (run / "translations-valid" / "valid.reference.txt").read_bytes() == (corpora / "valid.en").read_bytes()
    content = json.loads((run / "scores-valid" / "scores.json").read_text("utf-8"))
    assert (content["split"], content["others"], content["num_segments"]) == ("valid", {}, 20)
    assert read_ledger(here) == []
    inspected = tfm("inspect", run)
    assert "another" not in inspected.out
    again = run_of("tiny.toml", "training.max_steps=1", "name=short")
    assert again.err.count("nothing to do") == 5
    assert "the test sets are for `tfm evaluate --final`" in again.err


def test_stage_by_stage_it_is_the_same(here: Path) -> None:
    sets = ("--set", "training.max_steps=1", "--set", "name=short")
    for stage in ("translate", "evaluate"):
        assert "nothing to do" in tfm(stage, "--recipe", "tiny.toml", *sets).err
    shown = tfm("evaluate", "--recipe", "tiny.toml", *sets, "--json")
    assert json.loads(shown.out) == json.loads((here / "short" / "scores-valid" / "scores.json").read_text("utf-8"))
    shutil.rmtree(here / "short" / "translations-valid")
    refused = tfm("evaluate", "--recipe", "tiny.toml", *sets)
    assert refused.code == 65
    assert refused.err.startswith("runs/short/translations-valid: not made yet: run `tfm translate`")


def test_the_one_that_validation_chose_is_scored_once(here: Path) -> None:
    first = tfm("evaluate", "--final", "runs/short", "runs/long", "--by", "perplexity", "--json")
    assert first.code == 0, first.err
    assert perplexities(here / "long", "scores-valid") < perplexities(here / "short", "scores-valid")
    assert (
        f"runs/long: chosen by perplexity ↓ {perplexities(here / 'long', 'scores-valid'):.4g} of validation"
        in first.err
    )
    content = json.loads(first.out)
    assert content == json.loads((here / "long" / "scores" / "scores.json").read_text("utf-8"))
    assert (content["split"], content["num_segments"]) == ("main", 12)
    assert not (here / "short" / "scores").exists()
    (look,) = read_ledger(here)
    assert look.run == "long"
    assert look.chosen.startswith("final: perplexity ↓ ")
    assert look.chosen.endswith(", the best of 2 runs")

    # the same again is fresh and no look, neither by --final nor as tests that are always scored
    assert tfm("evaluate", "--final", "runs/long", "runs/short", "--by", "perplexity").err.count("nothing to do") == 2
    always = ("training.max_steps=30", "name=long", "training.schedule.warmup_steps=5", "evaluation.tests=always")
    assert run_of("tiny.toml", *always).err.count("nothing to do") == 5
    assert run_of("tiny.toml", *always[:3]).err.count("nothing to do") == 5
    assert len(read_ledger(here)) == 1


def test_a_second_look_has_to_be_asked_for(here: Path) -> None:
    assert tfm("evaluate", "--final", "runs/short").code == 0
    second = tfm("evaluate", "--final", "runs/long")
    assert second.code == 2
    assert second.err.splitlines()[-2].startswith("main was already scored once with --final (last: run short, 20")
    assert second.err.splitlines()[-1] == "add --again to score it anyway"
    assert not (here / "long" / "translations").exists()
    third = tfm("evaluate", "--final", "runs/long", "--again")
    assert third.code == 0, third.err
    assert "main: this test set was scored 2 times, by 2 models of this folder" in third.err
    # by now both have been scored: what is there is shown
    assert tfm("evaluate", "--final", "runs/short").code == 0
    assert len(read_ledger(here)) == 2


def test_a_recipe_is_validated_first(here: Path) -> None:
    sets = ("--set", "name=short", "--set", "decoding.beam=1")
    done = tfm("evaluate", "--final", "--recipe", "tiny.toml", *sets)
    assert done.code == 0, done.err
    assert "translations-valid: config changed: decoding.beam 2 -> 1" in done.err
    made = json.loads((here / "short" / "translations" / "manifest.json").read_text("utf-8"))
    assert made["config"] == {"decoding": made["config"]["decoding"]}
    assert made["config"]["decoding"]["beam"] == 1


def test_without_scores_of_validation_there_is_no_choice(here: Path) -> None:
    shutil.rmtree(here / "short" / "scores-valid")
    refused = tfm("evaluate", "--final", "runs/long", "runs/short")
    assert refused.code == 65
    assert refused.err.startswith(
        "runs/short/scores-valid: there are no scores of the validation split here: run `tfm run`"
    )
    none = tfm("evaluate", "--final", "runs/long", "--by", "meteor")
    assert none.code == 2
    assert "runs/long has no meteor of its validation split; it has bleu, chrf, perplexity, " in none.err
    assert read_ledger(here) == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--final",), "give the folders of runs"),
        (("runs/long",), "is for --final"),
        (("--again", "--recipe", "tiny.toml"), "is for --final"),
        (("--final", "runs/long", "--metric", "bleu"), "not allowed with --final"),
        (("--final", "runs/long", "--out", "x"), "not allowed with --final"),
        (("--final", "runs/long", "--set", "decoding.beam=1"), "not allowed with --final"),
        (
            ("--hypotheses", "tiny.toml", "--reference", "tiny.toml", "--set", "evaluation.tests=final"),
            "is for recipes",
        ),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(here: Path, words: Sequence[str], hint: str) -> None:
    refused = tfm("evaluate", *words)
    assert refused.code == 2
    assert hint in " ".join(refused.err.replace("│", " ").split())
    assert read_ledger(here) == []


def test_a_language_model_keeps_its_tests_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("train", "valid", "test"):
        write_lines(Path(f"{name}.txt"), [f"a {name} of LETTERS", "", "כלב רץ"] * 4)
    Path("lm.toml").write_text("""
[tokenizer]
kind = "char"
[data]
train = { source = "none", target = "train.txt" }
valid = { source = "none", target = "valid.txt" }
tests.main = { source = "none", target = "test.txt" }
[model]
architecture = "decoder_only"
task = "language_model"
decoder = { layers = 1, dim = 16, heads = 2, feed_forward_dim = 16 }
[training]
max_steps = 2
[evaluation]
tests = "final"
""")
    run_of("lm.toml")
    valid = json.loads(Path("runs/lm/scores-valid/scores.json").read_text("utf-8"))
    assert valid["split"] == "valid"
    assert not Path("runs/lm/scores").exists()
    assert read_ledger(Path("runs")) == []
    done = tfm("evaluate", "--final", "runs/lm")
    assert done.code == 0, done.err
    assert "runs/lm: chosen by perplexity ↓ " in done.err
    assert json.loads(Path("runs/lm/scores/scores.json").read_text("utf-8"))["split"] == "main"
    assert [look.test for look in read_ledger(Path("runs"))] == ["main"]


@pytest.mark.slow
def test_seeds_of_a_recipe_are_scored_together_as_one_look(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = ("--set", "training.max_steps=40", "--set", "training.schedule.warmup_steps=5", "--set", "name=base")
    assert tfm("run", "tiny.toml", "--seeds", "1,2", *sets).code == 0
    words = ("evaluate", "--final", "runs/short", "runs/base-1", "runs/base-2", "--by", "perplexity", "--json")
    scored = final_scores._score_tests

    def dies(candidate: CandidateRun, **about: Any) -> dict[str, Any]:
        if candidate.seed == 2:
            raise OSError("killed between two seeds")
        return scored(candidate, **about)

    with monkeypatch.context() as patch:
        patch.setattr(final_scores, "_score_tests", dies)
        assert tfm(*words).code == 74
    done = tfm(*words)
    assert done.code == 0, done.err
    mean = fmean(perplexities(here / f"base-{seed}", "scores-valid") for seed in (1, 2))
    chosen = f"perplexity ↓ {mean:.4g} of validation, the mean of 2 seeds, the best of 2 recipes"
    assert f"runs/base: chosen by {chosen}" in done.err
    content = json.loads(done.out)
    of_each = [perplexities(here / f"base-{seed}", "scores") for seed in (1, 2)]
    summary = content["tests"]["main"]["perplexity"]
    assert summary["values"] == of_each
    assert summary["mean"] == pytest.approx(fmean(of_each))
    assert summary["deviation"] == pytest.approx(stdev(of_each))
    (look,) = read_ledger(here)  # one look, though the first scoring was stopped between two seeds
    assert (look.run, look.chosen) == ("base-1, base-2", f"final: {chosen}")
    assert not (here / "short" / "scores").exists()
    compared = tfm("compare", "runs/base-1", "runs/base-2", "runs/short")
    assert "scored once, by 1 model" in compared.out + compared.err
    assert "which the ledger does not have" not in compared.out + compared.err

    table = tfm(*words[:-1])
    assert "runs/base, main: mean ± standard deviation of 2 seeds" in table.out
    assert len(read_ledger(here)) == 1
    assert tfm("evaluate", "--final", "runs/short").code == 2
