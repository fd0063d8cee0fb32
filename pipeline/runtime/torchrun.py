"""The processes that torchrun started for one command: the rank of this one, and waiting for the work of another.

All of them make the same calls in the same order; the number of a call identifies it.
"""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from tfm.pipeline.errors import RecipeError, StoppedError, TfmError, mark_as_error_of_one_rank

POLL_INTERVAL_SECONDS = 0.1
ACK_TIMEOUT = 5.0  # for the others to have heard how it ended
_stores: dict[tuple[str | None, str | None], Any] = {}
_collective_call_numbers = count()

# torch is imported where there is more than one process


def rank_and_size() -> tuple[int, int]:
    """The number of this process, and the number of all. Raises RecipeError if torchrun's variables are wrong."""
    return _environment_number("RANK", 0), _environment_number("WORLD_SIZE", 1)


def local_rank() -> int:
    """The number of this process among those of its machine."""
    return _environment_number("LOCAL_RANK", 0)


def _environment_number(name: str, default: int) -> int:
    try:
        return int(os.environ.get(name, default))
    except ValueError as error:
        raise RecipeError(f"WORLD_SIZE, RANK and LOCAL_RANK are numbers that torchrun sets: {error}") from error


def rendezvous_store() -> Any:
    """Return the store of keys and bytes by which the processes of this launch talk, for one purpose."""
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    address = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    try:
        if address not in _stores and dist.is_initialized():  # by Ray Train
            _stores[address] = dist.distributed_c10d._get_default_store()
        if address not in _stores:
            rank, size = rank_and_size()
            _stores[address], _, _ = next(iter(rendezvous("env://", rank, size)))
        return PrefixStore(f"tfm/{next(_collective_call_numbers)}", _stores[address])
    except (RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise mark_as_error_of_one_rank(
            StoppedError(f"the processes of this training could not connect ({reason}); try again")
        ) from error


def run_with_shared_outcome(work: Callable[[], None], *, on_all_ranks: bool = False) -> None:
    """Do some work in the first process, or in all; all are done when the first is, and end with its error."""
    rank, size = rank_and_size()
    if size == 1:
        work()
        return
    store = rendezvous_store()
    if rank:
        _wait_for_rank_zero(store, work if on_all_ranks else None)
        return
    try:
        work()
    except BaseException as error:
        code = (
            StoppedError.exit_code if isinstance(error, KeyboardInterrupt) else 74 if isinstance(error, OSError) else 1
        )
        reason = str(error) or type(error).__name__
        _publish_outcome(store, size, {"failed": reason, "exit_code": getattr(error, "exit_code", code)})
        raise
    _publish_outcome(store, size, {})


def _publish_outcome(store: Any, size: int, outcome: dict[str, Any]) -> None:
    """Publish the outcome, and give the others time to read it: this process may be the one that keeps the store."""
    deadline = time.monotonic() + ACK_TIMEOUT
    with suppress(RuntimeError):  # all are gone
        store.set("outcome", json.dumps(outcome))
        while store.add("heard", 0) < size - 1 and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL_SECONDS)


def _wait_for_rank_zero(store: Any, work: Callable[[], None] | None) -> None:
    """Do a part of the work, if there is one, and wait until rank 0 has finished all of it."""
    try:
        if work is not None:
            work()
        outcome = _collect_outcomes(store)
    finally:
        with suppress(RuntimeError):
            store.add("heard", 1)
    if "failed" in outcome:
        failed = TfmError(f"the first process stopped: {outcome['failed']}")
        failed.exit_code = outcome["exit_code"]
        raise failed


def _collect_outcomes(store: Any) -> dict[str, Any]:
    """Wait for the outcome of the first process. Looks again and again: stages take hours."""
    try:
        while not store.check(["outcome"]):
            time.sleep(POLL_INTERVAL_SECONDS)
        outcome: dict[str, Any] = json.loads(store.get("outcome"))
        return outcome
    except RuntimeError as error:
        raise mark_as_error_of_one_rank(
            StoppedError("the first process has ended; the same command resumes")
        ) from error
