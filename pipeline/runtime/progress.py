"""Progress of a stage for its caller, without knowing about terminals."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar

Result = TypeVar("Result")


class Bar(Protocol):
    """A progress bar that is open."""

    def advance(self, amount: int = 1, note: str = "") -> None:
        """Move on by `amount` units; `note` is shown beside the bar (loss, rate, ...)."""


class Reporter(Protocol):
    """Receiver of a stage's lines, tables and progress; the caller decides where each is shown."""

    def line(self, text: str) -> None: ...
    def warn(self, text: str) -> None: ...
    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None: ...
    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> AbstractContextManager[Bar]: ...


class _QuietBar:
    def advance(self, amount: int = 1, note: str = "") -> None:
        pass


class NullReporter:
    """A reporter that shows nothing: for tests and for use as a library."""

    def line(self, text: str) -> None:
        pass

    def warn(self, text: str) -> None:
        pass

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        pass

    @contextmanager
    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> Iterator[Bar]:
        yield _QuietBar()


def run_with_elapsed_time(work: Callable[[], Result], bar: Bar) -> Result:
    """The result of work without progress reports: the bar shows the elapsed time."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    started = time.monotonic()
    # A daemon, because Hugging Face's trainers cannot be interrupted and Ctrl-C shall end the process.
    threading.Thread(target=run, daemon=True).start()
    while not wait([future], timeout=1).done:
        bar.advance(0, f"{time.monotonic() - started:.0f} s")
    return future.result()
