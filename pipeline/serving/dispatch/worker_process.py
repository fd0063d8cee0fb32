"""A decoding process as the server has it: written to, read from, and its end noticed."""

import asyncio
import subprocess
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol


class Worker(Protocol):
    """A process, or a stand-in, that answers messages."""

    def send(self, message: Any) -> None:
        """Send a message. Raises OSError if nothing answers any more."""

    def close(self) -> None:
        """End the work at once."""


StartWorker = Callable[[Callable[[Sequence[Any]], None], Callable[[], None]], Worker]
"""(on_replies, on_end) -> a new worker: the functions are called in the event loop."""


class WorkerProcess:
    """A process that decodes. It has a start of its own, so that nothing of the server's is in it.

    Args:
        process: the process.
        connection: to it.
        on_replies: called with replies as they come.
        on_end: called once, when the process has ended unasked.
    """

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        connection: "Connection[Any, Any]",
        on_replies: Callable[[Sequence[Any]], None],
        on_end: Callable[[], None],
    ) -> None:
        self._process, self._connection = process, connection
        self._on_replies, self._on_end, self._is_open = on_replies, on_end, True
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._connection.fileno(), self._read_replies)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """Send a message. Raises OSError if the process has ended."""
        if not self._is_open:
            raise BrokenPipeError
        self._connection.send(message)

    def close(self) -> None:
        """End the process."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._connection.fileno())
            self._connection.close()
        self._process.kill()
        self._process.wait()

    def _read_replies(self) -> None:
        try:
            replies = self._connection.recv()
        except (EOFError, OSError):
            self.close()
            self._on_end()
            return
        self._on_replies(replies)
