"""The standard streams: the program at the other end may be slow, or close its end."""

import os
import stat
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from tfm.data.live_input import Incoming
    from tfm.pipeline.runtime.progress import Reporter

PROMPT = "one text per line; Ctrl-D ends"


def incoming(reporter: "Reporter") -> "Incoming | None":
    """stdin if it is a pipe or a terminal, which may still be written: output is flushed before each wait for input.
    None if it is a file. At a terminal a line says what input is expected."""
    from tfm.data.live_input import Incoming

    try:
        descriptor = sys.stdin.fileno()
    except OSError:  # no stream of the system
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    if sys.stdin.isatty():
        reporter.line(PROMPT)
    return Incoming(descriptor, sys.stdout.flush)


def lead_nowhere(stream: TextIO) -> None:
    """Redirect a standard stream that can no longer be written to /dev/null: otherwise Python would try once more at
    exit to flush it, print an error, and change the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
