"""A wish to stop, from a signal: the work in hand is finished and saved; a second signal leaves at once."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Stop:
    """Whether, and by which signal, somebody has asked to stop."""

    signal: str | None = None
    asked_at: float = 0.0

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def listen(*, echo: float = 0.0) -> Iterator[Stop]:
    """Within, SIGTERM and Ctrl-C only set the `Stop` given; a second one ends the process at once.

    echo: seconds in which a second signal is taken for the first one passed on again, as a launcher does
    that shares its terminal with its workers.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():  # only there may Python set handlers
        yield stop
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop and time.monotonic() - stop.asked_at < echo:
            return
        if stop:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        stop.signal, stop.asked_at = signal.Signals(number).name, time.monotonic()
        # os.write: a handler may have interrupted a print
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, b"\nstopping after this step; once more: at once\n")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
