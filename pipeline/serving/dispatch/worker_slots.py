"""Places for decoding processes: what each has loaded, what it was asked, and which has the least to do."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tfm.pipeline.serving.dispatch.messages import (
    Query,
)
from tfm.pipeline.serving.dispatch.worker_process import Worker

MAX_QUERIES_PER_WORKER = 64
"""The most queries that a process has at a time; the others wait where they can still be cancelled, and be fair."""


MIN_SECONDS_TO_RESTART, MAX_SECONDS_TO_RESTART = 0.05, 5.0


@dataclass(eq=False)
class PendingQuery:
    """A query that is waited for. parts: those of its text as they come, if they are asked for."""

    number: int
    query: Query
    answer: asyncio.Future[Any]
    parts: asyncio.Queue[str] | None = None
    attempts: int = 0
    worker: "WorkerSlot | None" = None

    def fail(self, error: Exception) -> None:
        """Give an error in place of an answer, unless there is one already."""
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(eq=False)
class WorkerSlot:
    """A place for a process: the process, what it has loaded, the queries that it has not answered."""

    process: Worker | None = None
    loaded: dict[str, str | None] = field(default_factory=dict)
    sent_queries: dict[int, PendingQuery] = field(default_factory=dict)
    seconds_to_restart: float = MIN_SECONDS_TO_RESTART

    def send(self, message: Any) -> None:
        """Send a message to the process, if one is running."""
        if self.process is not None:
            with suppress(OSError):  # its end is noticed by its reader, which asks again
                self.process.send(message)


def least_busy_slot(slots: Sequence[WorkerSlot], key: str) -> WorkerSlot | None:
    """The process that has a model and the least to do; None if all are full, or none has it yet."""
    slots_with_model = [slot for slot in slots if key in slot.loaded]
    candidates = [slot for slot in slots_with_model if slot.loaded[key] is None] or slots_with_model
    slots_with_room = [slot for slot in candidates if len(slot.sent_queries) < MAX_QUERIES_PER_WORKER]
    return min(slots_with_room, key=lambda slot: len(slot.sent_queries), default=None)
