"""Real processes that run real commands: killed at random moments and at chosen calls, on a disk that is full or may
not be written, and with files of limited size."""

import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.user import write_corpora
from tests.faults import litter
from tests.forked import Ended, Forked
from tests.tiny_stages import STAGES, Stage, make_runs, result_of
from tfm.pipeline.artifacts.artifact import open_artifact

pytestmark = pytest.mark.slow
KILLS = 20
CALLS = 12
EACH = pytest.mark.parametrize("name", STAGES)
Count = Callable[[str, object], None]
Runs = dict[tuple[str, bool], Path]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    write_corpora(folder)
    return folder


@pytest.fixture(scope="module")
def runs(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return make_runs(corpora, tmp_path_factory.mktemp("runs") / "made")


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    program = Forked(tmp_path_factory.mktemp("forked"))
    yield program
    program.close()


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    """The same, which counts the calls that its processes make to the file system."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux, to preload a library, and a C compiler, to make it")
    folder = tmp_path_factory.mktemp("counting")
    library = folder / "kill_at.so"
    source = Path(__file__).with_name("kill_at.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-o", library, source, "-ldl"], check=True)
    program = Forked(folder, shim=library)
    yield program
    program.close()


class Trial:
    """One stage in a run that begins anew each time with an artifact of another plan, and may be disturbed."""

    def __init__(self, forked: Forked, name: str, corpora: Path, runs: Runs, folder: Path) -> None:
        self.forked, self.stage, self.start, self.run = forked, STAGES[name], runs[name, True], folder / "run"
        self.artifact = self.run / self.stage.makes
        self.words = self.stage.command(corpora, self.run)
        self.again()
        self.before = open_artifact(self.artifact).fingerprint
        self.undisturbed = self.whole()
        self.expected = result_of(self.run, self.stage)

    def again(self) -> None:
        shutil.rmtree(self.run, ignore_errors=True)
        shutil.copytree(self.start, self.run, symlinks=True)

    def whole(self) -> Ended:
        """The command, undisturbed."""
        ended = self.forked.tfm(*self.words)
        assert ended.code == 0, ended
        return ended

    def disturbed(self, **how: float | int | bool) -> Ended:
        """The command, disturbed: the old artifact is whole or the new one is; run again, it makes the same bytes."""
        self.again()
        ended = self.forked.tfm(*self.words, **how)  # type: ignore[arg-type]
        found = open_artifact(self.artifact).fingerprint
        assert found in (self.before, self.expected[0]), how
        if ended.code > 0:
            is_said(ended)
            assert found == self.expected[0] or litter(self.artifact) == [], (how, ended)
        self.whole()
        assert result_of(self.run, self.stage) == self.expected, how
        return ended


def is_said(ended: Ended) -> None:
    """An error ends in the exit code of I/O, or of no place, and a last line that names a file."""
    assert ended.code in (73, 74), ended
    assert "Traceback" not in ended.err
    assert re.match(r"/[^:]+: ", ended.err.splitlines()[-1]), ended.err


@pytest.mark.promise("killed")
@EACH
def test_killed_at_random_moments(
    name: str, forked: Forked, corpora: Path, runs: Runs, tmp_path: Path, record_property: Count
) -> None:
    trial, draw, kills = Trial(forked, name, corpora, runs, tmp_path), random.Random(name), 0
    trial.again()
    seconds = trial.whole().seconds
    while kills < KILLS:
        ended = trial.disturbed(kill_after=draw.uniform(0, seconds))
        assert ended.code in (0, -9)
        kills += ended.code == -9
    record_property("kills", kills)


@pytest.mark.promise("killed")
@EACH
def test_killed_at_chosen_calls(
    name: str, counting: Forked, corpora: Path, runs: Runs, tmp_path: Path, record_property: Count
) -> None:
    trial = Trial(counting, name, corpora, runs, tmp_path)
    calls = spread(trial.undisturbed.calls)
    for at in calls:
        assert trial.disturbed(at_call=at).code == -9, at
    record_property("kills", len(calls))


@pytest.mark.promise("failed")
@EACH
def test_a_chosen_call_fails(
    name: str, counting: Forked, corpora: Path, runs: Runs, tmp_path: Path, record_property: Count
) -> None:
    trial = Trial(counting, name, corpora, runs, tmp_path)
    calls = spread(trial.undisturbed.calls)[::2]
    codes = [trial.disturbed(at_call=at, fails=True).code for at in calls]
    assert set(codes) <= {0, 74}  # 0 where it was a courtesy, or tidying up
    assert codes.count(74) > len(codes) / 3
    record_property("points", len(calls))


def spread(calls: int) -> list[int]:
    """Numbers of calls from the first to the last, at most CALLS."""
    assert calls > 10
    return sorted({1 + (calls - 1) * number // (CALLS - 1) for number in range(CALLS)})


@pytest.mark.promise("failed")
@EACH
def test_files_of_limited_size(
    name: str, forked: Forked, corpora: Path, runs: Runs, tmp_path: Path, record_property: Count
) -> None:
    trial = Trial(forked, name, corpora, runs, tmp_path)
    largest = max(file.stat().st_size for file in trial.run.rglob("*") if file.is_file())
    sizes = [0, 100, 1000, *(largest * part // 10 for part in (1, 5, 9))]
    codes = [trial.disturbed(file_size=size).code for size in sizes]
    assert codes[0] == 74
    assert set(codes) <= {0, 74}
    record_property("points", len(sizes))


# A disk of its own


class Disk:
    """A file system in memory, in a name space of its own with the processes that use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "disk"
        self.folder.mkdir()
        mount = 'mount -t tmpfs -o size=64m none "$0" && exec "$@"'
        before = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, self.folder]
        self.forked = Forked(folder, before=before)

    def remount(self, how: str) -> None:
        self.forked.shell("mount", "-o", f"remount,{how}", self.folder)

    def used(self) -> int:
        """Bytes that are taken."""
        return int(self.forked.shell("df", "--block-size=1", "--output=used", self.folder).split()[-1])

    def clear(self) -> None:
        self.forked.shell("find", self.folder, "-mindepth", "1", "-delete")

    def names(self) -> list[str]:
        return self.forked.shell("find", self.folder).splitlines()

    def fingerprint(self, artifact: Path) -> str:
        """Of an artifact, which is verified."""
        ended = self.forked.tfm("inspect", artifact, "--json")
        assert ended.code == 0, ended
        return str(json.loads(ended.out)["fingerprint"])


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    probe = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/tmp"]
    if sys.platform != "linux" or not shutil.which("unshare") or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("needs a system that lets a user mount file systems in a name space (unshare)")
    disk = Disk(tmp_path_factory.mktemp("disks"))
    yield disk
    disk.forked.close()


@pytest.mark.promise("failed")
@EACH
def test_disk_full(name: str, disk: Disk, corpora: Path, runs: Runs, record_property: Count) -> None:
    stage, out = STAGES[name], disk.folder / name
    artifact = out / "model" if name == "train" else out
    words = stage.to(corpora, runs["all", True], out)

    def begin() -> str:
        """An artifact of another plan, alone on the disk; its fingerprint."""
        disk.remount("size=64m")
        disk.clear()
        assert disk.forked.tfm(*words, *stage.other).code == 0
        return disk.fingerprint(artifact)

    def finish() -> str:
        """The fingerprint of what the command makes when there is room."""
        disk.remount("size=64m")
        ended = disk.forked.tfm(*words)
        assert ended.code == 0, ended
        return disk.fingerprint(artifact)

    before = begin()
    used = disk.used()
    expected = finish()
    codes = []
    for room in room_for(stage):
        assert begin() == before
        disk.remount(f"size={used + room}")
        ended = disk.forked.tfm(*words)
        codes.append(ended.code)
        if ended.code:
            is_said(ended)
            drafts = [each for each in disk.names() if each.endswith(".draft") or "/.draft-" in each]
            versions = [each for each in disk.names() if re.fullmatch(rf".*/\.{artifact.name}\.[0-9a-f]{{16}}", each)]
            assert drafts == []
            assert versions == [], room
        assert disk.fingerprint(artifact) == (before if ended.code else expected), room
        assert finish() == expected, room
    assert codes[0] in (73, 74)
    record_property("points", len(codes))


def room_for(stage: Stage) -> list[int]:
    """Bytes left on the disk, in pages: less and less too few."""
    pages = [0, 1, 2, 4, 6, 9, 13, 20]
    if stage.makes == "model":  # beside its checkpoints, for which there must be room from the beginning
        pages += [60, 120, 140]
    return [4096 * number for number in pages]


@pytest.mark.promise("place")
@EACH
def test_a_disk_that_may_only_be_read(name: str, disk: Disk, corpora: Path, runs: Runs) -> None:
    stage, out = STAGES[name], disk.folder / name
    words = stage.to(corpora, runs["all", True], out)
    disk.remount("rw,size=64m")
    disk.clear()
    assert disk.forked.tfm(*words).code == 0
    disk.remount("ro")
    try:
        fresh = disk.forked.tfm(*words)
        assert fresh.code == 0, fresh
        assert "nothing to do" in fresh.err
        there = disk.names()
        for place in (out, out.with_name("other")):
            refused = disk.forked.tfm(*stage.to(corpora, runs["all", True], place), *stage.other)
            assert refused.code == 73, refused
            assert refused.err.splitlines()[-1].startswith(f"{place}"), refused.err
            assert "Read-only file system" in refused.err
        assert disk.names() == there
    finally:
        disk.remount("rw")
