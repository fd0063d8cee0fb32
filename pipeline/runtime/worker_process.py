"""Processes forked from this one, which answer questions.

A forked process shares this one's memory as it is when it starts, and starts in milliseconds. Signals, locks and files
are this process's business; its end, however it comes, ends the others.
"""

import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from tfm.pipeline.errors import ComputationError

WorkerConnection: TypeAlias = "Connection[Any, Any]"
WorkFunction: TypeAlias = Callable[[Any, Callable[[Any], None]], Any]
"""Function that answers a question; on the way it may tell its progress."""


def can_fork() -> bool:
    """Whether a process can be forked from this one."""
    return sys.platform == "linux" and not multiprocessing.current_process().daemon


@contextmanager
def fork_worker(work: WorkFunction, at_start: Callable[[], None] = lambda: None) -> Iterator[WorkerConnection]:
    """Fork a process that answers, in a tuple, each question that is sent to it, by the result of `work`.

    Its other messages are those that `work` tells on the way, or the error that it raised. The process has one thread.
    Its life ends with this block, or with this process.
    """
    context = multiprocessing.get_context("fork")
    parent_end, child_end = context.Pipe()
    process = context.Process(target=_serve_requests, args=(child_end, work, at_start))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads, none of which the child uses
        process.start()
    child_end.close()
    try:
        yield parent_end
    finally:
        parent_end.close()
        process.kill()
        process.join()


def send_to_worker(connection: WorkerConnection, request: Any, killed_message: str) -> None:
    """Send a question to a forked process.

    Args:
        connection: the connection.
        request: any value that can be pickled.
        killed_message: the text of the error.

    Raises:
        ComputationError: the process is no more.
    """
    try:
        connection.send(request)
    except ConnectionError as gone:
        raise ComputationError(killed_message) from gone


def receive_from_worker(connection: WorkerConnection, killed_message: str) -> Any:
    """Receive from a forked process: an answer in a tuple, or a message on the way.

    Raises the error of its work; ComputationError with the text `killed_message` where it is no more.
    """
    try:
        answer = connection.recv()
    except (EOFError, ConnectionError) as gone:
        raise ComputationError(killed_message) from gone
    if isinstance(answer, Exception):
        raise answer
    return answer


def _serve_requests(connection: WorkerConnection, work: WorkFunction, at_start: Callable[[], None]) -> None:
    # A signal may be meant for the whole group of processes: the one that was started decides what follows.
    signal.set_wakeup_fd(-1)
    for signal_number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_IGN)
    os.closerange(3, connection.fileno())
    os.closerange(connection.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
    try:
        if (torch := sys.modules.get("torch")) is not None:
            torch.set_num_threads(1)  # the threads of before the fork are not there
        at_start()
        while True:
            question = connection.recv()
            try:
                answer: Any = (work(question, connection.send),)
            except ConnectionError:
                break
            except Exception as error:  # raised again in the parent process
                _send_error(connection, error)
                continue
            connection.send(answer)
    except (EOFError, ConnectionError):
        pass  # the parent has closed the connection
    except Exception as error:  # without memory for the question or the answer
        _send_error(connection, error)
    os._exit(0)


def _send_error(connection: WorkerConnection, error: Exception) -> None:
    try:
        copy(error)  # is made again as it will be where it arrives
        connection.send(error)
    except Exception:  # it cannot be rebuilt or sent, and its class may raise anything
        with suppress(Exception):  # the parent sees that the process has ended
            connection.send(RuntimeError(f"{type(error).__name__}: {error}"))
