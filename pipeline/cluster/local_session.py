"""Chunks computed by processes of this machine, as `ClusterSession` has a cluster compute them: without Ray."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TypeVar

from tfm.pipeline.cluster.chunk_store import ChunkStore
from tfm.pipeline.cluster.session import MAX_PENDING_CHUNKS_PER_CPU, ComputeChunk
from tfm.pipeline.runtime.worker_process import (
    WorkerConnection,
    fork_worker,
    receive_from_worker,
    send_to_worker,
)

ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")
WORKER_KILLED_MESSAGE = (
    "a process was killed while it computed a chunk; the same command goes on; if memory ran out, lower OMP_NUM_THREADS"
)


@dataclass(frozen=True)
class LocalSession:
    """Processes of this machine, and the results of chunks that are kept on disk.

    Args:
        workers: processes that are forked; 0: this one computes all, as it must on a GPU.
        store: of the results; None: nowhere.
        at_start: called in each process that is forked.
    """

    workers: int
    store: ChunkStore | None
    at_start: Callable[[], None] = lambda: None

    def share(self, value: ValueT) -> ValueT:
        """Return what stands for a value in the arguments of chunks: the value itself."""
        return value

    def map_in_order(
        self, compute: Callable[..., bytes], chunks: Iterable[tuple[ItemT, ComputeChunk]], *, num_gpus: float = 0
    ) -> Iterator[tuple[ItemT, bytes]]:
        """Compute chunks and yield their results in order, as `ClusterSession.map_in_order` does.

        Args:
            compute: (*arguments) -> result, pure.
            chunks: what the caller knows of each chunk, and the chunk.
            num_gpus: has no part: this process has what GPU there is.

        Raises:
            DataError: a process is killed.
        """
        if self.workers == 0:
            for item, chunk in chunks:
                result = self._read_stored(chunk)
                yield item, result if result is not None else self._store_result(chunk, compute(*chunk.arguments))
            return
        with ExitStack() as stack:
            yield from self._map_by_processes(compute, enumerate(chunks), stack)

    def _map_by_processes(
        self,
        compute: Callable[..., bytes],
        numbered_chunks: Iterator[tuple[int, tuple[ItemT, ComputeChunk]]],
        stack: ExitStack,
    ) -> Iterator[tuple[ItemT, bytes]]:
        idle: list[WorkerConnection] = []
        busy: dict[WorkerConnection, int] = {}
        pending: dict[int, tuple[ItemT, ComputeChunk]] = {}
        results: dict[int, bytes] = {}
        next_number, is_ended = 0, False
        while True:
            while (
                not is_ended and len(busy) < self.workers and len(pending) < MAX_PENDING_CHUNKS_PER_CPU * self.workers
            ):
                if (numbered_chunk := next(numbered_chunks, None)) is None:
                    is_ended = True
                    break
                number, pending[number] = numbered_chunk
                chunk = pending[number][1]
                if (stored_result := self._read_stored(chunk)) is not None:
                    results[number] = stored_result
                    continue
                line = idle.pop() if idle else self._fork(compute, stack)
                send_to_worker(line, chunk.arguments, WORKER_KILLED_MESSAGE)
                busy[line] = number
            if next_number in results:
                yield pending.pop(next_number)[0], results.pop(next_number)
                next_number += 1
                continue
            if not busy:
                return
            ready_lines = wait(list(busy))
            for line in [each for each in busy if each in ready_lines]:
                (result,) = receive_from_worker(line, WORKER_KILLED_MESSAGE)
                number = busy.pop(line)
                results[number] = self._store_result(pending[number][1], result)
                idle.append(line)

    def _fork(self, compute: Callable[..., bytes], stack: ExitStack) -> WorkerConnection:
        return stack.enter_context(fork_worker(lambda arguments, _: compute(*arguments), self.at_start))

    def _read_stored(self, chunk: ComputeChunk) -> bytes | None:
        return None if self.store is None else self.store.read(chunk.key)

    def _store_result(self, chunk: ComputeChunk, result: bytes) -> bytes:
        if self.store is not None:
            self.store.write(chunk.key, result)
        return result
