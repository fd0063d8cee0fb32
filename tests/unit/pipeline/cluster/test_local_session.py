"""Chunks computed by processes of this machine: in order, each once, kept ones not at all."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.cluster.chunk_store import chunk_folder, open_chunk_store
from tfm.pipeline.cluster.local_session import WORKER_KILLED_MESSAGE, LocalSession
from tfm.pipeline.cluster.session import MAX_PENDING_CHUNKS_PER_CPU, ComputeChunk
from tfm.pipeline.errors import DataError


def square(number: int) -> bytes:
    """The square of a number, and the process that computed it."""
    return f"{number * number} {os.getpid()}".encode()


def chunks(count: int) -> list[tuple[int, ComputeChunk]]:
    return [(number, ComputeChunk(f"key {number}", (number,))) for number in range(count)]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_results_come_in_order(workers: int) -> None:
    count = 3 * MAX_PENDING_CHUNKS_PER_CPU * max(workers, 1) + 1
    found = list(LocalSession(workers, None).map_in_order(square, chunks(count)))
    assert [(number, int(result.split()[0])) for number, result in found] == [(n, n * n) for n in range(count)]
    processes = {int(result.split()[1]) for _, result in found}
    assert (processes == {os.getpid()}) == (workers == 0)
    assert len(processes) <= max(workers, 1)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_kept_is_not_computed_again(workers: int, tmp_path: Path) -> None:
    plan = Plan("synthesize", tmp_path / "made", {}, {}, None)
    before = {}
    with suppress(RuntimeError), open_chunk_store(plan) as store:
        before = dict(LocalSession(workers, store).map_in_order(square, chunks(3)))
        raise RuntimeError("stopped")
    with open_chunk_store(plan) as store:
        after = dict(LocalSession(workers, store).map_in_order(square, chunks(5)))
    assert {number: after[number] for number in range(3)} == before
    assert [int(after[number].split()[0]) for number in (3, 4)] == [9, 16]
    assert not chunk_folder(plan.folder).exists()


def end(number: int) -> bytes:
    os._exit(number)


def fail(number: int) -> bytes:
    raise DataError(f"chunk {number} is of no use")


def test_an_error_and_the_end_of_a_process_are_raised_here() -> None:
    with pytest.raises(DataError, match="chunk 0 is of no use"):
        list(LocalSession(1, None).map_in_order(fail, chunks(2)))
    with pytest.raises(DataError, match=WORKER_KILLED_MESSAGE[:40]):
        list(LocalSession(1, None).map_in_order(end, chunks(2)))
