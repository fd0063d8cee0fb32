"""Memory of a process and of those that it has started."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfm.pipeline.runtime import process_memory
from tfm.pipeline.runtime.process_memory import TreeMemoryWatch, tree_memory, trim_heap

MB = 10**6
PROGRAM = """
import mmap, os, sys
shared = mmap.mmap(-1, 100 * 10**6)
shared.write(b"a" * len(shared))
if os.fork():
    own = b"b" * (60 * 10**6)
else:
    shared.seek(0)
    assert shared.read(len(shared))[0] == 97
    own = b"c" * (60 * 10**6)
os.write(1, b"ready\\n")
sys.stdin.read()
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Two processes that have 60 MB each, and 100 MB together."""
    if not Path("/proc/self/smaps_rollup").exists():
        pytest.skip("the system does not tell what memory processes share")
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert [child.stdout.readline() for _ in range(2)] == [b"ready\n"] * 2
        yield child
        child.kill()


def test_both_have_their_own_memory_and_the_shared_one_once(process: subprocess.Popen[bytes]) -> None:
    found = tree_memory(process.pid)
    assert 200 * MB < found < 300 * MB


def test_the_most_is_kept(process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "SECONDS_BETWEEN_LOOKS", 0.01)
    watch = TreeMemoryWatch(process.pid)
    watch.start()
    while watch.peak == 0:
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert watch.stop() > 100 * MB


def test_a_process_that_has_ended_has_none(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert tree_memory(process.pid) == 0


def test_freed_memory_between_blocks_in_use_goes_back() -> None:
    """Every hundredth of 2,000 blocks of 100 kB stays, so that no gap is at the end of the heap."""
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("another C library")
    if not tree_memory(os.getpid()):
        pytest.skip("the system does not tell what memory processes share")
    blocks = [bytearray(10**5) for _ in range(2000)]
    kept = blocks[::100]
    del blocks
    before = tree_memory(os.getpid())
    trim_heap()
    assert before - tree_memory(os.getpid()) > 100 * MB
    assert len(kept) == 20
