"""A process that is forked while it has a model: the new one computes too, instead of waiting for threads it lacks.

A fork copies one thread. The new process still believes in the others: torch waits for those of its team for ever, and
so does whoever wants a lock that one of them held.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from threading import RLock

import torch

_COMPUTE_LOCK = RLock()


@contextmanager
def exclude_other_threads() -> Iterator[None]:
    """Exclude other threads from computing with a model, and from forking this process, while the body runs.

    The precision of products and the compiled loops are those of the whole process, and torch has locks of its own.
    """
    with _COMPUTE_LOCK:
        yield


@cache
def prepare_for_forks() -> None:
    """Let each later fork wait until no model computes, and give the process that it starts one thread for torch."""
    os.register_at_fork(
        before=_COMPUTE_LOCK.acquire, after_in_parent=_COMPUTE_LOCK.release, after_in_child=_reset_after_fork
    )


def _reset_after_fork() -> None:
    with suppress(RuntimeError):  # a signal kept the parent process from waiting
        _COMPUTE_LOCK.release()
    torch.set_num_threads(1)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # else they turn it off themselves, with a long warning
