"""A decoding process of a server: `python -c "...worker.main(DESCRIPTOR, NUMPY)"`, started by `worker_process.py`.

It reads messages from a socket, and ends when that is closed, however the server ended.
"""

import gc
import signal
import sys
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from typing import Any

from tfm.model.fused.compiled_transformer import load_search_kernels
from tfm.pipeline.serving.dispatch.messages import LoadModel, ModelVersion
from tfm.pipeline.serving.engine.light_networks import load_light_network
from tfm.pipeline.serving.engine.scheduler import Scheduler
from tfm.pipeline.serving.engine.work import Network


def main(descriptor: int, numpy: bool) -> None:
    """Answer queries until the connection is closed.

    Args:
        descriptor: of the socket.
        numpy: whether small models are computed by numpy, without torch.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the server decides what follows
        signal.signal(number, signal.SIG_IGN)
    connection: Connection[Any, Any] = Connection(descriptor)
    with ExitStack() as stack:
        loader = NetworkLoader(numpy, stack)
        if not numpy:
            preload_compiled_search()
        with suppress(EOFError, ConnectionError):
            answer_messages(connection, Scheduler(loader))


def preload_compiled_search() -> None:
    """Load the loops of the compiled search, while the server still reads its models.

    numba looks for BLAS in scipy, which takes a fifth of a second to load, and which no loop uses: it is hidden
    meanwhile.
    """
    is_hidden = sys.modules.setdefault("scipy", None) is None  # type: ignore[arg-type]
    load_search_kernels()
    if is_hidden:
        del sys.modules["scipy"]


class NetworkLoader:
    """Loads versions of models; torch is made ready before the first that needs it.

    Args:
        numpy: whether small models are computed by numpy.
        stack: what holds for as long as the process lives.
    """

    def __init__(self, numpy: bool, stack: ExitStack) -> None:
        self._numpy, self._stack, self._is_ready = numpy, stack, False

    def __call__(self, version: ModelVersion) -> Network:
        """Load a version. Raises DataError for one that cannot be."""
        light = load_light_network(version, None if self._numpy else self._load_by_torch)
        return light or self._load_by_torch(version)

    def _load_by_torch(self, version: ModelVersion) -> Network:
        from tfm.pipeline.serving.engine.networks import TorchNetwork

        if not self._is_ready:
            self._prepare_torch()
        return TorchNetwork.load(version)

    def _prepare_torch(self) -> None:
        """Set one thread, compiled loops and memory that is kept, as in a process that decodes."""
        import torch

        from tfm.model.cpu_kernels.dispatch import use_compiled_kernels
        from tfm.pipeline.decoding.workers import keep_freed_memory

        torch.set_num_threads(1)
        keep_freed_memory()
        self._stack.enter_context(use_compiled_kernels(True))
        self._is_ready = True


def answer_messages(connection: "Connection[Any, Any]", scheduler: Scheduler) -> None:
    """Read messages and do what they ask for. Raises EOFError when the other end is closed."""
    while True:
        while scheduler.is_idle() or connection.poll(0):
            message = connection.recv()
            replies = scheduler.receive(message)
            if replies:
                connection.send(replies)
            if isinstance(message, LoadModel):
                gc.freeze()  # what lives on is not looked through again and again
        if replies := scheduler.advance_one_step():
            connection.send(replies)
