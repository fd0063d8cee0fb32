"""Trackers: each line is sent once, whatever fails, dies or goes on; and a training never waits or ends for them."""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.training.trackers import services
from tfm.pipeline.training.trackers.services import check_trackers_installed
from tfm.pipeline.training.trackers.sink import SentLines, TrackerSink, read_sent_state, write_sent_state
from tfm.pipeline.training.trackers.tracker import MetricsLine, scalars

PLACE, TRAINING = "somewhere", "0" * 64


class Service:
    """A tracking service in memory, which can be out of order for a time."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.runs: dict[str, list[MetricsLine]] = {}
        self.files: list[Path] = []
        self.tags: dict[str, str] = {}
        self.endings: list[bool] = []

    def connect(self, run_id: str | None) -> "Run":
        self.fail()
        if run_id not in self.runs:
            run_id = f"run-{len(self.runs)}"
            self.runs[run_id] = []
        return Run(self, run_id)

    def fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no answer")


class Run:
    """A run of that service."""

    def __init__(self, service: Service, run_id: str) -> None:
        self.service, self.run_id = service, run_id

    def log(self, lines: Sequence[MetricsLine]) -> None:
        self.service.fail()
        self.service.runs[self.run_id] += lines

    def save(self, files: Sequence[Path], tags: Mapping[str, str]) -> None:
        self.service.files += files
        self.service.tags |= tags

    def finish(self, *, is_finished: bool) -> None:
        self.service.endings.append(is_finished)


class Listener(NullReporter):
    """A reporter that keeps warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def lines(*steps: int, event: str = "train") -> list[MetricsLine]:
    return [{"event": event, "step": step, "loss": 1 / (1 + step)} for step in steps]


def open_sink(service: Service, run: Path, reporter: Listener, training: str = TRAINING) -> TrackerSink:
    file = run / "training" / "trackers" / "service.json"
    return TrackerSink("service", service.connect, read_sent_state(file, training, PLACE), file, run, reporter)


def send(service: Service, run: Path, some: Sequence[MetricsLine], training: str = TRAINING) -> list[str]:
    """Send lines in a session of their own; returns the warnings."""
    reporter = Listener()
    sink = open_sink(service, run, reporter, training)
    for line in some:
        sink.append(line)
    sink.close([run / "curves.svg"], {"model": "f"}, is_finished=True)
    return reporter.warnings


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run" / "training").mkdir(parents=True)
    return tmp_path / "run"


def test_a_resumed_training_goes_on_in_its_run_and_sends_nothing_twice(run: Path) -> None:
    service = Service()
    assert send(service, run, lines(1, 2, 3)) == []
    # Cut back to step 2 by a resume: line 3 comes again, with the validation that the kill kept back.
    assert send(service, run, [*lines(1, 2), *lines(2, event="valid"), *lines(3, 4)]) == []
    (sent,) = service.runs.values()
    assert [(line["event"], line["step"]) for line in sent] == [
        *(("train", step) for step in (1, 2, 3)), ("valid", 2), ("train", 4),
    ]  # fmt: skip
    assert service.endings == [True, True]
    assert service.files == [run / "curves.svg"] * 2
    assert service.tags == {"model": "f"}


@pytest.mark.parametrize("failures", [1, 2, 10])
def test_a_service_out_of_order_costs_one_warning_and_no_line(run: Path, failures: int, monkeypatch: Any) -> None:
    monkeypatch.setattr("tfm.pipeline.training.trackers.sink.MIN_SECONDS_BETWEEN_TRIES", 0.0)
    service, reporter = Service(failures), Listener()
    sink = open_sink(service, run, reporter)
    for line in lines(*range(40)):
        sink.append(line)
        time.sleep(0.002)
    sink.close(is_finished=True)
    assert len(reporter.warnings) == 1
    assert "service does not take the figures (ConnectionError: no answer)" in reporter.warnings[0]
    send(service, run, lines(*range(40)))
    (sent,) = service.runs.values()
    assert sent == lines(*range(40))


def test_a_dead_service_is_asked_now_and_then_only(run: Path) -> None:
    service = Service(failures=1000)
    assert len(send(service, run, lines(*range(50)))) == 1
    assert service.failures >= 1000 - 3


def test_a_service_that_hangs_is_left(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfm.pipeline.training.trackers.sink.MAX_SECONDS_OF_CLOSING", 0.1)
    service, answers = Service(), threading.Event()
    monkeypatch.setattr(service, "fail", lambda: answers.wait(60))
    begun = time.monotonic()
    (warning,) = send(service, run, lines(1))
    assert "does not answer" in warning
    assert time.monotonic() - begun < 30
    answers.set()


def test_another_training_or_place_and_a_run_that_was_deleted_begin_anew(run: Path) -> None:
    service = Service()
    send(service, run, lines(1, 2))
    send(service, run, lines(1, 2), training="1" * 64)
    assert list(service.runs.values()) == [lines(1, 2)] * 2
    service.runs.clear()
    send(service, run, lines(1, 2, 3), training="1" * 64)
    assert list(service.runs.values()) == [lines(1, 2, 3)]
    file = run / "training" / "trackers" / "service.json"
    assert read_sent_state(file, None, "elsewhere").run_id is None
    assert read_sent_state(file, None, PLACE).run_id == "run-0"


@pytest.mark.parametrize(
    "changed",
    [
        {"run_id": "../../x"}, {"run_id": None}, {"run_id": 5}, {"steps": []}, {"steps": {"train": "1"}},
        {"steps": {"train": True}}, {"training": 3}, {"place": "https://elsewhere"}, {"scores": 1}, {"more": 1},
    ],
)  # fmt: skip
def test_a_received_state_is_read_as_none_unless_it_is_whole(run: Path, changed: dict[str, Any]) -> None:
    file = run / "training" / "trackers" / "service.json"
    state = SentLines(TRAINING, PLACE, "run-7", {"train": 5})
    write_sent_state(state, file, run)
    assert read_sent_state(file, TRAINING, PLACE) == state
    file.write_text(json.dumps({**vars(state), **changed}), "utf-8")
    assert read_sent_state(file, TRAINING, PLACE) == SentLines(TRAINING, PLACE)
    file.write_text(json.dumps(vars(state))[:-5], "utf-8")
    assert read_sent_state(file, TRAINING, PLACE) == SentLines(TRAINING, PLACE)


def test_numbers_alone_are_scalars() -> None:
    line = {
        "event": "valid",
        "step": 4,
        "loss": 2,
        "bleu": None,
        "is": True,
        "scores": {"chrf": {"score": 1.5, "s": ""}},
    }
    assert dict(scalars(line)) == {"valid/loss": 2.0, "valid/scores.chrf.score": 1.5}


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "find_spec", lambda name: None)
    check_trackers_installed(["tensorboard"])
    for name in services.TRACKING_SERVICES:
        with pytest.raises(RecipeError, match=rf"{name} needs a package .*pip install .*\[{name}\]"):
            check_trackers_installed([name])
