"""The start of decoding processes, with nothing that takes time to import."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from tfm.pipeline.serving.dispatch.worker_process import WorkerProcess

WORKER_PROGRAM = "from tfm.pipeline.serving.engine.worker import main; main({descriptor}, {numpy})"


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

    def __call__(self, on_replies: Callable[[Sequence[Any]], None], on_end: Callable[[], None]) -> "WorkerProcess":
        """Return a process.

        Args:
            on_replies: called with replies as they come.
            on_end: called once, when the process has ended unasked.
        """
        from tfm.pipeline.serving.dispatch.worker_process import WorkerProcess

        process, connection = self._spares.pop() if self._spares else self._spawn()
        return WorkerProcess(process, connection, on_replies, on_end)

    def _spawn(self) -> "tuple[subprocess.Popen[bytes], Connection[Any, Any]]":
        parent_socket, child_socket = socket.socketpair()
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        with child_socket:
            process = subprocess.Popen(
                [sys.executable, "-c", WORKER_PROGRAM.format(descriptor=child_socket.fileno(), numpy=self._numpy)],
                pass_fds=[child_socket.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
            )
        return process, Connection(parent_socket.detach())
