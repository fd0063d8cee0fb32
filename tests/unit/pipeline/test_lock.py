"""Locks: one writer a folder, who is named, and whose lock ends with it."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pipeline.artifact import Input, Plan, lock, open_artifact, publish
from pipeline.errors import CannotWrite

ROOT = Path(__file__).parents[3]


def plan_of(
    folder: Path, stage: str = "first", seed: int = 1, inputs: dict[str, Input] | None = None, **config: Any
) -> Plan:
    return Plan(stage, folder, config, inputs or {}, seed)


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
                with lock(folder):
                    won.append(number)
                    end.wait(10)
            except CannotWrite as error:
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
        "import os, sys, time\nfrom pathlib import Path\nfrom pipeline.lock import lock\n"
        "with lock(Path(sys.argv[1])):\n"
        "    child = os.fork()\n"
        "    if child: print(child, flush=True)\n"
        "    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program, str(folder)]
    holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    try:
        with pytest.raises(CannotWrite, match=f"process {holder.pid} is writing"), lock(folder):
            pytest.fail("two holders")
        holder.kill()
        holder.wait()
        with lock(folder):
            pass
    finally:
        os.kill(child, 9)
        holder.stdout.close()


def test_one_writer_at_a_time_while_an_artifact_is_made(folder: Path) -> None:
    with (
        publish(plan_of(folder), command=[]) as draft,
        pytest.raises(CannotWrite, match=f"process {os.getpid()}"),
        publish(plan_of(folder), command=[]),
    ):
        pytest.fail("two writers")
    assert not draft.folder.is_symlink()
    open_artifact(folder)
