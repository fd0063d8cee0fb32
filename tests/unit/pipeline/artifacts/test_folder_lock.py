"""Locks: one writer a folder, who is named, and whose lock ends with it."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_artifact import make, plan_of
from tfm.pipeline.artifacts.artifact import lock_folder, open_artifact, publish
from tfm.pipeline.errors import WriteError

ROOT = Path(__file__).parents[4]
# Publishes at the moment it is given, and then waits to be told so before it ends.
WRITER = """
import sys, time
from pathlib import Path
from tfm.pipeline.artifacts.artifact import publish
from tfm.pipeline.errors import WriteError
from tests.tiny_artifact import plan_of
for line in sys.stdin:
    moment, text = line.split()
    time.sleep(max(0, float(moment) - time.monotonic() - 0.0005))
    while time.monotonic() < float(moment):
        pass
    try:
        with publish(plan_of(Path(sys.argv[1])), command=["test"]) as draft:
            print("writes", flush=True)
            (draft.folder / "a.txt").write_text(text)
            sys.stdin.readline()
        print("is done", flush=True)
    except WriteError as error:
        print(error.exit_code, error, flush=True)
"""


class Writers:
    """Processes that want to write the same folder."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = folder
        self.processes = [self._start() for _ in range(number)]

    def _start(self) -> subprocess.Popen[str]:
        command, pipe = [sys.executable, "-c", WRITER, str(self.folder)], subprocess.PIPE
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True, bufsize=1)

    def ask(self, number: int, text: str) -> None:
        stream = self.processes[number].stdin
        assert stream is not None
        stream.write(f"{text}\n")

    def answer(self, number: int) -> str:
        stream = self.processes[number].stdout
        assert stream is not None
        return stream.readline().removesuffix("\n")

    def race(self, text: str) -> tuple[int, list[str]]:
        """Let all of them write at once: which one does, and what the others are told."""
        moment = time.monotonic() + 0.003
        for number in range(len(self.processes)):
            self.ask(number, f"{moment} {text}{number}")
        answers = [self.answer(number) for number in range(len(self.processes))]
        (winner,) = (number for number, answer in enumerate(answers) if answer == "writes")
        return winner, [answer for answer in answers if answer != "writes"]

    def replace(self, number: int) -> None:
        """Kill one of them, and start another in its place."""
        self.stop(number)
        self.processes[number] = self._start()

    def stop(self, number: int) -> None:
        process = self.processes[number]
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run" / "thing"


def test_of_writers_at_once_one_wins_and_is_named(folder: Path) -> None:
    for _ in range(25):
        start, end = threading.Barrier(4), threading.Barrier(4)
        won: list[int] = []
        refusals: list[str] = []

        def write(number: int, start: Any = start, end: Any = end, won: Any = won, refusals: Any = refusals) -> None:
            start.wait(10)
            try:
                with lock_folder(folder):
                    won.append(number)
                    end.wait(10)
            except WriteError as error:
                refusals.append(str(error))
                end.wait(10)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert len(refusals) == 3
        assert all(f"process {os.getpid()} " in refusal for refusal in refusals)


@pytest.mark.promise("writers")
def test_a_lock_ends_with_its_holder_even_if_a_child_of_it_lives(folder: Path) -> None:
    program = (
        "import os, sys, time\nfrom pathlib import Path\nfrom tfm.pipeline.artifacts.folder_lock import lock_folder\n"
        "with lock_folder(Path(sys.argv[1])):\n"
        "    if not os.fork(): print(os.getpid(), flush=True)\n"
        "    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program, str(folder)]
    holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    try:
        with pytest.raises(WriteError, match=f"process {holder.pid} is writing"), lock_folder(folder):
            pytest.fail("two holders")
        holder.kill()
        holder.wait()
        with lock_folder(folder):
            pass
    finally:
        os.kill(child, 9)
        holder.stdout.close()


def test_one_writer_at_a_time_while_an_artifact_is_made(folder: Path) -> None:
    with (
        publish(plan_of(folder), command=[]) as draft,
        pytest.raises(WriteError, match=f"process {os.getpid()}"),
        publish(plan_of(folder), command=[]),
    ):
        pytest.fail("two writers")
    assert not draft.folder.is_symlink()
    open_artifact(folder)


@pytest.fixture
def writers(folder: Path) -> Iterator[Writers]:
    found = Writers(folder, 3)
    yield found
    for number in range(3):
        found.stop(number)


@pytest.mark.promise("writers")
@pytest.mark.slow
def test_of_three_processes_one_writes_and_the_others_are_told_who(
    folder: Path, writers: Writers, record_property: Callable[[str, object], None]
) -> None:
    draw, races, kills, text = random.Random(1), 200, 0, ""
    for race in range(races):
        winner, refusals = writers.race(f"race{race}by")
        holder = writers.processes[winner].pid
        assert len(refusals) == 2
        for refusal in refusals:
            assert refusal.startswith(f"73 {folder}: process {holder} is writing it")
        if draw.random() < 0.03:
            writers.replace(winner)  # what it began is nothing, and blocks nobody
            kills += 1
        else:
            writers.ask(winner, "end")
            assert writers.answer(winner) == "is done"
            text = f"race{race}by{winner}"
        assert not text or (folder / "a.txt").read_text() == text
        if text:
            open_artifact(folder)
    make(plan_of(folder))
    assert sorted(os.listdir(folder.parent)) == [".thing.lock", "thing"]
    assert kills
    record_property("races", races)
    record_property("kills", kills)
