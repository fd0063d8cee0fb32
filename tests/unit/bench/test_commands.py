"""The benches from the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.__main__ import app
from bench.processes import ProcessError, run
from tests.cli.user import RECIPE, write_corpora

BENCHES = (
    *("train", "images", "decode", "preprocess", "startup", "ceilings", "complexity", "softmax", "search", "trials"),
    *("noise", "learning", "vectors", "generate", "labels", "scores", "serve", "growth", "sharding", "cluster"),
    *("clean", "noisy", "tokenize", "memory", "plan"),
)
ROOT = Path(__file__).parents[3]


def test_help_lists_every_bench_in_one_line_and_loads_no_torch() -> None:
    program = (
        "import sys\nfrom bench.__main__ import app\n"
        "app(['--help'], standalone_mode=False)\nprint({'torch', 'numpy', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[-1] == "set()"
    listed = {line.split()[0]: line for line in lines if line.startswith("  ")}
    assert set(BENCHES) <= set(listed)
    assert not any("..." in listed[name] for name in BENCHES)


@pytest.mark.parametrize("name", BENCHES)
def test_each_bench_explains_itself(name: str) -> None:
    done = CliRunner().invoke(app, [name, "--help"])
    assert done.exit_code == 0
    assert "--json" in done.stdout


def test_startup_runs(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    done = CliRunner().invoke(app, ["startup", "--rounds", "1", "--json", str(file), "--predict", "tfm --help=10"])
    assert done.exit_code == 0, done.output
    assert "tfm train --help" in done.stdout
    content = json.loads(file.read_text())
    names = [each["name"] for each in content["found"]]
    assert names == ["python -c pass", "tfm --help", "tfm train --help"]
    assert content["found"][1]["predicted"] == 10
    assert all(each["median"] > 0 for each in content["found"])


@pytest.mark.slow
def test_plan_compares_what_was_predicted_with_what_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_corpora(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["plan", "tiny.toml", "--updates", "6", "--json", "found.json"])
    assert done.exit_code == 0, done.output
    (found,) = json.loads((tmp_path / "found.json").read_bytes())["found"]
    assert found["updates"] == found["planned_updates"] == 6
    assert 0.2 < found["planned_bytes"] / found["peak"] < 5
    assert min(found["planned_seconds"], found["seconds"]) > 0
    assert not (tmp_path / "runs" / "tiny" / "model").exists()


@pytest.mark.slow
def test_softmax_runs() -> None:
    words = ["--vocab", "40", "--dim", "16", "--rows", "8", "--cutoffs", "5,20", "--seconds", "0.01", "--rounds", "1"]
    done = CliRunner().invoke(app, ["softmax", *words])
    assert done.exit_code == 0, done.output
    assert "full" in done.stdout
    assert "adaptive" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["softmax", "--cutoffs", "many"], "--cutoffs"),
        (["startup", "--predict", "nobody=2"], "--predict"),
        (["decode", "model", "source", "--layout", "many"], "--layout"),
        (["decode", "model", "source", "--against", "nobody"], "huggingface=VENV"),
        (["decode", "model", "source", "--against", "huggingface"], "huggingface=VENV"),
        (["decode", "model", "source", "--against", "huggingface=nowhere"], "huggingface=VENV"),
        (["decode", "model", "source", "--against", "ctranslate2=nowhere"], "ctranslate2, huggingface"),
        (["decode", "model", "source", "--against", "bergamot=nowhere"], "bergamot=PACKAGE"),
        (["vectors", "nowhere", "--against", "gensim=nowhere"], "gensim=PYTHON"),
        (["tokenize", __file__, "--against", "subword_nmt=nowhere"], "subword_nmt=PYTHON"),
        (["memory", "--task", "nobody"], "--task"),
        (["memory", "--until", "nowhere"], "--until"),
        (["memory", "--task", "tagging", "--until", "generate"], "tokenize, preprocess, train, translate"),
        (["train", "nowhere", "--device", "abacus"], "--device"),
        (["train", "nowhere", "--set", "training.batch_tokens=512"], "training.batch_tokens"),
        (["train", "nowhere", "--device", "cuda", "--against", "eole=nowhere"], "CPU alone"),
        (["train", "nowhere", "--set", "model.norm=sideways"], "model.norm"),
        (["train", "nowhere", "--against", "nobody"], "--against"),
        (["train", "nowhere", "--against", "eole"], "eole=FOLDER"),
    ],
)
def test_wrong_words_are_refused_before_anything_runs(words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert said in done.output


def test_a_process_tells_its_time_memory_and_error() -> None:
    done = run([sys.executable, "-c", "import sys; print(len(bytearray(10**8)), sys.stdin.read())"], text="hello")
    assert done.out == "100000000 hello\n"
    assert done.seconds > 0
    assert done.peak > 10**8
    with pytest.raises(ProcessError, match=r"exit code 3 of (?s:.*)what went wrong"):
        run([sys.executable, "-c", "import sys; print('what went wrong'); sys.exit(3)"])


def test_a_process_that_lacks_a_program_or_a_package_is_told_in_a_line() -> None:
    with pytest.raises(ProcessError, match=r"^no-such-program: cannot be started: No such file or directory$"):
        run(["no-such-program"])
    with pytest.raises(ProcessError) as failure:
        run([sys.executable, "-c", "import no_such_package.part"])
    assert str(failure.value) == f"{sys.executable} has no package no_such_package: install it there"


def test_bergamot_without_node_is_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    (package / "worker").mkdir(parents=True)
    (package / "worker" / "bergamot-translator-worker.wasm").touch()
    (tmp_path / "vocabulary").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    words = ("--against", f"bergamot={package}", "--vocabulary", str(tmp_path / "vocabulary"))
    done = CliRunner().invoke(app, ["decode", "model", "source", *words])
    assert done.exit_code == 2
    assert "bergamot needs the program node" in " ".join(done.output.replace("│", " ").split())
