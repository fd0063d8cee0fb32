"""The standard streams, where somebody writes or reads at the other end who may be slow, or leave."""

import os
import stat
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from tfm.data.corpora.sources import Incoming
    from tfm.pipeline.runtime.progress import Reporter

PROMPT = "one text a line; Ctrl-D ends"


def incoming(reporter: "Reporter") -> "Incoming | None":
    """stdin where somebody may be writing it, a pipe or a terminal: before it is waited for, what was printed is
    shown. None where it is a file, of which all is there. At a terminal a line says what is expected."""
    from tfm.data.corpora.sources import Incoming

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
    """Let a stream of the system, which cannot be written any more, lead nowhere: Python would try once more at exit
    to write what is left in it, complain, and change the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
