"""Learning, proven through the command line as a user types it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MULTI30K = os.environ.get("TFM_MULTI30K", "")  # a folder of train.en, train.de, val.en, ..., also .gz


def tfm(*words: str, cwd: Path) -> str:
    """Run the command; its stdout. Threads are torch's own choice, as a user has it."""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-m", "tfm.cli.app", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def scores(run: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((run / "scores" / "scores.json").read_text(encoding="utf-8"))
    return loaded


@pytest.mark.parametrize("task", ["copy", "reverse", "sort", "recurrent-reverse"])
def test_toy_tasks_are_learned(task: str, tmp_path: Path) -> None:
    tfm("run", str(ROOT / "recipes" / f"{task}.toml"), cwd=tmp_path)
    metrics = scores(tmp_path / "runs" / task)["metrics"]
    assert metrics["bleu"]["score"] >= 98
    assert metrics["exact_match"]["score"] >= 95
    assert metrics["perplexity"]["score"] <= 1.02


def test_the_demo_recipe_learns_the_grammar(tmp_path: Path) -> None:
    tfm("run", str(ROOT / "recipes" / "demo.toml"), cwd=tmp_path)
    found = scores(tmp_path / "runs" / "demo")
    assert found["metrics"]["bleu"]["score"] >= 95
    assert "bleu" in found["others"]["combinations"]["metrics"]


def test_the_recipe_of_pronouns_learns_which_noun_it_is(tmp_path: Path) -> None:
    # in the recipe's 8 epochs it depends on the draws of dropout, which differ by precision and processes
    tfm("run", str(ROOT / "recipes" / "it.toml"), "--set", "training.max_epochs=16", cwd=tmp_path)
    found = json.loads(tfm("evaluate", "--model", "runs/it", "--contrast", "it", "--json", cwd=tmp_path))
    assert [each["name"] for each in found["sets"]] == ["it test", "it combinations"]
    for each in found["sets"]:
        assert {*each["categories"]} == {"subject", "object", "same gender"}
        for part in (each, *each["categories"].values()):
            assert part["accuracy"]["sum"]["score"] >= 97


@pytest.mark.skipif(not MULTI30K, reason="trains for 45 minutes: set TFM_MULTI30K to the folder of the corpus")
def test_multi30k_reaches_the_published_level(tmp_path: Path) -> None:
    recipe = str(ROOT / "recipes" / "multi30k.toml")
    tfm("run", recipe, "--set", f"data.path={Path(MULTI30K).resolve()}", cwd=tmp_path)
    assert scores(tmp_path / "runs" / "multi30k")["metrics"]["bleu"]["score"] >= 37.0
