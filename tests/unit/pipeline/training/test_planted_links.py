"""The folder of a training with links out, pipes and devices in it: refused, before anything is read or written."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from tests.planted import KINDS, PLANTS, tree, write_outside
from tests.tiny_training import run, training, write_dataset
from tfm.pipeline.errors import DataError, WriteError
from tfm.pipeline.reports.training_curves import draw_curves, read_metrics
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints
from tfm.pipeline.training.metrics_log import MetricsLog

LINE = {"event": "train", "step": 1}
# of those that are never a regular file or folder
SPECIAL = ["moved out", "link to a folder", "link to a file", "dangling link", "endless", "full", "pipe"]


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder outside; and nothing is waited for."""
    write_outside(tmp_path / "outside")
    signal.alarm(20)
    yield tmp_path / "outside"
    signal.alarm(0)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset")


def write(checkpoints: Checkpoints) -> None:
    checkpoints.write(4, {"model": {"w": torch.zeros(2)}}, {})


def keep(checkpoints: Checkpoints) -> None:
    checkpoints.retain_only(())


def read(checkpoints: Checkpoints) -> None:
    checkpoints.newest_verified(NullReporter())


def log(checkpoints: Checkpoints) -> None:
    found = MetricsLog(checkpoints.folder.parent / "metrics.jsonl")
    found.truncate(step=1, last_validation_step=1)
    found.append(LINE)
    found.sync()
    draw_curves(found.lines, found.file.with_name("curves.svg"))


NAMES = (
    *("training", "training/checkpoints", "training/metrics.jsonl", "training/curves.svg"),
    *("training/.metrics.jsonl.draft", "training/.curves.svg.draft"),
    *(
        f"training/checkpoints/{name}"
        for name in (".draft-0000004", ".dropped-0000004", "step-0000002", "step-0000004")
    ),
    "training/checkpoints/step-0000004/state.json",
    "training/checkpoints/step-0000004/model.safetensors",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a checkpoint and metrics."""
    checkpoints = Checkpoints(tmp_path_factory.mktemp("made") / "training" / "checkpoints")
    write(checkpoints)
    log(checkpoints)
    return checkpoints.folder.parent.parent


@pytest.mark.parametrize("touch", [write, keep, read, Checkpoints.remove_leftovers, log])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(8)
def test_nothing_outside_is_touched(
    made: Path, tmp_path: Path, outside: Path, touch: Callable[[Checkpoints], None], kind: str
) -> None:
    for number, name in enumerate(NAMES):
        place = shutil.copytree(made, tmp_path / str(number))
        PLANTS[kind](place / name, outside)
        before = tree(outside)
        with suppress(WriteError, DataError, OSError):
            touch(Checkpoints(place / "training" / "checkpoints"))
        assert tree(outside) == before, name
        assert not (outside / "nothing").exists(), name


@pytest.mark.parametrize("kind", ["moved out", "dangling link", "pipe"])
@pytest.mark.parametrize("name", ["training", "training/checkpoints", "training/tensorboard", "training/metrics.jsonl"])
def test_a_training_is_refused_before_any_work(
    made: Path, dataset: Path, tmp_path: Path, outside: Path, name: str, kind: str
) -> None:
    place = shutil.copytree(made, tmp_path / "run")
    PLANTS[kind](place / name, outside)
    before = tree(outside), tree(place)
    with pytest.raises(WriteError, match=rf"{name}: is a (link|special file) that tfm did not make; remove it"):
        run(dataset, place, training(max_steps=1))
    assert (tree(outside), tree(place)) == before


def test_the_folder_of_a_run_may_be_a_link(made: Path, tmp_path: Path) -> None:
    """As that of a run on another disk."""
    shutil.copytree(made, tmp_path / "disk")
    (tmp_path / "run").symlink_to("disk")
    checkpoints = Checkpoints(tmp_path / "run" / "training" / "checkpoints")
    write(checkpoints)
    log(checkpoints)
    assert checkpoints.newest_verified(NullReporter()) is not None
    checkpoints.retain_only(())
    assert checkpoints.steps() == []
    assert os.listdir(tmp_path / "disk" / "training" / "checkpoints") == []


def test_only_what_tfm_left_half_done_is_swept_away(made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "run") / "training" / "checkpoints"
    for name in (".draft-0000009", ".dropped-0000009", ".data-of-mine", ".diary-2"):
        (folder / name).mkdir()
    Checkpoints(folder).remove_leftovers()
    assert sorted(os.listdir(folder)) == [".data-of-mine", ".diary-2", "step-0000004"]


@pytest.mark.parametrize("kind", [*SPECIAL, "folder"])
def test_metrics_that_are_no_file_are_not_read(made: Path, tmp_path: Path, outside: Path, kind: str) -> None:
    file = shutil.copytree(made, tmp_path / "run") / "training" / "metrics.jsonl"
    PLANTS[kind](file, outside)
    with pytest.raises((DataError, FileNotFoundError), match=r"metrics\.jsonl"):
        read_metrics(file)
