"""Commands that torchrun starts several times on a machine: what all of them have to say, the first one says."""

import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from typing import TextIO

from tfm.pipeline.errors import Stopped, is_told_here
from tfm.pipeline.runtime.torchrun import rank_and_size

TOGETHER = ("train", "run")
"""Commands that all processes take part in. The others the first process does alone."""
SECONDS_FOR_THE_FIRST = 15.0
_INTERRUPTED = 130  # typer's code for a Ctrl-C before a command begins


@contextmanager
def first_speaks() -> Iterator[None]:
    """Within, what another process than the first writes to stderr is kept back; it is shown where the first has
    no error, as it seems: then torchrun, which ends all once one has failed, does not end this one."""
    if os.environ.get("LOCAL_RANK", "0") == "0":
        yield
        return
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            yield
    except SystemExit as end:
        # Leaving at once could end the first before it has spoken.
        if end.code not in (None, 0, Stopped.exit_code, _INTERRUPTED):
            with suppress(KeyboardInterrupt):
                time.sleep(SECONDS_FOR_THE_FIRST)
                print(said.getvalue(), end="", file=sys.stderr)
        raise


def has_no_part(command: str) -> bool:
    """Whether this process leaves a command to the first one."""
    rank, size = rank_and_size()
    return size > 1 and rank > 0 and command not in TOGETHER


def stderr_of(error: BaseException) -> TextIO:
    """Where the text of an error goes: one that this process alone has is not kept back."""
    return (sys.__stderr__ or sys.stderr) if isinstance(sys.stderr, io.StringIO) and is_told_here(error) else sys.stderr
