"""How many threads a training has: what is measured of other programs, and what is said and kept."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.invariants.test_resume import SignalAt
from tests.recording_reporter import Listening
from tests.tiny_training import run, training, write_dataset
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import StoppedError
from tfm.pipeline.runtime import threads
from tfm.pipeline.runtime.threads import (
    TICKS_PER_SECOND,
    CpuLoad,
    CpuLoadWatch,
    CpuSample,
    available_threads,
    choose_num_threads,
    cpu_quota,
    cpu_seconds,
    load_between,
    read_cpu_sample,
)

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset")


@pytest.fixture
def four_processors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine of four processors, all idle, on two of which we may run besides another two."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "STAT_FILE", tmp_path / "stat")
    monkeypatch.setattr(threads, "CGROUP_FOLDER", tmp_path / "cgroup")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    stat(tmp_path, 0, 0, 0, 0)
    return tmp_path


def stat(folder: Path, *busy: float) -> None:
    """Write how many seconds each processor has worked: as user, niced, system, idle, waiting, interrupted, stolen."""
    ticks = [int(each * TICKS_PER_SECOND) for each in busy]
    lines = [f"cpu{number} {each} 0 0 777 55 0 0 0 0 0" for number, each in enumerate([*ticks, 99_999])]
    (folder / "stat").write_text("\n".join(["cpu 1 2 3 4 5 6 7 8 9 10", *lines, "intr 1 2"]))


@pytest.mark.parametrize(("others", "found"), [(0.0, 4), (0.3, 4), (0.6, 3), (1.0, 3), (2.0, 2), (3.9, 1), (4.0, 1)])
def test_as_many_threads_as_nobody_else_takes(
    four_processors: Path, monkeypatch: pytest.MonkeyPatch, others: float, found: int
) -> None:
    clock = iter([10.0, 11.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(threads, "cpu_seconds", lambda: 5.0)
    monkeypatch.setattr(time, "sleep", lambda seconds: stat(four_processors, *[others / 4] * 4))
    assert choose_num_threads(CPU) == found


def test_what_is_set_or_cannot_be_measured_decides(four_processors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    (four_processors / "stat").unlink()
    assert choose_num_threads(CPU) == 4
    (four_processors / "cgroup").mkdir()
    (four_processors / "cgroup" / "cpu.max").write_text("150000 100000\n")
    assert choose_num_threads(CPU) == 2  # one and a half processors' time
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert choose_num_threads(CPU) == 4


def test_a_containers_share_is_read_in_both_forms(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) == float("inf")
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("250000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert cpu_quota(tmp_path) == 2.5
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    assert cpu_quota(tmp_path) == float("inf")
    assert available_threads(1.0, 64, 2.5) == 3
    assert available_threads(63.0, 64, 2.5) == 1


@pytest.mark.parametrize(
    ("own", "busy", "said"),
    [
        (40.0, 40.0, False),  # alone
        (25.0, 30.0, False),  # others, and room for them
        (35.0, 40.0, True),  # one that gets half of a processor
        (30.0, 40.0, True),
        (38.0, 40.0, False),  # too little to matter
    ],
)
def test_it_is_said_once_that_others_take_processors(
    monkeypatch: pytest.MonkeyPatch, four_processors: Path, own: float, busy: float, said: bool
) -> None:
    clock = iter([0.0, 10.0, 10.0, 20.0, 20.0])
    readings = iter([CpuSample(0.0, 0.0, 0.0), CpuSample(10.0, busy, own), CpuSample(20.0, 2 * busy, 2 * own)])
    monkeypatch.setattr(threads, "read_cpu_sample", lambda: next(readings))
    found: list[str] = []
    watch = CpuLoadWatch(4, found.append, seconds=10.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    for _ in range(4):
        watch()
    assert len(found) == said
    assert watch.waits.is_on == said
    if said:
        assert f"use {(busy - own) / 10:.1f} of the 4 processors" in found[0]
        assert "the 4 threads of this training sleep while they wait for each other" in found[0]
    watch.waits.set_passive(is_passive=False)


def test_threads_sleep_as_long_as_others_are_busy(monkeypatch: pytest.MonkeyPatch, four_processors: Path) -> None:
    """Others come, stay while our threads that sleep leave processors idle, and go; and come again."""
    loads = [(0.0, 40.0), (10.0, 40.0), (10.0, 35.0), (0.0, 40.0), (10.0, 40.0)]  # of others, of all, in 10 seconds
    readings = [CpuSample(0.0, 0.0, 0.0)]
    for others, busy in loads:
        last = readings[-1]
        readings.append(CpuSample(last.clock + 10.0, last.busy + busy, last.process + busy - others))
    clock, found, slept = iter([reading.clock for reading in readings[1:]]), list[str](), []
    each = iter(readings)
    monkeypatch.setattr(threads, "read_cpu_sample", lambda: next(each))
    watch = CpuLoadWatch(4, found.append, seconds=10.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    for _ in loads:
        watch()
        slept.append(watch.waits.is_on)
    assert slept == [False, True, True, False, True]
    assert len(found) == 1
    watch.waits.set_passive(is_passive=False)


def test_own_work_is_not_that_of_others() -> None:
    found = load_between(CpuSample(1.0, 10.0, 4.0), CpuSample(3.0, 13.0, 6.0))
    assert found == CpuLoad(busy=1.5, other_programs=0.5)


def test_the_work_of_processes_that_it_started_is_its_own() -> None:
    before = cpu_seconds()
    work = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
    assert 0.25 < cpu_seconds() - before < 5.0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux tells")
def test_programs_that_really_take_all_processors_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads.num_processors())
    many = 2 * threads.num_processors()
    neighbours = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(many)]
    try:
        time.sleep(0.5)
        assert choose_num_threads(CPU) == 1
        found: list[str] = []
        watch, until = CpuLoadWatch(threads.num_processors(), found.append, seconds=1.0), time.monotonic() + 2.5
        while time.monotonic() < until:
            watch()
        assert len(found) == 1
    finally:
        for each in neighbours:
            each.kill()
            each.wait()
    before = read_cpu_sample()
    assert before is not None


def test_a_resumed_training_keeps_its_threads_unless_it_is_told_another_number(dataset: Path, tmp_path: Path) -> None:
    short = {"max_steps": 10, "validation": {"every_steps": 5, "bleu": False}}
    was = torch.get_num_threads()
    try:
        with pytest.raises(StoppedError):
            run(dataset, tmp_path, training(**short, threads=2), reporter=SignalAt(3, signal.SIGTERM))
        with pytest.raises(StoppedError):
            run(dataset, tmp_path, training(**short), reporter=SignalAt(6, signal.SIGTERM))
        assert torch.get_num_threads() == 2
        said = Listening()
        run(dataset, tmp_path, training(**short, threads=1), reporter=said)
    finally:
        torch.set_num_threads(was)
    assert "training began with threads 2 and continues with 1: last digits may differ" in said.warnings
    assert any("resuming after step 6" in line for line in said.lines)
    assert open_artifact(tmp_path / "model").figures["settings"]["threads"] == 1
    again = Listening()
    run(dataset, tmp_path, training(**short, threads=3), reporter=again)
    assert "up to date" in again.lines[0]
