"""A training that is stopped, killed or fails at any place and is started again ends as one that never was."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.killing import Killed, result
from tests.tiny_training import run, training
from tfm.pipeline.errors import DataError, RecipeError, StoppedError
from tfm.pipeline.runtime.progress import Bar, NullReporter
from tfm.pipeline.scoring.validation import Validator
from tfm.pipeline.tasks.task import EvaluationSums
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training.checkpoints import train_state
from tfm.pipeline.training_config import TrainingConfig

pytestmark = [pytest.mark.promise("resume"), pytest.mark.usefixtures("no_curves")]

ROOT = Path(__file__).parents[2]
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulation, average of the last": {
        "accumulate": 4,
        "keep": {"last": 3, "average": "last"},
        "save_every": 3,
        "optimizer": {"name": "sgd"},
    },
    "moving average, best of early stopping, plateau": {
        "ema": 0.9,
        "max_steps": 100,
        "early_stopping": {"metric": "accuracy", "patience": 2},
        "keep": {"best": 2, "average": "best"},
        "schedule": {"name": "plateau", "peak": 0.01, "warmup_steps": 3, "patience": 0},
        "validation": {"every_epochs": 1},
        "optimizer": {"name": "muon", "weight_decay": 0.1},
    },
}


class SignalAt(NullReporter):
    """Sends this process a signal when the bar has moved to a step."""

    def __init__(self, step: int, number: signal.Signals) -> None:
        self.step, self.number = step, number

    @contextmanager
    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> Iterator[Bar]:
        reporter = self

        class Counting:
            def __init__(self) -> None:
                self.done = done

            def advance(self, amount: int = 1, note: str = "") -> None:
                self.done += amount
                if self.done == reporter.step:
                    os.kill(os.getpid(), reporter.number)

        yield Counting()


@pytest.fixture(
    scope="module",
    params=[pytest.param(each, marks=pytest.mark.slow if each == "plain" else ()) for each in VARIANTS],
)
def straight(
    request: pytest.FixtureRequest, dataset: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TrainingConfig, Path]:
    """A variant, and a run of it that nothing stopped."""
    config, out = training(**VARIANTS[request.param]), tmp_path_factory.mktemp("straight")
    run(dataset, out, config)
    return config, out


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("step", "number"), [(6, signal.SIGTERM), pytest.param(7, signal.SIGINT, marks=pytest.mark.slow)]
)
def test_stopped_and_resumed_is_the_same(
    straight: tuple[TrainingConfig, Path], dataset: Path, tmp_path: Path, step: int, number: signal.Signals
) -> None:
    config, expected = straight
    with pytest.raises(StoppedError, match=f"stopped by {number.name} after step {step}; the same command resumes"):
        run(dataset, tmp_path, config, reporter=SignalAt(step, number))
    assert not (tmp_path / "model").exists()
    run(dataset, tmp_path, config)
    assert result(tmp_path) == result(expected)


@pytest.mark.few(1)
@pytest.mark.parametrize("nth", [pytest.param(3, marks=pytest.mark.slow), 14])
def test_killed_while_saving_is_the_same(
    straight: tuple[TrainingConfig, Path], dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    config, expected = straight
    real, calls = os.fsync, 0

    def fsync(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise Killed
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(Killed):
            run(dataset, tmp_path, config)
    run(dataset, tmp_path, config)
    assert result(tmp_path) == result(expected)


@pytest.mark.slow
@pytest.mark.few(1)
def test_killed_while_validating_is_the_same(
    straight: tuple[TrainingConfig, Path], dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, expected = straight
    real, times = Validator.compute_metrics, 0

    def figures(*given: Any) -> dict[str, Any]:
        nonlocal times
        times += 1
        if times in (1, 3):
            raise Killed
        return real(*given)

    monkeypatch.setattr(Validator, "compute_metrics", figures)
    for _ in range(2):
        with pytest.raises(Killed):
            run(dataset, tmp_path, config)
    run(dataset, tmp_path, config)
    assert result(tmp_path) == result(expected)


@pytest.mark.slow
@pytest.mark.few(1)
def test_stopped_while_validating_leaves_at_once_and_is_the_same(
    straight: tuple[TrainingConfig, Path], dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, expected = straight
    real, calls = Translation.evaluate, 0

    def evaluate(*given: Any) -> EvaluationSums:
        nonlocal calls
        calls += 1
        os.kill(os.getpid(), signal.SIGTERM)
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(Translation, "evaluate", evaluate)
        with pytest.raises(StoppedError):
            run(dataset, tmp_path, config)
    assert calls == 1
    run(dataset, tmp_path, config)
    assert result(tmp_path) == result(expected)


@pytest.mark.slow
def test_a_damaged_newest_checkpoint_costs_only_its_steps(dataset: Path, tmp_path: Path) -> None:
    config = training(keep={"last": 2})
    run(dataset, tmp_path / "straight", config)
    with pytest.raises(StoppedError):
        run(dataset, tmp_path / "other", config, reporter=SignalAt(12, signal.SIGTERM))
    newest = max((tmp_path / "other" / "training" / "checkpoints").iterdir())
    assert newest.name == "step-0000012"
    (newest / "optimizer.safetensors").write_bytes(b"")
    run(dataset, tmp_path / "other", config)
    assert result(tmp_path / "other") == result(tmp_path / "straight")


def test_no_checkpoint_that_verifies_stops_instead_of_starting_over(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(dataset, tmp_path, training(), reporter=SignalAt(7, signal.SIGTERM))
    for folder in (tmp_path / "training" / "checkpoints").iterdir():
        (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(DataError, match="can be read; move the folder away"):
        run(dataset, tmp_path, training())


@pytest.mark.slow
def test_more_steps_continue_and_another_plan_is_set_aside(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path, training(max_steps=10))
    run(dataset, tmp_path, training(max_steps=20))
    run(dataset, tmp_path / "straight", training(max_steps=20))
    assert result(tmp_path) == result(tmp_path / "straight")
    run(dataset, tmp_path, training(max_steps=20, log_every=5))
    assert result(tmp_path)[0] == result(tmp_path / "straight")[0]
    assert not (tmp_path / "training.old-1").exists()
    run(dataset, tmp_path, training(max_steps=20), seed=4)
    assert (tmp_path / "training.old-1" / "metrics.jsonl").exists()
    run(dataset, tmp_path, training(max_steps=15), seed=4)  # less than was trained: that would not be this plan's model
    assert (tmp_path / "training.old-2").exists()
    assert [line["step"] for line in result(tmp_path)[1]][-1] == 15


def test_a_training_of_two_processes_is_not_resumed_by_one(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = train_state.Progress.model_dump

    def of_two(self: train_state.Progress, **options: Any) -> dict[str, Any]:
        document = real(self, **options)
        document["settings"]["world_size"] = 2
        return document

    with monkeypatch.context() as patch:
        patch.setattr(train_state.Progress, "model_dump", of_two)
        with pytest.raises(StoppedError):
            run(dataset, tmp_path, training(), reporter=SignalAt(7, signal.SIGTERM))
    with pytest.raises(RecipeError, match="nproc-per-node 2"):
        run(dataset, tmp_path, training())


@pytest.mark.slow
def test_killed_by_the_system_any_number_of_times_is_the_same(dataset: Path, tmp_path: Path) -> None:
    config = training(max_steps=600, save_every=20, ema=0.9, validation={"every_steps": 50}, threads=1)
    run(dataset, tmp_path / "straight", config)
    command = [sys.executable, "-m", "tests.tiny_training", str(dataset), str(tmp_path / "killed")]
    draw, kills = random.Random(1), 0

    def newest() -> str:
        return max((each.name for each in (tmp_path / "killed").glob("training/checkpoints/step-*")), default="")

    while True:
        process = subprocess.Popen([*command, config.model_dump_json()], cwd=ROOT)
        started, before = time.monotonic(), newest()
        while process.poll() is None and newest() == before:
            assert time.monotonic() - started < 120
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.5))
        process.kill()
        if process.wait() == 0:
            break
        kills += 1
    assert kills >= 3
    assert result(tmp_path / "killed") == result(tmp_path / "straight")
