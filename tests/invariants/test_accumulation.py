"""Accumulated batches and several processes equal one large batch: the loss is divided by all tokens, once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from torch import Tensor

from tests.killing import free_port
from tests.tiny_training import gradients_in_float64, groups_of, in_float64, run, training
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.training_config import TrainingConfig

ROOT = Path(__file__).parents[2]
EXACT = 1e-10
GROWING: dict[str, Any] = {"max_steps": 10, "r_drop": 2.0, "batch_growth": {"factor": 2, "steps": [4]}}


def start(dataset: Path, out: Path, config: TrainingConfig, *precision: str) -> list[subprocess.Popen[str]]:
    """Two processes of one training, as torchrun starts them."""
    ports = {"MASTER_PORT": str(free_port()), "SECOND_PORT": str(free_port())}
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", **ports, "OMP_NUM_THREADS": "1"}
    given = str(dataset), str(out), config.model_dump_json(), *precision
    command = [sys.executable, "-m", "tests.tiny_training", *given]
    return [
        subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **shared, "RANK": rank, "LOCAL_RANK": rank},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in ("0", "1")
    ]


def ends(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """Exit code and output of each."""
    try:
        output = [process.communicate(timeout=600)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    return [(process.returncode, text) for process, text in zip(processes, output, strict=True)]


@pytest.fixture(scope="module")
def of_two(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes made together in float64."""
    out = tmp_path_factory.mktemp("two")
    for code, text in ends(start(dataset, out, training(**GROWING), "float64")):
        assert code == 0, text
    return out


def difference(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """The largest difference of any gradient of any update."""
    assert found.keys() == expected.keys()
    return max((found[name] - expected[name]).abs().max().item() for name in expected)


@pytest.fixture(scope="module")
def of_large_batches(dataset: Path) -> dict[str, Tensor]:
    """Gradients of 20 updates, each from one batch."""
    found = gradients_in_float64(dataset, groups_of(12), World())
    assert len({name.partition("/")[0] for name in found}) == 20
    return found


@pytest.mark.parametrize("size", [5, 1])
@pytest.mark.few(1)
def test_accumulated_batches_equal_one_large_batch(
    dataset: Path, of_large_batches: dict[str, Tensor], size: int
) -> None:
    assert difference(gradients_in_float64(dataset, groups_of(size), World()), of_large_batches) < EXACT


def test_the_comparison_notices_one_example_counted_twice(dataset: Path, of_large_batches: dict[str, Tensor]) -> None:
    groups = groups_of(5)
    groups[7].append(groups[7][0][:1])
    assert difference(gradients_in_float64(dataset, groups, World()), of_large_batches) > 1e-4


@pytest.mark.slow
@pytest.mark.promise("ranks")
def test_two_processes_equal_one(of_large_batches: dict[str, Tensor], of_two: Path) -> None:
    # Groups of three batches, so the first process has two and the second one.
    both = [load_file(of_two / f"gradients-{rank}.safetensors") for rank in (0, 1)]
    assert difference(both[0], of_large_batches) < EXACT
    assert difference(both[0], both[1]) == 0


@pytest.mark.slow
def test_a_training_by_two_processes_equals_one_that_accumulates(dataset: Path, of_two: Path, tmp_path: Path) -> None:
    """Dropout is on: which process has a batch changes no draw."""
    with in_float64():
        run(dataset, tmp_path, training(**GROWING, accumulate=2))
    found, expected = figures(of_two), figures(tmp_path)
    assert len(found) == len(expected) > 3
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-9)
    weights, others = (load_file(out / "model" / "model.safetensors") for out in (of_two, tmp_path))
    for name, values in others.items():
        assert weights[name].flatten().tolist() == pytest.approx(values.flatten().tolist(), abs=1e-9), name


def figures(out: Path) -> list[dict[str, Any]]:
    lines = (out / "training" / "metrics.jsonl").read_text("utf-8").splitlines()
    times = {"event", "seconds", "tokens_per_second"}
    return [{key: value for key, value in json.loads(line).items() if key not in times} for line in lines]


@pytest.mark.slow
@pytest.mark.promise("ranks")
def test_all_processes_stop_together_and_resume_to_the_same_bytes(dataset: Path, tmp_path: Path) -> None:
    config = training(max_steps=3000, save_every=50, validation={"every_steps": 1000, "bleu": False})
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    assert [code for code, _ in ends(start(dataset, straight, config))] == [0, 0]
    processes = start(dataset, stopped, config)
    while not list(stopped.glob("training/checkpoints/step-*")):
        time.sleep(0.05)
    processes[1].send_signal(signal.SIGTERM)
    found = ends(processes)
    assert [code for code, _ in found] == [75, 75], found
    processes = start(dataset, stopped, config)
    seen = max((stopped / "training" / "checkpoints").iterdir())
    while max((stopped / "training" / "checkpoints").iterdir()) == seen:
        time.sleep(0.05)
    processes[1].kill()
    began = time.monotonic()
    assert ends(processes)[0][0] == 75
    assert time.monotonic() - began < 60
    assert [code for code, _ in ends(start(dataset, stopped, config))] == [0, 0]
    first, second = (out / "model" / "model.safetensors" for out in (straight, stopped))
    assert first.read_bytes() == second.read_bytes()
    assert figures(straight) == figures(stopped)
