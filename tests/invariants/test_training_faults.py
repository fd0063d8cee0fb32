"""What is not finite spoils no weights, what does not fit in memory is named, and who is in a hurry harms nothing."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.killing import Hurry, LittleRoom, ends, result, start
from tests.tiny_training import MODEL, run, training, write_dataset
from tfm.model.config import StackConfig
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring import validation
from tfm.pipeline.tasks import task
from tfm.pipeline.tasks.task import LossSums
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training.assembly import starting_point as first_state
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints
from tfm.pipeline.training.loop import Trainer

pytestmark = pytest.mark.usefixtures("no_curves")
Count = Callable[[str, object], None]
OF_A_GPU = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
OF_A_CPU = RuntimeError("[enforce fail at alloc_cpu.cpp:118] . DefaultCPUAllocator: can't allocate memory: you tried")
OF_A_MAC = RuntimeError("MPS backend out of memory (MPS allocated: 8.00 GB, other allocations: 1.00 GB)")
OF_ANOTHER = RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 4 bytes.")


# Not finite


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[list[torch.Tensor]]]:
    """Weights, moving average and the optimiser's memory before and after each update, by its step."""
    seen: dict[int, list[list[torch.Tensor]]] = {}
    real = Trainer.update

    def all_of(trainer: Trainer) -> list[torch.Tensor]:
        return [tensor.clone() for group in trainer.state.tensors().values() for tensor in group.values()]

    def update(trainer: Trainer, bar: Any) -> Any:
        before = all_of(trainer)
        found = real(trainer, bar)
        seen[trainer.state.progress.step] = [before, all_of(trainer)]
        return found

    monkeypatch.setattr(Trainer, "update", update)
    return seen


@pytest.mark.few(1)
@pytest.mark.promise("training")
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_what_is_not_finite_changes_nothing(
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    updates: dict[int, list[list[torch.Tensor]]],
    value: float,
    where: str,
) -> None:
    real, calls = Translation.loss, iter(range(1, 1000))

    def loss(self: Translation, model: Any, batch: Any) -> Any:
        found = real(self, model, batch)
        if next(calls) in (4, 5):
            if where == "gradient":  # the loss itself stays finite
                found.sum.register_hook(lambda gradient: gradient * value)
            else:
                found.sum.data.fill_(value)
        return found

    monkeypatch.setattr(Translation, "loss", loss)
    warned: list[str] = []
    monkeypatch.setattr(NullReporter, "warn", lambda _, text: warned.append(text))
    run(dataset, tmp_path, training(max_steps=8, ema=0.9, optimizer={"name": "adamw", "weight_decay": 0.1}))
    unchanged = [
        step
        for step, (before, after) in updates.items()
        if len(before) == len(after) and all(map(torch.equal, before, after))
    ]
    assert unchanged == [4, 5]
    assert [text.partition(", rows")[0] for text in warned] == [
        f"loss or gradient is not finite at step {step} (epoch 1, batch {step}" for step in (4, 5)
    ]


@pytest.mark.promise("training")
def test_a_rate_that_is_too_high_stops_training(dataset: Path, tmp_path: Path) -> None:
    config = training(
        max_steps=40,
        optimizer={"name": "sgd"},
        clip_norm=None,
        schedule={"name": "linear", "peak": 1e30, "warmup_steps": 1000},
        validation={"every_steps": 2, "bleu": False},
    )
    with pytest.raises(DataError, match=r"not finite 5 times in a row, last at step \d+ \(epoch \d+, batch") as caught:
        run(dataset, tmp_path, config)
    assert caught.value.exit_code == 65
    assert len(str(caught.value).splitlines()) == 2
    checkpoints = Checkpoints(tmp_path / "training" / "checkpoints")
    found = checkpoints.read(max(checkpoints.steps()))
    assert f"the checkpoint of step {found.step} is intact" in str(caught.value)
    assert all(tensor.isfinite().all() for tensor in found.tensors("model").values())


@pytest.mark.promise("training")
def test_what_was_learnt_before_can_be_published_and_gone_on_from(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the message says."""
    real, calls = Translation.loss, iter(range(1, 1000))

    def loss(self: Translation, model: Any, batch: Any) -> Any:
        found = real(self, model, batch)
        return LossSums(found.sum * float("inf"), found.nll, found.count) if next(calls) > 11 else found

    config = training(max_steps=40, validation={"every_steps": 5, "bleu": False})
    with monkeypatch.context() as patch:
        patch.setattr(Translation, "loss", loss)
        with pytest.raises(
            DataError, match=r"training\.max_steps = 15\) and start another training from it \(--init-from"
        ):
            run(dataset, tmp_path, config)
    first = run(dataset, tmp_path, config.model_copy(update={"max_steps": 15}))
    lower = training(max_steps=5, schedule={"name": "constant", "peak": 1e-4}, validation=config.validation)
    run(dataset, tmp_path / "on", lower.model_copy(update={"init_from": str(first)}))
    (before,) = (line["loss"] for line in result(tmp_path)[1] if line["event"] == "valid" and line["step"] == 15)
    (after,) = (line["loss"] for line in result(tmp_path / "on")[1] if line["event"] == "valid")
    assert after < before + 0.01


# Too large


@pytest.mark.few(1)
@pytest.mark.promise("training")
@pytest.mark.parametrize("error", [OF_A_GPU, OF_A_CPU, OF_A_MAC, OF_ANOTHER, MemoryError()], ids=str)
def test_a_batch_that_does_not_fit_is_named_and_costs_its_step(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    config, calls = training(max_steps=8, save_every=3, validation={"every_steps": 8, "bleu": False}), iter(range(100))
    run(dataset, tmp_path / "straight", config)
    real = Translation.loss

    def loss(self: Translation, model: Any, batch: Any) -> Any:
        if next(calls) == 4:
            raise error
        return real(self, model, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Translation, "loss", loss)
        with pytest.raises(DataError, match=r"step 5: a batch of \d+ rows x \d+ tokens .* lower data\.batch_tokens"):
            run(dataset, tmp_path / "other", config)
    Checkpoints(tmp_path / "other" / "training" / "checkpoints").read(3)
    run(dataset, tmp_path / "other", config)
    assert result(tmp_path / "other") == result(tmp_path / "straight")


@pytest.mark.promise("training")
@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (Translation, "evaluate", r"validation: a batch of \d+ rows x \d+ tokens .* lower data\.batch_tokens"),
        (validation, "decode", r"validation: .* lower decoding\.batch_sentences"),
        (first_state, "make_optimizer", r"the model and its optimiser do not fit .* smaller"),
    ],
)
@pytest.mark.few(1)
def test_whatever_does_not_fit_is_named(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, said: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OF_A_CPU

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        with pytest.raises(DataError, match=said):
            run(dataset, tmp_path, training(max_steps=5))
    run(dataset, tmp_path, training(max_steps=5))
    open_artifact(tmp_path / "model", "train")


@pytest.mark.promise("training")
def test_another_error_is_not_taken_for_one_of_memory(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(Translation, "loss", fail)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        run(dataset, tmp_path, training(max_steps=5))


@pytest.mark.slow
@pytest.mark.promise("training")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's address space")
def test_memory_that_really_runs_out_is_named(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "dataset", batch_tokens=480)
    # The hidden layer of a whole batch takes 100 MB, which no allocator keeps for the next one; all the rest far less.
    stack = StackConfig(layers=1, dim=16, heads=2, feed_forward_dim=65536)
    model = MODEL.model_copy(update={"encoder": stack})
    config = training(max_steps=12, save_every=2, validation={"every_steps": 12, "bleu": False})
    (end,) = ends(start(dataset, tmp_path / "other", config, model=model, prepare=LittleRoom(5, 4_000_000)))
    assert end.code == 65, end.said
    assert "does not fit in memory; lower data.batch_tokens" in end.said
    assert len(end.said.splitlines()) == 1
    for out in (tmp_path / "other", tmp_path / "straight"):
        (end,) = ends(start(dataset, out, config, model=model))
        assert end.code == 0, end.said
    assert result(tmp_path / "other") == result(tmp_path / "straight")


@pytest.mark.promise("training")
def test_an_epoch_without_an_example_is_named(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = task.make_batches
    monkeypatch.setattr(
        task, "make_batches", lambda *given, epoch, **more: [] if epoch else real(*given, epoch=0, **more)
    )
    with pytest.raises(DataError, match="no example is used in epoch 2: raise the weights"):
        run(dataset, tmp_path, training())


# In a hurry


@pytest.mark.slow
@pytest.mark.promise("resume")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("moment", "nth"),
    [("in the middle of an epoch", 8), ("while validating", 3), ("while writing a checkpoint", 5)],
)
def test_asked_twice_it_leaves_at_once_and_resumes(
    dataset: Path, tmp_path: Path, moment: str, nth: int, number: int, record_property: Count
) -> None:
    config = training(max_steps=12)
    (end,) = ends(start(dataset, tmp_path / "hurried", config, prepare=Hurry(moment, nth, number)), patience=30)
    assert end.code == 128 + number, end.said
    assert end.said.strip() == "stopping after this step; press Ctrl-C again to quit immediately"
    for out in (tmp_path / "hurried", tmp_path / "straight"):
        (end,) = ends(start(dataset, out, config))
        assert end.code == 0, end.said
    assert result(tmp_path / "hurried") == result(tmp_path / "straight")
    record_property("stops", 1)
