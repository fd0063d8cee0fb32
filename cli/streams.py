"""The standard streams: the program at the other end may be slow, or close its end."""

import io
import json
import os
import stat
import sys
from typing import TYPE_CHECKING, TextIO

from tfm.pipeline.errors import control_character_pattern, escape_control_characters, format_for_terminal

if TYPE_CHECKING:
    from tfm.data.live_input import LiveLineReader
    from tfm.pipeline.runtime.progress import Reporter

STDIN_PROMPT = "one text per line; Ctrl-D ends"


def open_live_stdin(reporter: "Reporter") -> "LiveLineReader | None":
    """Return stdin if it is a pipe or a terminal, which may still be written: output is flushed before each wait for
    input. None if it is a file. At a terminal a line says what input is expected.
    """
    from tfm.data.live_input import LiveLineReader

    try:
        descriptor = sys.stdin.fileno()
    except OSError:  # no stream of the system
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    if sys.stdin.isatty():
        reporter.line(STDIN_PROMPT)
    return LiveLineReader(descriptor, sys.stdout.flush)


def redirect_to_devnull(stream: TextIO) -> None:
    """Redirect a standard stream that can no longer be written to /dev/null: otherwise Python would try once more at
    exit to flush it, print an error, and change the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class MessageStream(io.TextIOBase):
    """A stream whose reader may close it, as in `2>&1 | head`, or whose terminal may be closed: then messages are
    dropped, and the work continues."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.stream.encoding

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()

    def write(self, text: str) -> int:
        try:
            self.stream.write(text)
        except OSError:
            redirect_to_devnull(self.stream)
        return len(text)

    def flush(self) -> None:
        if self.stream.closed:  # as when this object is deleted after it
            return
        try:
            self.stream.flush()
        except OSError:
            redirect_to_devnull(self.stream)


class TerminalStream(MessageStream):
    """A stream for messages only: usage errors, warnings and tracebacks, too."""

    def write(self, text: str) -> int:
        super().write(format_for_terminal(text))
        return len(text)


def print_message(text: str, stream: TextIO | None = None) -> None:
    """Print a message to stderr, or another stream."""
    print(format_for_terminal(text), file=stream or sys.stderr, flush=True)


def print_data(text: str, end: str = "\n") -> None:
    """Print a result to stdout: byte for byte, except to a terminal, which would obey its control characters.

    Stdout is not flushed: thousands of lines may follow.
    """
    content = text + end
    printable = escape_control_characters(content) if sys.stdout.isatty() else content
    sys.stdout.buffer.write(printable.encode("utf-8", "backslashreplace"))


def print_json(value: object, indent: int | None = None) -> None:
    """Print a result as JSON, in which half a character, and for a terminal a control character, is an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if sys.stdout.isatty():
        text = control_character_pattern().sub(
            lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text
        )
    print_data(text)
