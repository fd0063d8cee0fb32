"""Queries of all requests to decoding processes and back: fair among requests, bounded, and none of them lost.

A query is a pure function of its model, so one whose process has died is asked of another.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from tfm.pipeline.serving.dispatch.errors import QueryProblem, QueueFullError, WorkerFailure
from tfm.pipeline.serving.dispatch.messages import (
    Answer,
    AnswerPart,
    CancelQuery,
    LoadModel,
    LoadResult,
    ModelVersion,
    Query,
    QueryBatch,
    UnloadModel,
)
from tfm.pipeline.serving.dispatch.worker_process import StartWorker, Worker
from tfm.pipeline.serving.dispatch.worker_slots import (
    MAX_SECONDS_TO_RESTART,
    MIN_SECONDS_TO_RESTART,
    PendingQuery,
    WorkerSlot,
    least_busy_slot,
)

SECONDS_TO_LOAD_AGAIN = 2.0
MAX_ATTEMPTS = 3
"""A query that its process dies of so often is not asked again: it may be what kills it."""


class Dispatcher:
    """The queue of a server and its decoding processes.

    Args:
        start: starts a process.
        num_workers: number of processes.
        max_waiting: the most queries of all requests together.
        warn: tells the operator of a process that has died, or could not load a model.
    """

    def __init__(
        self,
        start: StartWorker,
        num_workers: int,
        max_waiting: int,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._start, self._max_waiting, self._warn = start, max_waiting, warn
        self._slots = [WorkerSlot() for _ in range(num_workers)]
        self._versions: dict[str, ModelVersion] = {}
        self._groups: deque[deque[PendingQuery]] = deque()
        self._numbers = itertools.count(1)
        self._pending: dict[int, PendingQuery] = {}
        self._retired: set[str] = set()
        self._changed = asyncio.Event()
        self._timers: set[asyncio.TimerHandle] = set()
        self._load_problems: dict[str, str] = {}  # by version, why it could not be loaded
        self.num_restarts = 0
        self._is_closed = False

    @property
    def num_pending(self) -> int:
        """The number of queries that are waited for."""
        return len(self._pending)

    @property
    def workers(self) -> list[Worker]:
        """The processes that run now."""
        return [slot.process for slot in self._slots if slot.process is not None]

    def open(self) -> None:
        """Start the processes."""
        for slot in self._slots:
            self._start_process(slot)

    def close(self) -> None:
        """End the processes; what is still waited for fails."""
        self._is_closed = True
        for timer in self._timers:
            timer.cancel()
        for slot in self._slots:
            if slot.process is not None:
                slot.process.close()
                slot.process = None
        for pending in list(self._pending.values()):
            pending.fail(WorkerFailure("the server is shutting down: send the request again later"))

    def load(self, version: ModelVersion) -> None:
        """Load a version of a model in every process."""
        self._versions[version.key] = version
        for slot in self._slots:
            slot.send(LoadModel(version))

    def is_loaded(self, key: str) -> bool:
        """Return whether a process has loaded a version."""
        return any(slot.loaded.get(key, "") is None for slot in self._slots)

    async def wait_until_loaded(self, key: str) -> str | None:
        """Wait until a version is loaded somewhere; return the reason where no process can load it."""
        while True:
            reasons = [slot.loaded.get(key, "") for slot in self._slots]
            if None in reasons:
                return None
            if all(reasons):
                return reasons[0]
            await self._changed.wait()

    def unload_when_unused(self, key: str) -> None:
        """Forget a version as soon as nothing is asked of it any more."""
        if key in self._versions:
            self._retired.add(key)
            self._unload_retired_versions()

    def _unload_retired_versions(self) -> None:
        busy = {pending.query.model for pending in self._pending.values()}
        for key in self._retired - busy:
            del self._versions[key]
            self._load_problems.pop(key, None)
            for slot in self._slots:
                slot.loaded.pop(key, None)
                slot.send(UnloadModel(key))
        self._retired &= busy

    async def ask(self, queries: Sequence[Query], seconds: float) -> list[Any]:
        """Ask queries of one request, and wait for all answers, in order.

        Args:
            queries: the queries.
            seconds: the most that is waited.

        Raises:
            QueueFullError: too many wait.
            QueryProblem: a query cannot be done.
            WorkerFailure: the server has failed at one.
            TimeoutError: it takes longer; what is not done is cancelled.
        """
        pending_queries = self._enqueue(queries)
        try:
            async with asyncio.timeout(seconds):
                return [await pending.answer for pending in pending_queries]
        finally:
            self._cancel_queries(pending_queries)

    async def stream(self, query: Query, seconds: float) -> AsyncGenerator[Any]:
        """Ask a query, and yield the parts of its text as they come, then its answer; raises as `ask` does.

        Args:
            query: the query.
            seconds: the most that is waited for the whole.
        """
        parts: asyncio.Queue[str] = asyncio.Queue()
        (pending,) = pending_queries = self._enqueue([query], parts)
        pending.answer.add_done_callback(lambda _: parts.put_nowait(""))
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            while True:
                async with asyncio.timeout_at(deadline):  # not around a yield: another task may ask for the next part
                    part = await parts.get()
                if part == "" and pending.answer.done() and parts.empty():
                    break
                if part:
                    yield part
            yield await pending.answer
        finally:
            self._cancel_queries(pending_queries)

    def _enqueue(self, queries: Sequence[Query], parts: asyncio.Queue[str] | None = None) -> list[PendingQuery]:
        if self._is_closed:
            raise WorkerFailure("the server is shutting down: send the request again later")
        if len(self._pending) + len(queries) > self._max_waiting:
            raise QueueFullError
        loop = asyncio.get_running_loop()
        pending_queries = [PendingQuery(next(self._numbers), query, loop.create_future(), parts) for query in queries]
        self._pending.update((pending.number, pending) for pending in pending_queries)
        self._groups.append(deque(pending_queries))
        self._send_waiting_queries()
        return pending_queries

    def _send_waiting_queries(self) -> None:
        """Send what waits to processes with room: of each request one in turn, each to the process with least to do."""
        batches: dict[int, list[PendingQuery]] = {}
        unsent_groups: list[deque[PendingQuery]] = []
        while self._groups:
            group = self._groups.popleft()
            while group and group[0].answer.done():
                group.popleft()
            if not group:
                continue
            slot = least_busy_slot(self._slots, group[0].query.model)
            if slot is None:
                unsent_groups.append(group)
                continue
            pending = group.popleft()
            pending.worker, slot.sent_queries[pending.number] = slot, pending
            batches.setdefault(self._slots.index(slot), []).append(pending)
            self._groups.append(group)
        self._groups.extend(unsent_groups)
        for index, pending_queries in batches.items():
            self._slots[index].send(QueryBatch(tuple((each.number, each.query) for each in pending_queries)))

    def _cancel_queries(self, pending_queries: Sequence[PendingQuery]) -> None:
        """Forget pending_queries, and free the slots of those that are not done."""
        for pending in pending_queries:
            self._pending.pop(pending.number, None)
            slot = pending.worker
            if slot is not None and slot.sent_queries.pop(pending.number, None) is not None:
                slot.send(CancelQuery(pending.number))
            if not pending.answer.done():
                pending.answer.cancel()
            elif not pending.answer.cancelled():
                pending.answer.exception()  # it has been looked at
        if self._retired:
            self._unload_retired_versions()
        if self._groups:
            self._send_waiting_queries()

    def _handle_replies(self, slot: WorkerSlot, replies: Sequence[Any]) -> None:
        for reply in replies:
            if isinstance(reply, LoadResult):
                self._record_load_result(slot, reply)
            elif isinstance(reply, AnswerPart):
                pending = slot.sent_queries.get(reply.number)
                if pending is not None and pending.parts is not None:
                    pending.parts.put_nowait(reply.text)
            else:
                self._deliver_answer(slot, reply)
        if self._groups:
            self._send_waiting_queries()

    def _record_load_result(self, slot: WorkerSlot, reply: LoadResult) -> None:
        slot.seconds_to_restart = MIN_SECONDS_TO_RESTART
        version = self._versions.get(reply.key)
        if version is not None:
            slot.loaded[reply.key] = reply.problem
            if reply.problem is None:
                self._load_problems.pop(reply.key, None)
            else:
                self._try_again_to_load(slot, version, reply.problem)
        self._changed.set()
        self._changed = asyncio.Event()

    def _try_again_to_load(self, slot: WorkerSlot, version: ModelVersion, problem: str) -> None:
        """Say once why a process could not load a version, and let it try again, unless another takes its place."""
        if self._load_problems.get(version.key) != problem:
            self._load_problems[version.key] = problem
            self._warn(f"{version.name}: could not be loaded, and is tried again: {problem}")

        def load(process: Worker | None = slot.process) -> None:
            if self._versions.get(version.key) is version and slot.process is process:
                slot.send(LoadModel(version))

        self._call_later(SECONDS_TO_LOAD_AGAIN, load)

    def _call_later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something after so long, unless the queue is closed before."""
        loop = asyncio.get_running_loop()
        self._timers = {timer for timer in self._timers if timer.when() > loop.time()}
        self._timers.add(loop.call_later(seconds, action))

    def _deliver_answer(self, slot: WorkerSlot, reply: Answer) -> None:
        pending = slot.sent_queries.pop(reply.number, None)
        if pending is None or pending.answer.done():
            return
        if reply.problem is None:
            pending.answer.set_result(reply.value)
        else:
            pending.fail((WorkerFailure if reply.is_fault else QueryProblem)(reply.problem))

    def _start_process(self, slot: WorkerSlot) -> None:
        if self._is_closed:
            return
        slot.loaded = {}
        slot.process = self._start(
            lambda replies: self._handle_replies(slot, replies), lambda: self._replace_lost_worker(slot)
        )
        for version in self._versions.values():
            slot.send(LoadModel(version))

    def _replace_lost_worker(self, slot: WorkerSlot) -> None:
        """Send the queries of a process that has ended again, and start another process."""
        slot.process, slot.loaded = None, {}
        pending_queries, slot.sent_queries = list(slot.sent_queries.values()), {}
        for pending in pending_queries:
            pending.worker, pending.attempts = None, pending.attempts + 1
            if pending.attempts >= MAX_ATTEMPTS or pending.parts is not None:
                pending.fail(WorkerFailure("a decoding process died on this request: send it again"))
        self._groups.extendleft(deque([pending]) for pending in pending_queries if not pending.answer.done())
        self.num_restarts += 1
        if not self._is_closed:
            self._warn("a decoding process has died, and is started again")
        self._call_later(slot.seconds_to_restart, lambda: self._start_process(slot))
        slot.seconds_to_restart = min(2 * slot.seconds_to_restart, MAX_SECONDS_TO_RESTART)
        self._send_waiting_queries()
