"""Readers of an artifact beside a process that publishes new versions: each reads one version, whole."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.tiny_artifact import as_link, make, plan_of
from tfm.pipeline.artifacts import swap
from tfm.pipeline.artifacts.artifact import Manifest, open_artifact, publish, read_artifact
from tfm.pipeline.errors import DataError

ROOT = Path(__file__).parents[4]
NAMES = [f"{number}.bin" for number in range(6)]
SIZE = 50_000
# Publishes without end; every file of a version holds its number.
PUBLISHER = """
import itertools, sys
from pathlib import Path
from tfm.pipeline.artifacts.artifact import publish
from tests.tiny_artifact import plan_of
from tests.unit.pipeline.artifacts.test_artifact_readers import fill
for number in itertools.count():
    with publish(plan_of(Path(sys.argv[1]), n=number), command=[]) as draft:
        fill(draft.folder, number)
"""


def fill(folder: Path, number: int) -> None:
    for name in NAMES:
        (folder / name).write_bytes(number.to_bytes(8, "little") * SIZE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which another process publishes, as fast as it can."""
    return tmp_path / "run" / "thing"


@pytest.fixture
def publisher(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with publish(plan_of(folder), command=[]) as draft:
        fill(draft.folder, 0)
    as_link(folder)  # it begins with what an earlier version of tfm left
    process = subprocess.Popen([sys.executable, "-c", PUBLISHER, folder], env=os.environ | {"PYTHONPATH": str(ROOT)})
    yield process
    process.kill()
    process.wait()


def mapped(made: Manifest) -> list[np.memmap]:
    return [np.memmap(made.folder / name, np.int64, "r") for name in NAMES]


@pytest.mark.slow
def test_what_is_read_and_what_is_mapped_is_of_one_version(folder: Path, publisher: subprocess.Popen[bytes]) -> None:
    seen: set[int] = set()
    kept = []
    while len(seen) < 40:
        assert publisher.poll() is None
        found = read_artifact(folder, lambda made: (made.config.get("n", 0), mapped(made)), "first")
        number, arrays = found
        seen.add(number)
        kept = [*kept[-3:], found]
        for then, arrays in kept:  # what was mapped stays readable when its version is replaced and removed
            assert {int(value) for array in arrays for value in (array[0], array[-1])} == {then}


@pytest.mark.slow
def test_at_every_moment_the_name_gives_a_whole_artifact(folder: Path, publisher: subprocess.Popen[bytes]) -> None:
    """A plain reader, which knows nothing of tfm: the name is always there, and a folder opened by it is whole."""
    seen = set()
    while len(seen) < 40:
        assert publisher.poll() is None
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            manifest = os.open("manifest.json", os.O_RDONLY, dir_fd=descriptor)
        except FileNotFoundError:
            continue  # the folder that was opened has been replaced and is being removed
        finally:
            os.close(descriptor)
        status = os.fstat(manifest)
        seen.add((status.st_ino, status.st_mtime_ns))  # the number of a file that is gone is given again
        os.close(manifest)
    publisher.send_signal(signal.SIGKILL)
    publisher.wait()
    open_artifact(folder)
    make(plan_of(folder))
    assert sorted(os.listdir(folder.parent)) == [".thing.lock", "thing"]


@pytest.mark.parametrize("swaps", [True, False])
def test_a_reader_that_is_overtaken_reads_again(folder: Path, monkeypatch: pytest.MonkeyPatch, swaps: bool) -> None:
    if not swaps:
        monkeypatch.setattr(swap, "atomic_swap", lambda one, other: False)
    make(plan_of(folder, n=0), "0")
    times = 0

    def read(made: Manifest) -> tuple[object, str]:
        nonlocal times
        times += 1
        if times < 3:
            make(plan_of(folder, n=times), str(times))
        if times == 2:
            raise ValueError("half of this, half of that")
        return made.config["n"], (made.folder / "a.txt").read_text()

    assert read_artifact(folder, read) == (2, "2")
    assert times == 3


def test_an_error_of_one_version_is_raised(folder: Path) -> None:
    make(plan_of(folder))

    def read(made: Manifest) -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        read_artifact(folder, read)


def test_what_was_seen_before_must_still_be_there(folder: Path) -> None:
    make(plan_of(folder))
    known = open_artifact(folder).as_input()
    assert read_artifact(folder, lambda made: made.stage, must_match=known) == "first"
    make(plan_of(folder, n=2))
    with pytest.raises(DataError, match="was replaced while this command began"):
        read_artifact(folder, lambda made: made.stage, must_match=known)


def test_a_folder_s_number_given_to_another_one_deceives_nobody(folder: Path) -> None:
    """Some file systems give a removed folder's number to the next new one."""
    make(plan_of(folder, n=0), "0")
    inode = folder.stat().st_ino
    reused: list[Callable[[], bool]] = []

    def read(made: Manifest) -> object:
        if not reused:
            for number in range(1, 6):
                make(plan_of(folder, n=number), str(number))
            assert folder.stat().st_ino != inode
            reused.append(lambda: True)
        return made.config["n"]

    assert read_artifact(folder, read) == 5


def test_readers_in_threads_beside_a_publisher_in_one_process(folder: Path) -> None:
    make(plan_of(folder, n=0), "0")
    done, wrong = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            try:
                n, text = read_artifact(folder, lambda made: (made.config["n"], (made.folder / "a.txt").read_text()))
                if str(n) != text:
                    wrong.append((n, text))
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(1, 60):
        make(plan_of(folder, n=number), str(number))
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
