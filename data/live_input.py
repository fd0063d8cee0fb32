"""A pipe or a terminal as a text that is still being written: its lines, and whether one is available already."""

import os
import select
from collections.abc import Callable

from tfm.data.lines import MAX_LINE_BYTES

POLL_TIMEOUT_SECONDS = 0.02  # a writer that is at work has its next line there by then
BLOCK_BYTES = 1 << 20


class LiveLineReader:
    """Reads a file descriptor line by line. `before_waiting` is called before it waits for the writer."""

    def __init__(self, descriptor: int, before_waiting: Callable[[], object]) -> None:
        self._descriptor, self._before_waiting = descriptor, before_waiting
        self._buffer = bytearray()
        self._begin = self._searched = 0  # of the next line; up to where no line end is
        self._ended = False

    def is_line_ready(self) -> bool:
        """Whether the next line, or the end, can be read without waiting."""
        while not self._has_line():
            if not self._is_ready_within(POLL_TIMEOUT_SECONDS):
                return False
            self._read_block()
        return True

    def readline(self, max_bytes: int) -> bytes:
        """The next line with its line break, at most this many bytes; empty at the end."""
        while not self._has_line():
            if not self._is_ready_within(0):
                self._before_waiting()
                self._is_ready_within(None)
            self._read_block()
        line_end = self._buffer.find(b"\n", self._searched)
        end = min(len(self._buffer) if line_end < 0 else line_end + 1, self._begin + max_bytes)
        line = bytes(self._buffer[self._begin : end])
        self._begin = self._searched = end
        return line

    def _has_line(self) -> bool:
        """Whether a line, the end, or more bytes than a line may have are there already."""
        line_end = self._buffer.find(b"\n", self._searched)
        self._searched = len(self._buffer) if line_end < 0 else line_end
        return line_end >= 0 or self._ended or len(self._buffer) - self._begin > MAX_LINE_BYTES

    def _is_ready_within(self, seconds: float | None) -> bool:
        """Whether something comes, or the end, in this time."""
        return bool(select.select([self._descriptor], [], [], seconds)[0])

    def _read_block(self) -> None:
        del self._buffer[: self._begin]
        self._searched, self._begin = self._searched - self._begin, 0
        block = os.read(self._descriptor, BLOCK_BYTES)
        self._ended = not block
        self._buffer += block
