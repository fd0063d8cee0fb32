"""Messages of processes on a cluster to the process that was started, and its wish that they stop: an actor of Ray."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tfm.pipeline.errors import StoppedError
from tfm.pipeline.runtime.progress import Bar, NullReporter, Reporter
from tfm.pipeline.runtime.stop_signal import request_stop

POLL_INTERVAL_SECONDS = 0.5

ReporterEvent = tuple[str, tuple[Any, ...]]
"""The name of a method of `Reporter`, or "advance" or "end" of its bar; and the arguments."""


class Mailbox:
    """The actor: events in the order in which they came, errors, and whether processes are asked to stop."""

    def __init__(self) -> None:
        self._events: list[tuple[str, ReporterEvent]] = []
        self._senders: set[str] = set()
        self._stop: str | None = None

    def put(self, sender: str, events: Sequence[ReporterEvent]) -> str | None:
        """Take the events of a sender; return the name of the signal by which a stop is asked for, if it is."""
        if self._stop is None:
            self._senders.add(sender)
        self._events += [(sender, each) for each in events]
        return self._stop

    def take(self) -> list[tuple[str, ReporterEvent]]:
        """Return the events that have come since the last call, each with its sender."""
        events, self._events = self._events, []
        return events

    def ask_to_stop(self, signal: str) -> set[str]:
        """Let all senders know that they are to stop, as by a signal; return those that have begun: no other will."""
        self._stop = signal
        return self._senders


class EventReporter(NullReporter):
    """A reporter that stores its calls as events; stop: the name of the signal that requests a stop."""

    def __init__(self) -> None:
        self.stop: str | None = None
        self._events: list[ReporterEvent] = []
        self._lock = threading.Lock()

    def pop_events(self) -> list[ReporterEvent]:
        """Return the events since the last call."""
        with self._lock:
            events, self._events = self._events, []
        return events

    def line(self, text: str) -> None:
        self.record_event("line", text)

    def warn(self, text: str) -> None:
        self.record_event("warn", text)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self.record_event("table", title, list(columns), [[str(cell) for cell in row] for row in rows])

    @contextmanager
    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> Iterator[Bar]:
        """Open a bar whose movements are events."""
        self.record_event("bar", label, total, unit, done)
        try:
            yield self
        finally:
            self.record_event("end")

    def advance(self, amount: int = 1, note: str = "") -> None:
        """Keep a movement of the bar; movements in a row become one."""
        with self._lock:
            if self._events and self._events[-1][0] == "advance":
                amount += self._events.pop()[1][0]
            self._events.append(("advance", (amount, note)))

    def record_event(self, name: str, *arguments: Any) -> None:
        """Keep an event."""
        with self._lock:
            self._events.append((name, arguments))


@contextmanager
def forward_events(mailbox: Any, sender: str) -> Iterator[EventReporter]:
    """Yield a reporter that sends its events to a mailbox; a stop that the mailbox requests stops this process.

    Work under `catch_stop_signals` is asked to stop; all else in the main thread is interrupted, as by Ctrl-C.

    Args:
        mailbox: handle of the actor.
        sender: name of this process.

    Raises:
        StoppedError: a stop is asked for before the block begins, or interrupts it.
    """
    import ray

    if ray.get(mailbox.put.remote(sender, [])) is not None:
        raise StoppedError("stopped before it began; the same command goes on")
    reporter, end_event = EventReporter(), threading.Event()

    def post(interrupt: Callable[[], None]) -> None:
        while not end_event.wait(POLL_INTERVAL_SECONDS):
            is_asked = reporter.stop is not None
            reporter.stop = ray.get(mailbox.put.remote(sender, reporter.pop_events()))
            if reporter.stop is not None:
                request_stop(reporter.stop)
                if not is_asked:
                    interrupt()

    with _interruptible_main_thread(end_event) as interrupt:
        thread = threading.Thread(target=post, args=(interrupt,), daemon=True)
        thread.start()
        try:
            yield reporter
        except KeyboardInterrupt:
            raise StoppedError("stopped; the same command goes on") from None
        finally:
            end_event.set()
            thread.join()
            ray.get(mailbox.put.remote(sender, reporter.pop_events()))


@contextmanager
def _interruptible_main_thread(end_event: threading.Event) -> Iterator[Callable[[], None]]:
    """Yield a function that interrupts this thread while the block runs, until `over`; one without effect where this is
    not the main thread. Its signal is SIGTERM, as Ray blocks SIGINT in its workers.
    """
    thread = threading.current_thread()
    if thread is not threading.main_thread() or thread.ident is None:
        yield lambda: None
        return

    def raise_interrupt(number: int, frame: object) -> None:
        if not end_event.is_set():
            raise KeyboardInterrupt

    previous_handler = signal.signal(signal.SIGTERM, raise_interrupt) or signal.SIG_DFL
    try:
        yield partial(signal.pthread_kill, thread.ident, signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


@dataclass
class MailboxReplay:
    """Events told to a reporter of this process.

    Args:
        reporter: receives them.
        labelled: whether lines begin with their sender, of which there are several; bars are not shown then.
    """

    reporter: Reporter
    labelled: bool
    _bar: Bar | None = None
    _open: ExitStack = field(default_factory=ExitStack)

    def replay_events(self, events: Sequence[tuple[str, ReporterEvent]]) -> None:
        """Tell the events, in their order."""
        for sender, (name, arguments) in events:
            if name in ("line", "warn"):
                start = f"{sender}: " if self.labelled else ""
                getattr(self.reporter, name)(start + arguments[0])
            elif name == "table":
                self.reporter.table(*arguments)
            elif not self.labelled:
                self._update_bar(name, arguments)

    def close(self) -> None:
        """Close the bar if one is open."""
        self._bar = None
        self._open.close()

    def _update_bar(self, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "bar":
            self.close()  # that of a process which was lost
            self._bar = self._open.enter_context(self.reporter.bar(*arguments))
        elif name == "end":
            self.close()
        elif self._bar is not None:
            self._bar.advance(*arguments)
