"""Stopping on a signal: the current step is finished and saved; a second signal exits at once.

A closed terminal (SIGHUP) asks for the same, but never for an exit at once: it may come twice, or after SIGTERM.
Signals that the caller made this process ignore, as `nohup` and `&` do, stay ignored.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from weakref import WeakSet

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_requests: "WeakSet[StopRequest]" = WeakSet()


@dataclass(eq=False)
class StopRequest:
    """Whether, and by which signal, somebody has asked to stop."""

    signal: str | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


def request_stop(name: str) -> None:
    """Ask what runs under `catch_stop_signals` in this process to stop, as a signal of that name would."""
    for request in list(_requests):
        request.signal = request.signal or name


def stop_signals() -> list[signal.Signals]:
    """The signals that ask this process to stop, but for those that it was started to ignore."""
    return [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def catch_stop_signals(*, echo_seconds: float = 0.0, acknowledges: bool = True) -> Iterator[StopRequest]:
    """Let SIGTERM, Ctrl-C and a closed terminal only set the `StopRequest` given while the body runs.

    A second signal ends the process at once.

    Args:
        echo_seconds: seconds in which a second signal is taken for the first one passed on again, as by a launcher
            that shares its terminal with its workers.
        acknowledges: whether to report that the first one was received.
    """
    stop = StopRequest()
    _requests.add(stop)
    if threading.current_thread() is not threading.main_thread():  # only there may Python set handlers
        yield stop
        return

    def handle_signal(number: int, frame: FrameType | None) -> None:
        stop.signal = stop.signal or signal.Signals(number).name

    previous_handlers = {number: signal.signal(number, handle_signal) for number in stop_signals()}
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    watcher = threading.Thread(target=_watch_signals, args=(reader, echo_seconds, acknowledges), daemon=True)
    watcher.start()
    previous_descriptor = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield stop
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous_descriptor)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _watch_signals(read_descriptor: int, echo_seconds: float, acknowledges: bool) -> None:
    """Leave at the second signal. The numbers of all that arrive are read here, in a thread of its own.

    Python's handlers wait until a call of torch returns, such as the backward pass or a wait for another process.
    """
    request_time = None
    while signals := os.read(read_descriptor, 1):
        if signals[0] not in STOP_SIGNALS:
            continue
        if request_time is None:
            request_time = time.monotonic()
            if acknowledges:
                stderr = sys.__stderr__.fileno() if sys.__stderr__ else 2
                with suppress(OSError):  # the terminal is closed
                    os.write(stderr, b"\nstopping after this step; press Ctrl-C again to quit immediately\n")
        elif signals[0] != signal.SIGHUP and time.monotonic() - request_time >= echo_seconds:
            os._exit(128 + signals[0])  # as a shell calls the end by this signal
