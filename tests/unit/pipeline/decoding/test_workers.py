"""Searches in processes of their own: the same results, errors told, nobody left behind."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import pytest
import torch

from tests.invariants.test_decoding import HashModel, draw_sources, transformer
from tfm.data.errors import DataError
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding import decode as decoding
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.workers import MIN_SENTENCES_PER_WORKER, num_workers, search_all_shards

Tell = Callable[[int], None]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")


def square(number: int, on_done: Tell) -> int:
    on_done(1)
    on_done(number)
    return number * number


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.few(4)
def test_every_share_is_searched_once_and_progress_is_told(count: int, workers: int) -> None:
    told: list[int] = []
    assert dict(search_all_shards(square, count, workers, told.append)) == {
        number: number**2 for number in range(count)
    }
    assert sum(told) == count + sum(range(count))


def test_progress_that_follows_at_once_is_told_together() -> None:
    def search(number: int, on_done: Tell) -> None:
        for _ in range(10_000):
            on_done(1)

    told: list[int] = []
    list(search_all_shards(search, 2, 2, told.append))
    assert sum(told) == 20_000
    assert len(told) < 2_000


def test_an_error_is_raised_where_it_was_asked_for() -> None:
    def search(number: int, on_done: Tell) -> int:
        if number == 3:
            raise DataError("no finite probabilities", file="model")
        return number

    with pytest.raises(DataError, match="model: no finite probabilities"):
        list(search_all_shards(search, 8, 2, lambda _: None))
    assert not multiprocessing.active_children()


class OfTwo(Exception):
    """Can be sent, but not be made again of the one text that is sent."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other}")


def of_nowhere() -> Exception:
    class Local(Exception):
        """Cannot be found by its name."""

    return Local("here")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError(threading.Lock()), "ValueError: <unlocked"),
        (OfTwo("this", "that"), "OfTwo: this and that"),
        (of_nowhere(), "Local: here"),
    ],
    ids=["holds a lock", "of two texts", "of a local class"],
)
def test_an_error_that_cannot_be_sent_is_told_in_words(error: Exception, told: str) -> None:
    def search(number: int, on_done: Tell) -> int:
        raise error

    with pytest.raises(RuntimeError, match=told):
        list(search_all_shards(search, 2, 2, lambda _: None))


def test_a_killed_process_is_told() -> None:
    def search(number: int, on_done: Tell) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(DataError, match=r"killed while decoding; .* lower decoding\.batch_sentences"):
        list(search_all_shards(search, 4, 2, lambda _: None))


def test_a_signal_to_the_terminal_s_group_is_for_the_parent() -> None:
    def search(number: int, on_done: Tell) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return number

    assert sorted(search_all_shards(search, 4, 2, lambda _: None)) == [(number, number) for number in range(4)]


def test_who_breaks_off_leaves_nobody_behind() -> None:
    def search(number: int, on_done: Tell) -> int:
        on_done(1)
        time.sleep(60 if number else 0)
        return number

    def stop(amount: int) -> None:
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(search_all_shards(search, 4, 2, stop))
    assert time.monotonic() - began < 30
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("make", [HashModel, transformer])
@pytest.mark.few(1)
def test_processes_find_the_same(make: Callable[[], HashModel], beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, sources = make(), [*draw_sources(20), []]
    config = DecodingConfig(beam=beam, n_best=beam, batch_sentences=4)
    done: list[int] = []
    found = []
    for workers in (0, 1, 3):
        monkeypatch.setattr(decoding, "num_workers", lambda *_, workers=workers: workers)
        found.append(decode(model, sources, config, on_done=done.append))
    ids, *others = ([[each.ids for each in n_best] for n_best in some] for some in found)
    assert others == [ids, ids]
    assert sum(done) == 3 * len(sources)


def test_few_sentences_and_other_devices_need_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    assert num_workers("cpu", 1000) == 4
    assert num_workers("cpu", 3 * MIN_SENTENCES_PER_WORKER) == 3
    assert num_workers("cpu", 1) == num_workers("cpu", 0) == 0
    assert num_workers("cuda", 1000) == 0
