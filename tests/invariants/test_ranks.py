"""Two processes of one training: they stop together, one does not outlive the other, and they resume together."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import RECIPE, ROOT, TINY, write_corpora
from tests.killing import ALL_THREE, MOMENTS, DieAt, SignalAt, Spoil, ends, result, start
from tests.tiny_training import training
from tfm.pipeline.training_config import TrainingConfig

pytestmark = [pytest.mark.slow, pytest.mark.promise("ranks")]
Count = Callable[[str, object], None]
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"max_steps": 25, "save_every": 3},
    "accumulated": {"max_steps": 25, "save_every": 3, "accumulate": 4},
    "early stopping, moving average, mean of the best": ALL_THREE,
    "early stopping, moving average, mean of the best, accumulated": {**ALL_THREE, "accumulate": 4},
}
# What only the first process does, the other cannot die of.
OF_BOTH = ("in the middle of an epoch", "at an epoch's end", "while validating")
DEATHS = [(moment, 0) for moment in MOMENTS] + [(moment, 1) for moment in OF_BOTH]


def whole(dataset: Path, out: Path, config: TrainingConfig) -> Any:
    """The result of two processes that nothing disturbs from here on."""
    found = ends(start(dataset, out, config, ranks=2))
    assert [each.code for each in found] == [0, 0], found
    return result(out)


@pytest.fixture(scope="module", params=VARIANTS)
def straight(
    request: pytest.FixtureRequest, dataset: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TrainingConfig, Any]:
    """A variant, and the result of a run of it that nothing stopped."""
    config = training(**VARIANTS[request.param])
    return config, whole(dataset, tmp_path_factory.mktemp("straight"), config)


@pytest.mark.parametrize(("moment", "rank"), DEATHS)
def test_one_is_killed_and_the_other_leaves_and_both_resume(
    straight: tuple[TrainingConfig, Any], dataset: Path, tmp_path: Path, moment: str, rank: int, record_property: Count
) -> None:
    config, expected = straight
    # accumulated, a process sees fewer batches and epochs before the end
    nth = min(MOMENTS[moment].nth, 8) if config.accumulate > 1 else min(MOMENTS[moment].nth, 12)
    found = ends(start(dataset, tmp_path, config, ranks=2, rank=rank, prepare=DieAt(moment, nth)))
    dead, other = found[rank], found[1 - rank]
    assert dead.code == -signal.SIGKILL, dead.said
    assert other.seconds < 60
    if moment != "while publishing":  # the other has ended well by then
        assert other.code == 75, other.said
        assert "another process of this training has ended" in other.said
    assert "Traceback" not in other.said
    assert whole(dataset, tmp_path, config) == expected
    record_property("kills", 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("rank", [0, 1])
def test_one_is_asked_to_stop_and_both_do_after_the_same_step(
    straight: tuple[TrainingConfig, Any], dataset: Path, tmp_path: Path, rank: int, number: int, record_property: Count
) -> None:
    config, expected = straight
    asked = SignalAt("in the middle of an epoch", 8, number)
    found = ends(start(dataset, tmp_path, config, ranks=2, rank=rank, prepare=asked))
    assert [each.code for each in found] == [75, 75], found
    newest = max((tmp_path / "training" / "checkpoints").glob("step-*"))
    step = json.loads((newest / "state.json").read_text("utf-8"))["state"]["step"]
    assert f"after step {step}; the same command resumes it" in found[0].said
    assert found[1].said.count("resumes it") == 0  # once is enough
    assert whole(dataset, tmp_path, config) == expected
    record_property("stops", 1)


@pytest.mark.promise("training")
def test_what_is_not_finite_in_one_process_is_left_out_by_both(dataset: Path, tmp_path: Path) -> None:
    config = training(max_steps=12, save_every=1, keep={"last": 12}, log_every=1)
    found = ends(start(dataset, tmp_path, config, ranks=2, rank=1, prepare=Spoil(4, 5)))
    assert [each.code for each in found] == [0, 0], found
    losses = {line["step"]: line["loss"] for line in result(tmp_path)[1] if line["event"] == "train"}
    assert [step for step, loss in losses.items() if loss is None] == [4, 5]
    weights = {
        step: (tmp_path / "training" / "checkpoints" / f"step-{step:07d}" / "model.safetensors").read_bytes()
        for step in (3, 4, 5, 6)
    }
    assert weights[3] == weights[4] == weights[5] != weights[6]


@pytest.mark.promise("training")
@pytest.mark.parametrize("room", [True, False])
def test_what_goes_wrong_in_one_process_ends_both_with_its_reason(room: bool, dataset: Path, tmp_path: Path) -> None:
    config = training(max_steps=25, save_every=2)
    found = ends(start(dataset, tmp_path, config, ranks=2, rank=1, prepare=Spoil(7, 30, room)))
    assert [each.code for each in found] == [65, 65], found
    reason = "not finite 5 times in a row" if room else "does not fit in memory; lower data.batch_tokens"
    assert reason in found[0].said
    assert "Traceback" not in found[0].said + found[1].said
    resumed = whole(dataset, tmp_path, config)
    if not room:  # else the updates left out before the last checkpoint stay left out
        assert resumed == whole(dataset, tmp_path / "straight", config)


# As torchrun starts them


def torchrun(*words: str | Path, folder: Path = ROOT, **more: Any) -> subprocess.Popen[str]:
    """Two processes of a `tfm` command in a folder; stderr is that of torchrun and of both."""
    start = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    command = [*start, "-m", "tfm.cli.app"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, **more}
    return subprocess.Popen([*command, *map(str, words)], cwd=folder, env=environment, **pipes)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--data", "nowhere", "--out", "run"), "nowhere: there is nothing here"),
        (("--data", "DATASET"), "Invalid value for --out"),
        (("--data", "DATASET", "--outt", "run"), "No such option"),
        (("--data", "DATASET", "--out", "OUT", "--set", "model.max_length=6"), "train examples have more than"),
        (("--data", "DATASET", "--out", "FILE"), "cannot be written"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_all_of_them_have_to_say_is_said_once(
    dataset: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "file").write_text("")
    places = {"DATASET": dataset, "OUT": tmp_path / "run", "FILE": tmp_path / "file"}
    process = torchrun("train", "--device", "cpu", *(places.get(word, word) for word in words))
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    assert err.count(said) == 1, err


def test_torchrun_is_asked_to_stop_and_its_command_resumes(dataset: Path, tmp_path: Path) -> None:
    def words(out: Path) -> tuple[str | Path, ...]:
        sets = ("--set", "training.save_every=20", "--set", "training.validation.every_steps=200")
        return ("train", "--data", dataset, "--out", out, "--max-steps", "200", *TINY, *sets, "--device", "cpu")

    process = torchrun(*words(tmp_path / "stopped"))
    deadline = time.monotonic() + 120
    while not list((tmp_path / "stopped").glob("training/checkpoints/step-*")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert err.count("the same command resumes it") == 1, err
    assert not (tmp_path / "stopped" / "model").exists()
    for out in (tmp_path / "stopped", tmp_path / "straight"):
        process = torchrun(*words(out))
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert result(tmp_path / "stopped") == result(tmp_path / "straight")


# A whole run


def ran(folder: Path, *words: str | Path, **more: Any) -> tuple[int, str, str]:
    """Exit code of torchrun, stdout and stderr."""
    process = torchrun(*words, folder=folder, stdout=subprocess.PIPE, **more)
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    write_corpora(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE.format(folder="."))
    return tmp_path


def test_the_first_does_what_is_not_training_and_the_others_wait(recipe: Path) -> None:
    code, _, err = ran(recipe, "run", "tiny.toml", "--device", "cpu")
    assert code == 0, err
    assert all(err.count(f"[{number}/5]") == 1 for number in range(1, 6)), err
    assert "2 processes" in err
    code, _, err = ran(recipe, "run", "tiny.toml", "--device", "cpu")
    assert code == 0, err
    assert err.count("up to date, nothing to do") == 5, err
    shutil.rmtree(recipe / "runs" / "tiny" / "translations")
    code, _, err = ran(recipe, "run", "tiny.toml", "--device", "cpu", "--set", "training.max_steps=12")
    assert code == 0, err
    assert "resuming after step 10" in err
    assert (recipe / "runs" / "tiny" / "translations" / "manifest.json").exists()
    source = recipe / "test.de"
    code, out, err = ran(recipe, "translate", "runs/tiny", source, "--device", "cpu")
    assert code == 0, err
    assert len(out.splitlines()) == len(source.read_text("utf-8").splitlines()), out


def test_two_recipes_are_trained_one_after_the_other(recipe: Path) -> None:
    (recipe / "other.toml").write_text('extends = "tiny.toml"\nseed = 2\n')
    code, _, err = ran(recipe, "run", "tiny.toml", "other.toml", "--device", "cpu")
    assert code == 0, err
    assert err.count("2 processes") == 2
    assert (recipe / "runs" / "other" / "scores" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("file", "content", "said"), [("valid.en", b"\xff\n", "valid.en, line 1"), ("test.en", b"one\n", "test.en has 1")]
)
def test_all_end_where_the_first_fails(recipe: Path, file: str, content: bytes, said: str) -> None:
    (recipe / file).write_bytes(content)
    code, _, err = ran(recipe, "run", "tiny.toml", "--device", "cpu")
    assert code == 1  # torchrun's, of any failure
    assert err.count(said) == 1, err
    assert "exitcode  : 65" in err
    assert not (recipe / "runs" / "tiny" / "model").exists()
