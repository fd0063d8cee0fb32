"""Queries of all requests to decoding processes and back: fair among requests, bounded, and none of them lost.

A query is a pure function of its model, so one whose process has died is asked of another.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

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

MAX_QUERIES_PER_WORKER = 64
"""The most queries that a process has at a time; the others wait where they can still be cancelled, and be fair."""
MAX_ATTEMPTS = 3
"""A query that its process dies of so often is not asked again: it may be what kills it."""
MIN_SECONDS_TO_RESTART, MAX_SECONDS_TO_RESTART = 0.05, 5.0


class QueueFullError(Exception):
    """More sentences wait than may."""


class QueryProblem(Exception):
    """A query that its model cannot do: the text says why."""


class WorkerFailure(Exception):
    """The server cannot answer: a process has failed or died."""


@dataclass(eq=False)
class _PendingQuery:
    """A query that is waited for. parts: those of its text as they come, where they are asked for."""

    number: int
    query: Query
    done: asyncio.Future[Any]
    parts: asyncio.Queue[str] | None = None
    attempts: int = 0
    worker: "_WorkerSlot | None" = None


@dataclass(eq=False)
class _WorkerSlot:
    """A place for a process: the process, what it has loaded, what it was asked."""

    process: Worker | None = None
    loaded: dict[str, str | None] = field(default_factory=dict)
    asked: dict[int, _PendingQuery] = field(default_factory=dict)
    seconds_to_restart: float = MIN_SECONDS_TO_RESTART


class Dispatcher:
    """The queue of a server and its decoding processes.

    Args:
        start: starts a process.
        num_workers: number of processes.
        max_waiting: the most queries of all requests together.
    """

    def __init__(self, start: StartWorker, num_workers: int, max_waiting: int) -> None:
        self._start, self._max_waiting = start, max_waiting
        self._desks = [_WorkerSlot() for _ in range(num_workers)]
        self._versions: dict[str, ModelVersion] = {}
        self._groups: deque[deque[_PendingQuery]] = deque()
        self._numbers = itertools.count(1)
        self._tickets: dict[int, _PendingQuery] = {}
        self._retired: set[str] = set()
        self._changed = asyncio.Event()
        self._restarts: set[asyncio.TimerHandle] = set()
        self.num_restarts = 0
        self._is_closed = False

    @property
    def num_pending(self) -> int:
        """The number of queries that are waited for."""
        return len(self._tickets)

    @property
    def processes(self) -> list[Worker]:
        """The processes that run now."""
        return [desk.process for desk in self._desks if desk.process is not None]

    def open(self) -> None:
        """Start the processes."""
        for desk in self._desks:
            self._start_process(desk)

    def close(self) -> None:
        """End the processes; what is still waited for fails."""
        self._is_closed = True
        for timer in self._restarts:
            timer.cancel()
        for desk in self._desks:
            if desk.process is not None:
                desk.process.close()
                desk.process = None
        for ticket in list(self._tickets.values()):
            self._fail(ticket, WorkerFailure("the server is shutting down: ask another, or again"))

    def load(self, version: ModelVersion) -> None:
        """Load a version of a model in every process."""
        self._versions[version.key] = version
        for desk in self._desks:
            self._send(desk, LoadModel(version))

    def is_loaded(self, key: str) -> bool:
        """Return whether a process has loaded a version."""
        return any(desk.loaded.get(key, "") is None for desk in self._desks)

    async def wait_loaded(self, key: str) -> str | None:
        """Wait until a version is loaded somewhere; return the reason where no process can load it."""
        while True:
            found = [desk.loaded.get(key, "") for desk in self._desks]
            if None in found:
                return None
            if all(found):
                return found[0]
            await self._changed.wait()

    def unload_when_unused(self, key: str) -> None:
        """Forget a version as soon as nothing is asked of it any more."""
        if key in self._versions:
            self._retired.add(key)
            self._unload_retired()

    def _unload_retired(self) -> None:
        busy = {ticket.query.model for ticket in self._tickets.values()}
        for key in self._retired - busy:
            del self._versions[key]
            for desk in self._desks:
                desk.loaded.pop(key, None)
                self._send(desk, UnloadModel(key))
        self._retired &= busy

    async def ask(self, queries: Sequence[Query], seconds: float) -> list[Any]:
        """Ask queries of one request, and wait for all answers, in order.

        Args:
            queries: the queries.
            seconds: the most that is waited.

        Raises:
            QueueFullError: too many wait.
            QueryProblem: a query cannot be done.
            ServerFault: the server has failed at one.
            TimeoutError: it takes longer; what is not done is cancelled.
        """
        tickets = self._enqueue(queries)
        try:
            async with asyncio.timeout(seconds):
                return [await ticket.done for ticket in tickets]
        finally:
            self._cancel(tickets)

    async def stream(self, query: Query, seconds: float) -> AsyncGenerator[Any]:
        """Ask a query, and yield the parts of its text as they come, then its answer; raises as `ask` does.

        Args:
            query: the query.
            seconds: the most that is waited for the whole.
        """
        parts: asyncio.Queue[str] = asyncio.Queue()
        (ticket,) = tickets = self._enqueue([query], parts)
        ticket.done.add_done_callback(lambda _: parts.put_nowait(""))
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            while True:
                async with asyncio.timeout_at(deadline):  # not around a yield: another task may ask for the next part
                    part = await parts.get()
                if part == "" and ticket.done.done() and parts.empty():
                    break
                if part:
                    yield part
            yield await ticket.done
        finally:
            self._cancel(tickets)

    def _enqueue(self, queries: Sequence[Query], parts: asyncio.Queue[str] | None = None) -> list[_PendingQuery]:
        if self._is_closed:
            raise WorkerFailure("the server is shutting down: ask another, or again")
        if len(self._tickets) + len(queries) > self._max_waiting:
            raise QueueFullError
        loop = asyncio.get_running_loop()
        tickets = [_PendingQuery(next(self._numbers), query, loop.create_future(), parts) for query in queries]
        self._tickets.update((ticket.number, ticket) for ticket in tickets)
        self._groups.append(deque(tickets))
        self._send_waiting()
        return tickets

    def _send_waiting(self) -> None:
        """Send what waits to processes with room: of each request one in turn, each to the process with least to do."""
        parcels: dict[int, list[_PendingQuery]] = {}
        held: list[deque[_PendingQuery]] = []
        while self._groups:
            group = self._groups.popleft()
            while group and group[0].done.done():
                group.popleft()
            if not group:
                continue
            desk = self._least_busy_slot(group[0].query.model)
            if desk is None:
                held.append(group)
                continue
            ticket = group.popleft()
            ticket.worker, desk.asked[ticket.number] = desk, ticket
            parcels.setdefault(self._desks.index(desk), []).append(ticket)
            self._groups.append(group)
        self._groups.extend(held)
        for place, tickets in parcels.items():
            self._send(self._desks[place], QueryBatch(tuple((each.number, each.query) for each in tickets)))

    def _least_busy_slot(self, key: str) -> _WorkerSlot | None:
        """The process that has a model and the least to do; None where all are full, or none has it yet."""
        told = [desk for desk in self._desks if key in desk.loaded]
        able = [desk for desk in told if desk.loaded[key] is None] or told
        ready = [desk for desk in able if len(desk.asked) < MAX_QUERIES_PER_WORKER]
        return min(ready, key=lambda desk: len(desk.asked), default=None)

    def _cancel(self, tickets: Sequence[_PendingQuery]) -> None:
        """Forget tickets, and free the slots of those that are not done."""
        for ticket in tickets:
            self._tickets.pop(ticket.number, None)
            desk = ticket.worker
            if desk is not None and desk.asked.pop(ticket.number, None) is not None:
                self._send(desk, CancelQuery(ticket.number))
            if not ticket.done.done():
                ticket.done.cancel()
            elif not ticket.done.cancelled():
                ticket.done.exception()  # it has been looked at
        if self._retired:
            self._unload_retired()
        if self._groups:
            self._send_waiting()

    def _fail(self, ticket: _PendingQuery, error: Exception) -> None:
        if not ticket.done.done():
            ticket.done.set_exception(error)

    def _receive(self, desk: _WorkerSlot, replies: Sequence[Any]) -> None:
        for reply in replies:
            if isinstance(reply, LoadResult):
                self._note_loaded(desk, reply)
            elif isinstance(reply, AnswerPart):
                ticket = desk.asked.get(reply.number)
                if ticket is not None and ticket.parts is not None:
                    ticket.parts.put_nowait(reply.text)
            else:
                self._deliver_answer(desk, reply)
        if self._groups:
            self._send_waiting()

    def _note_loaded(self, desk: _WorkerSlot, reply: LoadResult) -> None:
        desk.seconds_to_restart = MIN_SECONDS_TO_RESTART
        if reply.key in self._versions:
            desk.loaded[reply.key] = reply.problem
        self._changed.set()
        self._changed = asyncio.Event()

    def _deliver_answer(self, desk: _WorkerSlot, reply: Answer) -> None:
        ticket = desk.asked.pop(reply.number, None)
        if ticket is None or ticket.done.done():
            return
        if reply.problem is None:
            ticket.done.set_result(reply.value)
        else:
            self._fail(ticket, (WorkerFailure if reply.is_fault else QueryProblem)(reply.problem))

    def _start_process(self, desk: _WorkerSlot) -> None:
        if self._is_closed:
            return
        desk.loaded = {}
        desk.process = self._start(
            lambda replies: self._receive(desk, replies), lambda: self._replace_lost_worker(desk)
        )
        for version in self._versions.values():
            self._send(desk, LoadModel(version))

    def _replace_lost_worker(self, desk: _WorkerSlot) -> None:
        """A process has ended: ask what it had again, and start another."""
        desk.process, desk.loaded = None, {}
        lost, desk.asked = list(desk.asked.values()), {}
        for ticket in lost:
            ticket.worker, ticket.attempts = None, ticket.attempts + 1
            if ticket.attempts >= MAX_ATTEMPTS or ticket.parts is not None:
                self._fail(ticket, WorkerFailure("a decoding process has died at this; ask again"))
        self._groups.extendleft(deque([ticket]) for ticket in lost if not ticket.done.done())
        self.num_restarts += 1
        loop = asyncio.get_running_loop()
        self._restarts = {timer for timer in self._restarts if timer.when() > loop.time()}
        self._restarts.add(loop.call_later(desk.seconds_to_restart, self._start_process, desk))
        desk.seconds_to_restart = min(2 * desk.seconds_to_restart, MAX_SECONDS_TO_RESTART)
        self._send_waiting()

    def _send(self, desk: _WorkerSlot, message: Any) -> None:
        if desk.process is not None:
            with suppress(OSError):  # its end is noticed by its reader, which asks again
                desk.process.send(message)
