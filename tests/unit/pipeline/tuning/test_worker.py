"""The workers that one command starts: what they say, and how they are stopped."""

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tfm.pipeline.errors import WriteError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.tuning import worker
from tfm.pipeline.tuning.worker import WorkerJob, _start_processes

# Says that it listens, and then of each signal that it came; ends a while after the first.
PROGRAM = """
import signal, sys, time
heard = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: heard.append(number))
print("searching: 1/9 trials", "listens", sep="\\n", file=sys.stderr, flush=True)
print("data")
while not heard:
    time.sleep(0.01)
time.sleep(0.1)
print("heard", *map(int, heard), file=sys.stderr)
sys.exit(75)
"""


class Heard(NullReporter):
    def __init__(self, number: int) -> None:
        self.lines: list[str] = []
        self.number = number

    def line(self, text: str) -> None:
        self.lines.append(text)
        if self.lines.count("listens") == self.number and text == "listens":
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C reaches the group of the terminal


def test_ctrl_c_is_passed_on_once_and_all_are_waited_for(capfd: pytest.CaptureFixture[str]) -> None:
    heard, before = Heard(2), {each: signal.getsignal(each) for each in (signal.SIGHUP, signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts behind ignore it
    try:
        with (
            pytest.raises(KeyboardInterrupt),
            _start_processes([sys.executable, "-c", PROGRAM], os.environ, 2, heard) as processes,
        ):
            signal.pause()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert [each.returncode for each in processes] == [75, 75]
    assert sorted(heard.lines) == ["heard 15", "heard 15", "listens", "listens"]
    assert capfd.readouterr().out == ""
    assert all(os.getpgrp() != each.pid for each in processes)


def test_what_they_say_is_shown_to_the_end() -> None:
    heard = Heard(9)
    program = "import sys; print('one', 'two', sep='\\n', file=sys.stderr); sys.exit(3)"
    with _start_processes([sys.executable, "-c", program], os.environ, 1, heard) as processes:
        pass
    assert (heard.lines, processes[0].returncode) == (["one", "two"], 3)


def run_trial_in(folder: Path) -> None:
    """Run a trial whose folder is `7` in the folder of a search."""
    trials: Any = SimpleNamespace(folder=folder)
    claimed: Any = SimpleNamespace(folder=folder / "7")
    worker._run_trial(WorkerJob(trials, Path("base.toml"), (), (), NullReporter()), claimed)


def test_a_file_that_a_trial_misses_is_no_fault_of_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def read_corpus(*args: object, **kwargs: object) -> None:
        (tmp_path / "corpus.txt").read_text()

    monkeypatch.setattr(worker, "run_trial", read_corpus)
    with pytest.raises(FileNotFoundError, match=r"corpus\.txt"):
        run_trial_in(tmp_path)


def test_a_log_that_cannot_be_written_is_named_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "7" / "log.txt").mkdir(parents=True)
    with pytest.raises(WriteError, match=r"7: cannot be written: .*log\.txt"):
        run_trial_in(tmp_path)
