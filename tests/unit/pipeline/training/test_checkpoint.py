"""Checkpoints: written whole or not at all, and refused when anything about them is not as it was written."""

import json
import os
from pathlib import Path

import pytest
import torch

from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.fully_sharded import shard_of_rank
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.training.checkpoints.checkpoint import Checkpoint, part_file_name
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints
from tfm.pipeline.training.checkpoints.weight_averaging import Ema, mean_weights

TENSORS = {"model": {"w": torch.arange(6.0).view(2, 3)}, "optimizer": {"w/step": torch.tensor(3.0)}}
FILES = ("model.safetensors", "optimizer.safetensors", "state.json")


class Warnings(NullReporter):
    def __init__(self) -> None:
        self.found: list[str] = []

    def warn(self, text: str) -> None:
        self.found.append(text)


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    found = Checkpoints(tmp_path / "checkpoints")
    for step in (5, 10):
        found.write(step, TENSORS, {"step": step, "loss": 0.1 + 0.2})
    return found


def test_what_was_written_is_read(checkpoints: Checkpoints) -> None:
    found = checkpoints.newest_verified(NullReporter())
    assert found is not None
    assert found.state == {"step": 10, "loss": 0.1 + 0.2}
    assert torch.equal(found.tensors("model")["w"], TENSORS["model"]["w"])
    assert found.tensors("optimizer")["w/step"].item() == 3


def test_no_checkpoints_are_no_error(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "none").newest_verified(NullReporter()) is None


def test_only_those_asked_for_are_kept(checkpoints: Checkpoints) -> None:
    checkpoints.write(15, TENSORS, {})
    checkpoints.retain_only({5, 15})
    assert checkpoints.steps() == [5, 15]
    assert sorted(entry.name for entry in checkpoints.folder.iterdir()) == ["step-0000005", "step-0000015"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", ["flip", "cut", "remove", "empty"])
def test_a_damaged_checkpoint_is_passed_over_by_name(checkpoints: Checkpoints, name: str, harm: str) -> None:
    file = checkpoints.checkpoint_folder(10) / name
    contents = bytearray(file.read_bytes())
    if harm == "flip":
        contents[len(contents) // 2] ^= 1
    file.unlink() if harm == "remove" else file.write_bytes({"cut": contents[:-1], "empty": b""}.get(harm, contents))
    reporter = Warnings()
    found = checkpoints.newest_verified(reporter)
    assert found is not None
    assert found.step == 5
    assert "step-0000010" in reporter.found[0]
    assert name in reporter.found[0]


def test_every_flipped_byte_of_the_state_is_noticed(checkpoints: Checkpoints) -> None:
    file = checkpoints.checkpoint_folder(10) / "state.json"
    contents = file.read_bytes()
    plain = json.loads(contents)
    for place in range(len(contents)):
        file.write_bytes(contents[:place] + bytes([contents[place] ^ 2]) + contents[place + 1 :])
        try:
            changed = checkpoints.read(10)
        except DataError:
            continue
        assert changed.state == plain["state"]  # white space may change


def test_a_file_that_does_not_belong_is_refused(checkpoints: Checkpoints) -> None:
    (checkpoints.checkpoint_folder(10) / "extra.pt").write_bytes(b"")
    with pytest.raises(DataError, match=r"extra\.pt"):
        checkpoints.read(10)


def test_checkpoints_that_are_all_damaged_stop_the_run(checkpoints: Checkpoints) -> None:
    for step in (5, 10):
        (checkpoints.checkpoint_folder(step) / "state.json").write_text("{}")
    with pytest.raises(DataError, match="no checkpoint of 2 can be read"):
        checkpoints.newest_verified(NullReporter())


@pytest.mark.parametrize("call", ["fsync", "rename", "mkdir"])
def test_a_failing_write_leaves_what_was_there(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError, match="No space"):
            checkpoints.write(15, TENSORS, {})
    assert checkpoints.steps() == [5, 10]
    assert [entry.name for entry in checkpoints.folder.iterdir() if entry.name.startswith(".")] == []
    checkpoints.write(15, TENSORS, {})
    assert checkpoints.read(15).step == 15


def test_leftovers_of_a_killed_process_are_swept(checkpoints: Checkpoints) -> None:
    (checkpoints.folder / ".draft-0000015").mkdir()
    (checkpoints.folder / ".dropped-0000005").mkdir()
    checkpoints.remove_leftovers()
    assert sorted(entry.name for entry in checkpoints.folder.iterdir()) == ["step-0000005", "step-0000010"]


def test_mean_is_of_all_checkpoints() -> None:
    found = mean_weights({"w": torch.full((2,), value)} for value in (1.0, 2.0, 6.0))
    assert found["w"].tolist() == [3.0, 3.0]
    assert found["w"].dtype == torch.float32
    with pytest.raises(ValueError, match="no weights"):
        mean_weights([])


def test_moving_average_follows_its_formula_and_gives_the_weights_back() -> None:
    model = torch.nn.Linear(2, 2).double()
    ema, expected = Ema(model, 0.9), model.weight.detach().clone()
    for step in range(1, 101):
        with torch.no_grad():
            model.weight.add_(1.0)
        ema.update(step)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model.weight.detach()
    own = model.weight.detach().clone()
    with ema.use_ema_weights():
        torch.testing.assert_close(model.weight.detach(), expected, rtol=1e-12, atol=0)
    assert torch.equal(model.weight.detach(), own)


def write_parts(folder: Path, size: int = 3) -> Checkpoints:
    """A checkpoint as processes with a part of the weights each write it, one after the other."""
    found, whole = Checkpoints(folder / "run" / "training" / "checkpoints"), torch.arange(14.0).reshape(7, 2)
    step, files = torch.tensor(4.0), {}
    found._make_draft_folder(8)
    for rank in range(size):
        group = {"w": shard_of_rank(whole, rank, size).contiguous(), "w/step": step}
        files |= found._write_tensors(8, {part_file_name("model", rank, size): group})
    found._publish_draft(8, files, {"step": 8})
    return found


@pytest.mark.parametrize("size", [2, 3, 5])
def test_parts_of_processes_are_read_whole_or_as_parts_of_any_number_of_them(tmp_path: Path, size: int) -> None:
    checkpoint, whole = write_parts(tmp_path, size).read(8), torch.arange(14.0).reshape(7, 2)
    assert checkpoint.has_tensors("model")
    assert not checkpoint.has_tensors("ema")
    assert torch.equal(checkpoint.tensors("model")["w"], whole)
    for others in (2, 3, 5, 9):
        parts = [checkpoint.tensors("model", rank, others) for rank in range(others)]
        assert torch.equal(torch.cat([part["w"] for part in parts]), whole)
        assert all(part["w/step"].item() == 4 for part in parts)


def test_a_part_that_is_missing_or_does_not_fit_is_named(tmp_path: Path) -> None:
    checkpoints = write_parts(tmp_path)
    whole = checkpoints.read(8)
    fewer = {name: each for name, each in whole.files.items() if "00002" not in name}
    with pytest.raises(DataError, match="the parts of model are not complete"):
        Checkpoint(whole.folder, 8, {}, fewer).tensors("model")
    group = {"w": torch.zeros(2, 5), "w/step": torch.tensor(4.0)}
    checkpoints._make_draft_folder(9)
    files = checkpoints._write_tensors(9, {part_file_name("model", 0, 2): group})
    files |= checkpoints._write_tensors(9, {part_file_name("model", 1, 2): {**group, "w": torch.zeros(2, 3)}})
    files |= checkpoints._write_tensors(9, {part_file_name("ema", 0, 2): group, part_file_name("ema", 1, 2): {}})
    checkpoints._publish_draft(9, files, {"step": 9})
    for name, words in (("model", "do not fit"), ("ema", "have different tensors")):
        with pytest.raises(DataError, match=words):
            checkpoints.read(9).tensors(name)
