"""Sentences divided among several processes, which decode in parallel.

A step of a search is many small operations, which two processes do in half the time but two threads hardly faster.
"""

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from multiprocessing.connection import wait
from typing import TypeAlias, TypeVar

import torch

from tfm.pipeline.runtime.worker_process import (
    WorkerConnection,
    can_fork,
    fork_worker,
    receive_from_worker,
    send_to_worker,
)

T = TypeVar("T")
ShardSearch: TypeAlias = Callable[[int, Callable[[int], None]], T]
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of malloc.h
MADV_HUGEPAGE = 14  # of linux/mman.h
LARGE_PAGE_BYTES = 2 << 20
PREALLOCATED_BYTES = 256 << 20
MIN_SECONDS_BETWEEN_REPORTS = 0.05
"""A small model finds thousands of translations a second: a message for each would cost as much as the search."""
MIN_SENTENCES_PER_WORKER = 8
"""Fewer than that many for each process are not worth another process."""
WORKER_KILLED_MESSAGE = (
    "decoding: a process was killed while decoding; if memory ran out, lower decoding.batch_sentences"
)


_threads_to_imitate: ContextVar[int | None] = ContextVar("threads to imitate", default=None)


def num_workers(device: torch.device | str, num_sentences: int) -> int:
    """Return the number of processes that are to share so many sentences: none if this one had better do it itself.

    Even one is better than none: a worker may keep its memory as suits a search (`keep_freed_memory`).
    """
    if not can_fork() or torch.device(device).type != "cpu":
        return 0
    threads = _threads_to_imitate.get() or torch.get_num_threads()
    return min(threads, num_sentences // MIN_SENTENCES_PER_WORKER)


@contextmanager
def imitate_num_threads(num_threads: int) -> Iterator[None]:
    """Decode in this process alone, for the time of the block, with the results that forked processes would give.

    How sentences are shared out decides the shapes of products, and so the last digits of scores.

    Args:
        num_threads: of threads of the process to imitate, one of a machine with a fork.
    """
    previous_num_threads, token = torch.get_num_threads(), _threads_to_imitate.set(num_threads)
    try:
        torch.set_num_threads(num_threads)
        yield
    finally:
        torch.set_num_threads(previous_num_threads)
        _threads_to_imitate.reset(token)


def search_all_shards(
    search: ShardSearch[T], count: int, workers: int, on_done: Callable[[int], None]
) -> Iterator[tuple[int, T]]:
    """Yield each number below `count` with the result of its search, in any order; an error of a search is raised
    here.

    Args:
        search: (number, report) -> result; calls `report` with the amount of work that it has done.
        count: number of searches.
        workers: number of processes; 0 for this one alone.
        on_done: called with the amounts that searches report.

    Raises:
        DataError: a process is killed.
    """
    if workers == 0:
        for number in range(count):
            yield number, search(number, on_done)
        return
    if _threads_to_imitate.get() is not None:
        torch.set_num_threads(1)  # as a forked process has
        try:
            for number in range(count):
                yield number, search(number, on_done)
        finally:
            torch.set_num_threads(_threads_to_imitate.get() or 1)
        return
    numbers = iter(range(count))
    with ExitStack() as stack:
        idle = [
            stack.enter_context(fork_worker(partial(_search_with_few_reports, search), at_start=keep_freed_memory))
            for _ in range(min(workers, count))
        ]
        busy: dict[WorkerConnection, int] = {}
        while True:
            for line, number in zip(idle, numbers, strict=False):
                send_to_worker(line, number, WORKER_KILLED_MESSAGE)
                busy[line] = number
            if not busy:
                return
            idle = []
            ready = wait(list(busy))
            for line in [each for each in busy if each in ready]:
                answer = receive_from_worker(line, WORKER_KILLED_MESSAGE)
                if isinstance(answer, int):
                    on_done(answer)
                else:
                    idle.append(line)
                    yield busy.pop(line), answer[0]


def _search_with_few_reports(search: ShardSearch[T], number: int, report: Callable[[int], None]) -> T:
    """Search as `search` does, but merge reports of work that follow each other quickly."""
    amount, last = 0, time.monotonic()

    def add(increment: int) -> None:
        nonlocal amount, last
        amount, seconds = amount + increment, time.monotonic()
        if seconds - last >= MIN_SECONDS_BETWEEN_REPORTS:
            report(amount)
            amount, last = 0, seconds

    result = search(number, add)
    if amount:
        report(amount)
    return result


def keep_freed_memory() -> None:
    """Let glibc, where it is that, keep freed memory: a step's largest tensors are as large as the step before's, and
    pages that come again from the system are filled with zeros first.
    """
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
        libc.mallopt(M_MMAP_MAX, 0)
        _use_large_pages(libc)


def _use_large_pages(libc: ctypes.CDLL) -> None:
    """Ask Linux to back the next allocations by pages of 2 MiB: a step looks at more memory than the processor keeps
    the places of in pages of 4 KiB.
    """
    libc.malloc.restype = ctypes.c_void_p
    if block := libc.malloc(ctypes.c_size_t(PREALLOCATED_BYTES)):
        aligned = -(-block // LARGE_PAGE_BYTES) * LARGE_PAGE_BYTES
        libc.madvise(ctypes.c_void_p(aligned), ctypes.c_size_t(block + PREALLOCATED_BYTES - aligned), MADV_HUGEPAGE)
        libc.free(ctypes.c_void_p(block))  # and so it is there for what comes, and nothing of it is used yet
