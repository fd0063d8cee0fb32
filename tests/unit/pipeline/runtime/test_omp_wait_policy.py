"""Threads that sleep while they wait burn no time, and compute what they compute otherwise."""

import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tfm.pipeline.runtime.omp_wait_policy import PassiveWaiting
from tfm.pipeline.runtime.threads import num_processors

MAPS = Path("/proc/self/maps")


@pytest.fixture
def two_threads() -> Iterator[None]:
    was = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(was)


def burnt(rounds: int = 50) -> float:
    """Seconds of processor time of some short work for two threads, with pauses in which they wait for more."""
    numbers, before = torch.zeros(1 << 17), time.process_time()
    for _ in range(rounds):
        numbers.add_(1)
        time.sleep(0.005)
    return time.process_time() - before


@pytest.mark.skipif(not MAPS.exists() or "libgomp" not in MAPS.read_text(), reason="torch's threads are not libgomp's")
@pytest.mark.skipif(num_processors() < 2, reason="on one processor libgomp's threads sleep at once anyway")
def test_threads_sleep_or_spin_as_they_are_told(two_threads: None) -> None:
    waits = PassiveWaiting()
    spinning = burnt()
    waits.set_passive(is_passive=True)
    sleeping = burnt()
    waits.set_passive(is_passive=False)
    time.sleep(0.1)  # the thread that is told to end frees its team as it does so
    again = burnt()
    assert sleeping < spinning / 2
    assert sleeping < again / 2


def test_what_is_computed_is_the_same_to_the_bit(two_threads: None) -> None:
    torch.manual_seed(0)
    left, right = torch.randn(300, 500), torch.randn(500, 400)
    waits, found = PassiveWaiting(), []
    for on in (False, True, True, False):
        waits.set_passive(on)
        assert waits.is_on is on
        assert torch.get_num_threads() == 2
        product = left @ right
        found.append((product, product.exp().sum(), product.softmax(1).sum(0)))
    for each in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], each, strict=True))


@pytest.mark.slow
def test_it_ends_with_its_object() -> None:
    before = threading.active_count()
    waits = PassiveWaiting()
    waits.set_passive(is_passive=True)
    assert threading.active_count() == before + 1
    del waits
    gc.collect()
    until = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_without_memory_for_the_team_the_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(size: int) -> torch.Tensor:
        raise MemoryError

    failed = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: failed.set())
    monkeypatch.setattr(torch, "zeros", fails)
    PassiveWaiting().set_passive(is_passive=True)  # and comes back
    assert failed.wait(10)
