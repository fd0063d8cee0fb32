"""Runs, trials and ranks on a cluster: the models of one machine, whichever process is killed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import RECIPE, ROOT, start, write_corpora
from tests.ray_nodes import Nodes, ray_nodes

pytestmark = pytest.mark.slow

PATIENCE = 600.0
STEPS = 300


def run(*words: str | Path, folder: Path) -> str:
    """Run a command to its end, and return what it wrote to stderr."""
    process = start(*words, folder=folder)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return err


def write_recipe(folder: Path) -> None:
    """Write corpora and a recipe whose training saves often."""
    write_corpora(folder)
    text = RECIPE.format(folder=".").replace("max_steps = 10", f"max_steps = {STEPS}\nsave_every = 20")
    (folder / "tiny.toml").write_text(text, "utf-8")


def fingerprints(folder: Path) -> dict[str, str]:
    """The fingerprint of each artifact of a run."""
    return {
        file.parent.name: json.loads(file.read_bytes())["fingerprint"]
        for file in sorted(folder.glob("*/manifest.json"))
    }


def test_runs_of_seeds_are_those_of_one_machine(tmp_path: Path) -> None:
    few = ("--set", "training.max_steps=40")
    for place in ("here", "cluster"):
        (tmp_path / place).mkdir()
        write_recipe(tmp_path / place)
    run("run", "tiny.toml", "--seeds", "1,2,3", *few, folder=tmp_path / "here")
    with ray_nodes(2) as nodes:
        words = "run", "tiny.toml", "--seeds", "1,2,3", *few, "--cluster", nodes.address
        err = run(*words, folder=tmp_path / "cluster")
    assert "tiny-2: [1/3] train" in err
    for seed in (1, 2, 3):
        one, other = (fingerprints(tmp_path / place / "runs" / f"tiny-{seed}") for place in ("here", "cluster"))
        assert len(one) == 5
        del one["scores"], other["scores"]  # they count who scored the tests before
        assert one == other
        scored = [
            json.loads((tmp_path / place / "runs" / f"tiny-{seed}" / "scores" / "scores.json").read_bytes())
            for place in ("here", "cluster")
        ]
        assert scored[0]["metrics"] == scored[1]["metrics"]


@pytest.mark.promise("killed")
def test_a_run_that_loses_its_process_goes_on_elsewhere(tmp_path: Path) -> None:
    for place in ("here", "cluster"):
        (tmp_path / place).mkdir()
        write_recipe(tmp_path / place)
    run("run", "tiny.toml", "--seeds", "1,2", folder=tmp_path / "here")
    with ray_nodes(2) as nodes:
        process = start("run", "tiny.toml", "--seeds", "1,2", "--cluster", nodes.address, folder=tmp_path / "cluster")
        kill_process(tmp_path / "cluster" / "runs" / "tiny-1", nodes, process)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    for seed in (1, 2):
        one, other = (weights(tmp_path / place / "runs" / f"tiny-{seed}") for place in ("here", "cluster"))
        assert one == other


def write_search(folder: Path, trials: int) -> None:
    """Write corpora, a recipe, and a search for the peak of its learning rate."""
    folder.mkdir()
    write_recipe(folder)
    space = '"training.schedule.peak" = { low = 1e-4, high = 1e-2, log = true }'
    text = f'[search]\nname = "s"\nbase = "tiny.toml"\nmethod = "random"\ntrials = {trials}\n[search.space]\n{space}\n'
    (folder / "s.toml").write_text(text, "utf-8")


def found_trials(folder: Path) -> dict[int, list[Any]]:
    """The figures of each trial, by its number, without those that depend on its time."""
    found = json.loads((folder / "runs" / "s" / "search" / "trials.json").read_bytes())
    return {each["number"]: [each[name] for name in SAME_OF_TRIALS] for each in found["trials"]}


SAME_OF_TRIALS = "configuration", "ended", "value", "values", "validations", "updates"


def test_a_search_has_the_trials_of_one_machine(tmp_path: Path) -> None:
    with ray_nodes(2) as nodes:
        for place, more in (("here", ()), ("cluster", ("--cluster", nodes.address))):
            write_search(tmp_path / place, 5)
            run("search", "s.toml", "--set", "training.max_steps=20", *more, folder=tmp_path / place)
    found = found_trials(tmp_path / "here")
    assert len(found) == 5
    assert found_trials(tmp_path / "cluster") == found


@pytest.mark.promise("killed")
def test_a_search_that_loses_a_worker_has_the_trials_of_one_machine_and_prints_them_alone(tmp_path: Path) -> None:
    words = "search", "s.toml", "--set", "training.max_steps=100", "--json"
    for place in ("here", "cluster"):
        write_search(tmp_path / place, 4)
    run(*words, folder=tmp_path / "here")
    folder = tmp_path / "cluster"
    with ray_nodes(2) as nodes:
        on_cluster = *words, "--cluster", nodes.address
        process = start(*on_cluster, folder=folder)
        kill_process(folder / "runs" / "s" / "trials" / "0000", nodes, process)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "A worker died" in err
    assert len(json.loads(out)["trials"]) == 4
    assert found_trials(folder) == found_trials(tmp_path / "here")
    for command in (on_cluster, (*words, "--report")):  # it is over: the cluster, which is gone, is not asked
        again = start(*command, folder=folder)
        assert again.communicate(timeout=PATIENCE)[0] == out
        assert again.returncode == 0


@pytest.fixture(scope="module")
def by_torchrun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset, and a model that torchrun trained by two processes."""
    folder = tmp_path_factory.mktemp("made")
    write_recipe(folder)
    run("tokenize", "--recipe", "tiny.toml", folder=folder)
    run("preprocess", "--recipe", "tiny.toml", folder=folder)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "tfm.cli.app"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, "train", "--recipe", "tiny.toml", "--out", "torchrun"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return folder


def weights(folder: Path) -> bytes:
    return (folder / "model" / "model.safetensors").read_bytes()


def train(folder: Path, out: Path, nodes: Nodes, *more: str) -> "subprocess.Popen[str]":
    """Start a training by two ranks."""
    place = "--out", str(out), "--cluster", nodes.address
    return start("train", "--recipe", "tiny.toml", *place, "--ranks", "2", *more, folder=folder)


def kill_process(out: Path, nodes: Nodes, process: "subprocess.Popen[str]") -> None:
    """Kill -9 a process that trains once there is a checkpoint of `out`."""
    deadline = time.monotonic() + PATIENCE
    while not list((out / "training" / "checkpoints").glob("*")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert nodes.kill_worker()


def test_ranks_train_the_model_of_torchrun_and_show_their_progress(by_torchrun: Path, tmp_path: Path) -> None:
    with ray_nodes(2) as nodes:
        process = train(by_torchrun, tmp_path / "out", nodes)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert f"{STEPS} steps" in err
    assert weights(tmp_path / "out") == weights(by_torchrun / "torchrun")


@pytest.mark.promise("killed")
def test_a_training_that_loses_a_rank_goes_on_by_itself(by_torchrun: Path, tmp_path: Path) -> None:
    with ray_nodes(2) as nodes:
        process = train(by_torchrun, tmp_path / "out", nodes)
        kill_process(tmp_path / "out", nodes, process)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert weights(tmp_path / "out") == weights(by_torchrun / "torchrun")


@pytest.mark.promise("killed")
def test_a_training_without_restarts_left_ends_and_the_same_command_resumes_it(
    by_torchrun: Path, tmp_path: Path
) -> None:
    with ray_nodes(2) as nodes:
        process = train(by_torchrun, tmp_path / "out", nodes, "--set", "training.restarts=0")
        kill_process(tmp_path / "out", nodes, process)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 75, err
        assert "training.restarts" in err
        again = train(by_torchrun, tmp_path / "out", nodes, "--set", "training.restarts=0")
        _, err = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, err
    assert weights(tmp_path / "out") == weights(by_torchrun / "torchrun")


def test_an_error_of_the_training_is_told_once_and_not_tried_again(by_torchrun: Path, tmp_path: Path) -> None:
    with ray_nodes(2) as nodes:
        process = train(by_torchrun, tmp_path / "out", nodes, "--set", 'name="nosuch"')
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 65, err
    assert err.count("not made yet") == 1
