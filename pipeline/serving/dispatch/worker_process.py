"""A decoding process as the server has it: started, written to, read from, and its end noticed."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol, Self

PROGRAM = "from tfm.pipeline.serving.engine.worker import main; main({descriptor}, {numpy})"


class Worker(Protocol):
    """A process, or a stand-in, that answers messages."""

    def send(self, message: Any) -> None:
        """Send a message. Raises OSError where nothing answers any more."""

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
        self._loop.add_reader(self._connection.fileno(), self._read)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """Send a message. Raises OSError where the process has ended."""
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

    def _read(self) -> None:
        try:
            replies = self._connection.recv()
        except (EOFError, OSError):
            self.close()
            self._on_end()
            return
        self._on_replies(replies)


class ProcessStarter:
    """Starts decoding processes. Some are started at once: they load their libraries while the server loads its own.

    Args:
        numpy: whether small models are computed by numpy, without torch.
        num_spares: number of processes that are started at once.
    """

    def __init__(self, *, numpy: bool = False, num_spares: int = 0) -> None:
        self._numpy = numpy
        self._spares = [self._spawn() for _ in range(num_spares)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes that nobody has taken."""
        for process, connection in self._spares:
            connection.close()
            process.kill()
            process.wait()

    def __call__(self, on_replies: Callable[[Sequence[Any]], None], on_end: Callable[[], None]) -> WorkerProcess:
        """Return a process.

        Args:
            on_replies: called with replies as they come.
            on_end: called once, when the process has ended unasked.
        """
        process, connection = self._spares.pop() if self._spares else self._spawn()
        return WorkerProcess(process, connection, on_replies, on_end)

    def _spawn(self) -> "tuple[subprocess.Popen[bytes], Connection[Any, Any]]":
        ours, theirs = socket.socketpair()
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM.format(descriptor=theirs.fileno(), numpy=self._numpy)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
            )
        return process, Connection(ours.detach())
