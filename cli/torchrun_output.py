"""Commands that torchrun starts several times on a machine: only the first process prints the output, which all would
print.
"""

import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from typing import TextIO

from tfm.cli.streams import print_message
from tfm.pipeline.errors import StoppedError, is_error_of_one_rank
from tfm.pipeline.runtime.torchrun import rank_and_size

DISTRIBUTED_COMMANDS = ("train", "run")
"""Commands in which all processes take part. All others run only in the first process."""
RANK_ZERO_ERROR_GRACE_SECONDS = 15.0
INTERRUPTED_EXIT_CODE = 130
"""Exit code after a Ctrl-C where nothing is to be gone on with, and typer's before a command begins."""


@contextmanager
def rank_zero_stderr() -> Iterator[None]:
    """Buffer stderr of every process but the first while the body runs.

    The buffer is shown if the first process seems to have no error: then torchrun, which ends all processes once one
    has failed, has not ended this one.
    """
    if os.environ.get("LOCAL_RANK", "0") == "0":
        yield
        return
    buffer = io.StringIO()
    try:
        with redirect_stderr(buffer):
            yield
    except SystemExit as end:
        # Exiting at once could end the first process before it has printed its error.
        if end.code not in (None, 0, StoppedError.exit_code, INTERRUPTED_EXIT_CODE):
            with suppress(KeyboardInterrupt):
                time.sleep(RANK_ZERO_ERROR_GRACE_SECONDS)
                if text := buffer.getvalue().removesuffix("\n"):
                    print_message(text)
        raise


def is_idle_rank(command: str) -> bool:
    """Return whether only the first process runs a command, and this is another one."""
    rank, size = rank_and_size()
    return size > 1 and rank > 0 and command not in DISTRIBUTED_COMMANDS


def choose_error_stream(error: BaseException) -> TextIO:
    """The stream for an error's text: an error that only this process has is not buffered."""
    return (
        (sys.__stderr__ or sys.stderr)
        if isinstance(sys.stderr, io.StringIO) and is_error_of_one_rank(error)
        else sys.stderr
    )
