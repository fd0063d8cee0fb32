"""Messages of processes on a cluster arrive in order, and a stop that is asked for reaches them."""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from tests.recording_reporter import Listening
from tfm.pipeline.cluster.mailbox import EventReporter, Mailbox, MailboxReplay, forward_events
from tfm.pipeline.errors import StoppedError
from tfm.pipeline.runtime.stop_signal import catch_stop_signals, request_stop


class Handle:
    """A handle of an actor that lives in this process."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, name: str) -> Any:
        method: Callable[..., Any] = getattr(self._actor, name)

        class Method:
            @staticmethod
            def remote(*arguments: Any) -> Any:
                return method(*arguments)

        return Method


@pytest.fixture(autouse=True)
def ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a stand-in for Ray in place whose references are the values themselves."""
    module = ModuleType("ray")
    module.get = lambda value: value  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", module)


class BarListening(Listening):
    """A reporter that remembers its bars, too."""

    def __init__(self) -> None:
        super().__init__()
        self.bars: list[Any] = []
        self.tables: list[Any] = []

    @contextmanager
    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> Iterator[Any]:
        self.bars.append(["open", label, total, unit, done])
        yield self
        self.bars.append("closed")

    def advance(self, amount: int = 1, note: str = "") -> None:
        self.bars.append((amount, note))

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self.tables.append((title, columns, rows))


def tell(reporter: Any) -> None:
    reporter.line("first")
    with reporter.bar("training", 9, "steps", done=2) as bar:
        bar.advance(1, "loss 3")
        bar.advance(2, "loss 2")
        reporter.warn("odd")
        bar.advance(1, "loss 1")
    reporter.table("scores", ["a"], [[1.5], ["x"]])


def test_a_reporter_hears_what_a_process_told() -> None:
    mailbox, talk = Mailbox(), BarListening()
    with forward_events(Handle(mailbox), "0") as reporter:
        tell(reporter)
    replay = MailboxReplay(talk, labelled=False)
    replay.replay_events(mailbox.take())
    assert talk.lines == ["first"]
    assert talk.warnings == ["odd"]
    assert talk.bars == [["open", "training", 9, "steps", 2], (3, "loss 2"), (1, "loss 1"), "closed"]
    assert talk.tables == [("scores", ["a"], [["1.5"], ["x"]])]
    assert mailbox.take() == []


def test_lines_of_several_processes_begin_with_their_names_and_bars_are_not_shown() -> None:
    mailbox, talk = Mailbox(), BarListening()
    for name in ("one", "two"):
        with forward_events(Handle(mailbox), name) as reporter:
            tell(reporter)
    MailboxReplay(talk, labelled=True).replay_events(mailbox.take())
    assert talk.lines == ["one: first", "two: first"]
    assert talk.warnings == ["one: odd", "two: odd"]
    assert talk.bars == []


def test_a_bar_of_a_process_that_was_lost_is_closed_by_the_next() -> None:
    talk = BarListening()
    replay = MailboxReplay(talk, labelled=False)
    lost = EventReporter()
    with lost.bar("training", 9, "steps"):
        replay.replay_events([("0", each) for each in lost.pop_events()])
        again = EventReporter()
        with again.bar("training", 9, "steps", done=4):
            replay.replay_events([("0", each) for each in again.pop_events()])
    replay.close()
    assert talk.bars == [["open", "training", 9, "steps", 0], "closed", ["open", "training", 9, "steps", 4], "closed"]


def test_a_stop_that_is_asked_for_is_seen_by_what_may_stop_and_begins_nothing_new() -> None:
    mailbox = Mailbox()
    with forward_events(Handle(mailbox), "0") as reporter, catch_stop_signals() as stop:
        assert not stop
        mailbox.ask_to_stop("SIGTERM")
        deadline = time.monotonic() + 20
        while not stop and time.monotonic() < deadline:
            time.sleep(0.01)
        assert stop.signal == "SIGTERM"
        assert reporter.stop == "SIGTERM"
    with pytest.raises(StoppedError), forward_events(Handle(mailbox), "1"):
        raise AssertionError("it began")


def test_a_stop_that_is_asked_for_interrupts_what_does_not_look_for_one() -> None:
    mailbox, before = Mailbox(), signal.getsignal(signal.SIGTERM)
    began = time.monotonic()

    def translate_for_a_minute() -> None:
        with forward_events(Handle(mailbox), "0") as reporter:
            reporter.line("first")
            assert mailbox.ask_to_stop("SIGINT") == {"0"}
            time.sleep(60)

    with pytest.raises(StoppedError):
        translate_for_a_minute()
    assert time.monotonic() - began < 30
    assert mailbox.take() == [("0", ("line", ("first",)))]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_process_that_begins_after_the_stop_has_not_begun() -> None:
    mailbox = Mailbox()
    with forward_events(Handle(mailbox), "0"):
        pass
    mailbox.ask_to_stop("SIGTERM")
    with pytest.raises(StoppedError), forward_events(Handle(mailbox), "1"):
        raise AssertionError("it began")
    assert mailbox.ask_to_stop("SIGTERM") == {"0"}


def test_the_first_signal_counts() -> None:
    with catch_stop_signals() as stop:
        request_stop("SIGTERM")
        request_stop("SIGINT")
    assert stop.signal == "SIGTERM"
