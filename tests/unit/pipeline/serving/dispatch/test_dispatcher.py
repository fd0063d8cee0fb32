"""The queue of a server: fair, bounded, and nothing lost when a process dies."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.serving import MODELS, Bench, answer_of, make_bench
from tfm.pipeline.serving.dispatch import dispatcher as dispatcher_module
from tfm.pipeline.serving.dispatch.answer_cache import AnswerCache
from tfm.pipeline.serving.dispatch.errors import QueueFullError, WorkerFailure
from tfm.pipeline.serving.dispatch.messages import Query
from tfm.pipeline.serving.dispatch.worker_slots import MAX_QUERIES_PER_WORKER
from tfm.pipeline.serving.limits import Limits


def query(text: str) -> Query:
    return Query("de@1", "translate", text)


def run(bench: Bench, body: Callable[[Bench], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        bench.backend.open()
        try:
            return await body(bench)
        finally:
            bench.backend.dispatcher.close()

    return asyncio.run(main())


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_answers_come_in_the_order_of_the_queries() -> None:
    async def body(bench: Bench) -> Any:
        asked = asyncio.create_task(bench.backend.dispatcher.ask([query(str(n)) for n in range(5)], 5))
        await settle()
        (worker,) = bench.workers
        for number, each in reversed(worker.held):
            worker.answer(number, each)
        return await asked

    assert [found[0][0] for found in run(make_bench(holds=True), body)] == list("01234")


def test_a_long_request_does_not_hold_up_a_short_one() -> None:
    async def body(bench: Bench) -> list[str]:
        queue = bench.backend.dispatcher
        long = asyncio.create_task(queue.ask([query(f"long {n}") for n in range(MAX_QUERIES_PER_WORKER + 50)], 5))
        await settle()
        short = asyncio.create_task(queue.ask([query("short")], 5))
        await settle()
        (worker,) = bench.workers
        assert len(worker.held) == MAX_QUERIES_PER_WORKER
        for _ in range(3):
            worker.answer(*worker.held.pop(0))
        await settle()
        long.cancel(), short.cancel()
        return [each.text for each in worker.asked[MAX_QUERIES_PER_WORKER:]]

    assert "short" in run(make_bench(holds=True), body)[:2]


def test_more_than_may_wait_is_refused() -> None:
    async def body(bench: Bench) -> None:
        queue = bench.backend.dispatcher
        first = asyncio.create_task(queue.ask([query("a"), query("b")], 5))
        await settle()
        with pytest.raises(QueueFullError):
            await queue.ask([query("c"), query("d")], 5)
        first.cancel()
        await settle()
        assert queue.num_pending == 0

    run(make_bench(holds=True, limits=Limits(sentences=3)), body)


def test_what_is_cancelled_frees_its_slots() -> None:
    async def body(bench: Bench) -> None:
        task = asyncio.create_task(bench.backend.dispatcher.ask([query(str(n)) for n in range(100)], 5))
        await settle()
        task.cancel()
        await settle()
        (worker,) = bench.workers
        assert sorted(worker.cancelled) == sorted(number for number, _ in worker.held)
        assert len(worker.held) == MAX_QUERIES_PER_WORKER
        assert bench.backend.dispatcher.num_pending == 0

    run(make_bench(holds=True), body)


def test_the_queries_of_a_process_that_dies_are_asked_of_another() -> None:
    async def body(bench: Bench) -> Any:
        asked = asyncio.create_task(bench.backend.dispatcher.ask([query(str(n)) for n in range(6)], 5))
        await settle()
        first, second = bench.workers
        assert len(first.held) == len(second.held) == 3
        first.on_end()
        await settle()
        assert len(second.held) == 6
        for number, each in second.held:
            second.answer(number, each)
        await asyncio.sleep(0.1)
        assert len(bench.workers) == 3  # another was started in its place
        return await asked

    bench = make_bench(holds=True, num_workers=2)
    assert [found[0][0] for found in run(bench, body)] == list("012345")
    assert bench.backend.dispatcher.num_restarts == 1


def test_a_query_that_kills_its_processes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher_module, "MAX_SECONDS_TO_RESTART", 0.01)
    monkeypatch.setattr(dispatcher_module, "MIN_SECONDS_TO_RESTART", 0.01)

    async def body(bench: Bench) -> None:
        asked = asyncio.create_task(bench.backend.dispatcher.ask([query("deadly")], 5))
        for number in range(3):
            while len(bench.workers) <= number or not bench.workers[number].held:
                await asyncio.sleep(0.01)
            bench.workers[number].on_end()
        with pytest.raises(WorkerFailure, match="died"):
            await asked

    run(make_bench(holds=True), body)


def test_a_process_that_cannot_load_a_model_says_why_once_and_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher_module, "SECONDS_TO_LOAD_AGAIN", 0.02)

    async def body(bench: Bench) -> Any:
        queue = bench.backend.dispatcher
        (worker,) = bench.workers
        broken = replace(MODELS[0].version, name="broken")
        worker.load_problem = "its weights are damaged"
        queue.load(broken)
        await asyncio.sleep(0.1)
        assert not queue.is_loaded(broken.key)
        assert bench.warnings == ["broken: could not be loaded, and is tried again: its weights are damaged"]
        worker.load_problem = None
        await asyncio.sleep(0.1)
        assert queue.is_loaded(broken.key)
        return await queue.ask([Query(broken.key, "translate", "a")], 5)

    assert run(make_bench(), body)[0][0][0] == "A"


def test_a_process_that_dies_is_told_of() -> None:
    async def body(bench: Bench) -> None:
        bench.workers[0].on_end()
        await settle()
        assert bench.warnings == ["a decoding process has died, and is started again"]

    run(make_bench(), body)


def test_a_version_that_was_replaced_goes_when_its_last_answer_is_given() -> None:
    async def body(bench: Bench) -> None:
        queue = bench.backend.dispatcher
        task = asyncio.create_task(queue.ask([query("a")], 5))
        await settle()
        queue.unload_when_unused("de@1")
        assert queue.is_loaded("de@1")
        (worker,) = bench.workers
        worker.answer(*worker.held[0])
        assert (await task) == [answer_of(query("a"))]
        assert not queue.is_loaded("de@1")

    run(make_bench(holds=True), body)


def test_a_stream_has_its_parts_in_order_and_ends_with_the_answer() -> None:
    async def body(bench: Bench) -> list[Any]:
        asked = Query("verse@1", "generate", "zero")
        return [part async for part in bench.backend.dispatcher.stream(asked, 5)]

    assert run(make_bench(), body) == [" one", " two", " three", {"finish": "stop", "prompt_tokens": 2, "tokens": 3}]


def test_the_cache_forgets_what_was_not_used_for_longest() -> None:
    cache = AnswerCache(2, 10_000)
    for text in ("a", "b"):
        cache.put(query(text), [(text, 0.0, 0.0, 1)])
    assert cache.get(query("a")) == [("a", 0.0, 0.0, 1)]
    cache.put(query("c"), [("c", 0.0, 0.0, 1)])
    assert [cache.get(query(text)) is not None for text in "abc"] == [True, False, True]
    small = AnswerCache(100, 300)
    for number in range(50):
        small.put(query("x" * 20 + str(number)), [("y" * 20, 0.0, 0.0, 1)])
    assert 0 < len(small) < 4
    small.put(query("z" * 400), [("", 0.0, 0.0, 0)])
    assert small.get(query("z" * 400)) is None
