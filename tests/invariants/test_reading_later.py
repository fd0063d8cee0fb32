"""What came of an update may be read while the next one is computed, as it is on a GPU: weights, log, messages and
checkpoints are the same as where it is read at once, as it is on a CPU."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.killing import TIMES, result
from tests.tiny_training import run, training
from tfm.model.layers.linear import Linear
from tfm.pipeline.errors import DataError, StoppedError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.tasks.task import LossSums
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training import loop
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints
from tfm.pipeline.training.loop import Trainer
from tfm.pipeline.training.optimizers import OPTIMIZERS, can_skip_step, make_optimizer
from tfm.pipeline.update_config import OptimizerConfig

pytestmark = pytest.mark.usefixtures("no_curves")
INFINITE = float("inf")
CONFIG = {
    "max_steps": 14,
    "threads": 1,  # with more it may say that other programs are busy, in one way of reading and not in the other
    "accumulate": 2,
    "ema": 0.9,
    "save_every": 4,
    "keep": {"last": 9},
    "optimizer": {"name": "adamw", "weight_decay": 0.1},
    "validation": {"every_steps": 7, "bleu": False},
}


class Heard(NullReporter):
    """What a training said, and how many lines it had logged after each update."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.num_lines: list[int] = []

    def warn(self, text: str) -> None:
        self.said.append(text)


class Ways:
    """The same training, begun and resumed, once with each way of reading."""

    def __init__(self, dataset: Path, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.dataset, self.folder, self.patch = dataset, folder, patch
        self.heard: dict[str, Heard] = {}

    def train(self, runs: int = 1, *, spoil: Any = None, stop_at: int = 0, **changes: Any) -> None:
        """spoil(number, loss): the loss of the so many-th batch, in its place. stop_at: the update to stop after."""
        for way, devices in (("at-once", ()), ("later", ("cpu",))):
            self.patch.setattr(loop, "ASYNC_DEVICES", devices)
            heard = self.heard[way] = Heard()
            with pytest.MonkeyPatch.context() as patch:
                _watch(patch, heard, spoil, stop_at)
                for _ in range(runs):
                    try:
                        run(self.dataset, self.folder / way, training(**{**CONFIG, **changes}), reporter=heard)
                    except (DataError, StoppedError) as error:
                        heard.said.append(str(error))
        assert self.heard["later"].said == self.heard["at-once"].said

    def lines(self, way: str) -> list[dict[str, Any]]:
        text = (self.folder / way / "training" / "metrics.jsonl").read_text("utf-8")
        return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in text.splitlines()]

    def assert_same(self) -> None:
        assert result(self.folder / "later") == result(self.folder / "at-once")
        kept = [Checkpoints(self.folder / way / "training" / "checkpoints") for way in self.heard]
        assert kept[0].steps() == kept[1].steps() != []
        for step in kept[0].steps():
            one, other = (each.read(step) for each in kept)
            assert _timeless(one.state) == _timeless(other.state)
            for name in ("model", "optimizer", "ema"):
                assert _bits(one.tensors(name)) == _bits(other.tensors(name)), (step, name)


def _timeless(state: dict[str, Any]) -> dict[str, Any]:
    line = {key: value for key, value in state["line"].items() if key not in TIMES}
    return {key: value for key, value in {**state, "line": line}.items() if key not in TIMES}


def _bits(tensors: dict[str, torch.Tensor]) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


def _watch(patch: pytest.MonkeyPatch, heard: Heard, spoil: Any, stop_at: int) -> None:
    real_loss, real_update, numbers = Translation.loss, Trainer.update, iter(range(1, 1000))

    def loss(self: Translation, model: Any, batch: Any) -> LossSums:
        found = real_loss(self, model, batch)
        return found if spoil is None else spoil(next(numbers), found)

    def update(self: Trainer, bar: Any) -> None:
        real_update(self, bar)
        heard.num_lines.append(len(self.log.lines))
        if self.state.progress.step == stop_at:
            self.stop.signal = "SIGTERM"

    patch.setattr(Translation, "loss", loss)
    patch.setattr(Trainer, "update", update)


@pytest.fixture
def ways(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ways:
    return Ways(dataset, tmp_path, monkeypatch)


def spoiled(numbers: tuple[int, ...], where: str) -> Any:
    """Losses of which some, or their gradients, are not finite."""

    def spoil(number: int, found: LossSums) -> LossSums:
        if number not in numbers:
            return found
        if where == "loss":
            return LossSums(found.sum * INFINITE, found.nll, found.count)
        found.sum.register_hook(lambda gradient: gradient * INFINITE)
        return found

    return spoil


@pytest.mark.slow
def test_the_result_is_the_same(ways: Ways) -> None:
    ways.train(log_every=1, validation={"every_steps": 14, "bleu": False}, save_every=14)
    ways.assert_same()
    assert ways.heard["at-once"].num_lines == list(range(1, 15))
    assert ways.heard["later"].num_lines == list(range(14)), "each update's line is written an update later"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("numbers", "where"),
    [((5, 8), "loss"), ((13, 14), "loss"), ((5,), "gradient"), ((16,), "gradient"), ((28,), "loss")],
    ids=["two in a row", "before a validation", "in the middle", "before a checkpoint", "the last"],
)
def test_what_is_not_finite_changes_nothing(ways: Ways, numbers: tuple[int, ...], where: str) -> None:
    ways.train(spoil=spoiled(numbers, where))
    ways.assert_same()
    assert len(ways.heard["later"].said) == len({(number + 1) // 2 for number in numbers})


def test_what_is_not_finite_from_the_beginning(ways: Ways) -> None:
    """The device then has made the optimiser's memory, of zeros, which it would make at the first step that counts."""
    ways.train(spoil=spoiled((1, 2, 3), "loss"))
    assert result(ways.folder / "later") == result(ways.folder / "at-once")


def test_training_ends_where_nothing_is_finite_any_more(ways: Ways) -> None:
    ways.train(spoil=spoiled(tuple(range(9, 40)), "gradient"), log_every=1)
    assert "not finite 5 times in a row, last at step 9 (epoch" in ways.heard["later"].said[-1]
    assert ways.lines("later") == ways.lines("at-once")


@pytest.mark.slow
def test_memory_that_runs_out(ways: Ways) -> None:
    """All that went before is logged, and the same command goes on."""

    def spoil(number: int, found: LossSums) -> LossSums:
        if number == 19:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return found

    ways.train(spoil=spoil, log_every=1)
    assert "step 10: a batch of" in ways.heard["later"].said[-1]
    assert ways.lines("later") == ways.lines("at-once")
    ways.train()
    ways.assert_same()


@pytest.mark.few(1)
@pytest.mark.parametrize("step", [3, 4, 7])
def test_stopped_and_resumed(ways: Ways, step: int) -> None:
    """Between checkpoints, at one, and at a validation."""
    ways.train(2, stop_at=step)
    assert [f"after step {step};" in text for text in ways.heard["later"].said] == [True]
    ways.assert_same()


def test_which_optimisers_skip_on_the_device() -> None:
    model = torch.nn.Sequential(torch.nn.Sequential(Linear(2, 2, compute_dtype=torch.float32)))
    found = {name: can_skip_step(make_optimizer(model, OptimizerConfig(name=name))) for name in OPTIMIZERS}
    assert found == {"adam": True, "adamw": True, "sgd": False, "adagrad": False, "muon": False}
