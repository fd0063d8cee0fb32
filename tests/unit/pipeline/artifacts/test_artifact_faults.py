"""Artifacts under faults: stopped at any call, or damaged in any file."""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_artifact import around, as_link, make, plan_of
from tfm.pipeline.artifacts import artifact, files, swap
from tfm.pipeline.artifacts.artifact import open_artifact, publish, stale_reason
from tfm.pipeline.errors import DataError, WriteError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run" / "thing"


# What is done to a file system, and may fail or be the last thing a process does.
CALLS = ("mkdir", "fsync", "symlink", "replace", "rename", "unlink", "rmdir", "write")


class Faults:
    """Lets the Nth call to the file system fail; `dead`: and every later one, as if the process had been killed."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.num_calls = 0
        self.at = -1
        self.dead = False
        for name in CALLS:
            patch.setattr(os, name, self._wrapped(getattr(os, name)))
        patch.setattr(swap, "atomic_swap", self._wrapped(swap.atomic_swap))
        real = open

        def opened(file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
            if set(mode) & set("wxa"):
                self._count()
            return real(file, mode, *rest, **more)

        patch.setattr("builtins.open", opened)

    def _wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **more: Any) -> Any:
            self._count()
            return call(*args, **more)

        return wrapped

    def _count(self) -> None:
        self.num_calls += 1
        if self.num_calls == self.at or (self.dead and self.num_calls > self.at > 0):
            raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("dead", [False, True])
@pytest.mark.parametrize("old", ["a folder", "a link", "nothing"])
@pytest.mark.parametrize("swaps", [True, False])
@pytest.mark.few(3)
def test_stopped_at_any_call_the_old_is_whole_or_the_new_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, dead: bool, old: str, swaps: bool
) -> None:
    outcomes = []
    if not swaps:
        monkeypatch.setattr(swap, "atomic_swap", lambda one, other: False)
    for at in range(1, 1000):
        shutil.rmtree(folder.parent, ignore_errors=True)
        folder.parent.mkdir()
        if old != "nothing":
            make(plan_of(folder, n=1), "old")
        if old == "a link":
            as_link(folder)
        with monkeypatch.context() as patch:
            faults = Faults(patch, folder)
            faults.at, faults.dead = at, dead
            try:
                make(plan_of(folder, n=2), "new")
            except OSError:
                pass
            else:
                if faults.num_calls < at:
                    break
        outcomes.append((folder / "a.txt").read_text() if folder.exists() else "nothing")
        if folder.exists():
            assert (open_artifact(folder).config["n"], outcomes[-1]) in [(1, "old"), (2, "new")]
        elif old != "nothing":  # without swapping, between two renames; the next publisher puts the old one back
            assert dead
            assert not swaps
            with publish(plan_of(folder, n=2), command=[]):
                assert (folder / "a.txt").read_text() == "old"
        make(plan_of(folder, n=2), "new")
        assert stale_reason(plan_of(folder, n=2)) is None
        assert not folder.is_symlink()
        assert around(folder) == set()
    first = "nothing" if old == "nothing" else "old"
    assert {first, "new"} <= set(outcomes)
    if old != "nothing":
        assert outcomes.count("nothing") == (dead and not swaps)
    if dead:  # else some calls may fail without harm
        assert outcomes == sorted(outcomes, key=[first, "nothing", "new"].index)


def damage_flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)


def damage_truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


def damage_remove(file: Path) -> None:
    file.unlink()


def damage_link(file: Path) -> None:
    data = file.read_bytes()
    other = file.parents[2] / "elsewhere"
    other.write_bytes(data)
    file.unlink()
    file.symlink_to(other)


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("damage", [damage_flip, damage_truncate, damage_remove, damage_link])
@pytest.mark.parametrize("name", ["a.txt", "sub/b.bin", "manifest.json"])
def test_a_damaged_file_is_refused_by_name_and_made_again(
    folder: Path, damage: Callable[[Path], None], name: str, linked: bool
) -> None:
    make(plan_of(folder))
    if linked:
        as_link(folder)
    open_artifact(folder)
    damage(folder.resolve() / name)
    with pytest.raises(DataError) as caught:
        open_artifact(folder)
    assert str(folder) in str(caught.value)
    assert name in str(caught.value)
    reason = stale_reason(plan_of(folder))
    assert reason is not None
    assert reason.startswith("damaged: ")
    if name == "manifest.json" and damage in (damage_remove, damage_link) and not linked:
        with pytest.raises(WriteError, match=r"no manifest\.json of tfm\); move it away"):
            make(plan_of(folder))  # nothing shows that these files are not somebody's own
        shutil.rmtree(folder)
    make(plan_of(folder))
    assert stale_reason(plan_of(folder)) is None
    assert around(folder) <= {"elsewhere"}


def test_an_extra_file_is_refused_by_name(folder: Path) -> None:
    make(plan_of(folder))
    (folder / "sub" / "extra").touch()
    with pytest.raises(DataError, match=r"thing: 'sub/extra' does not belong"):
        open_artifact(folder)


def test_a_bit_flipped_anywhere_in_a_manifest_is_seen(folder: Path) -> None:
    make(plan_of(folder, a=0.5, b="x"))
    file = folder / "manifest.json"
    data = file.read_bytes()
    for place in range(0, len(data), 3):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        file.write_bytes(changed)
        with pytest.raises(DataError):
            open_artifact(folder)


@pytest.mark.parametrize("old", [False, True])
def test_all_is_on_disk_before_the_name_gives_it(folder: Path, monkeypatch: pytest.MonkeyPatch, old: bool) -> None:
    if old:
        make(plan_of(folder))
    events: list[tuple[str, object]] = []
    sync, rename, exchange = os.fsync, os.rename, swap.atomic_swap
    monkeypatch.setattr(artifact, "file_system_problem", lambda folder: None)  # its files come before

    def noted_sync(descriptor: int) -> None:
        events.append(("synced", os.fstat(descriptor).st_ino))
        sync(descriptor)

    def noted(call: Callable[[Path, Path], Any]) -> Callable[[Path, Path], Any]:
        def moved(source: Path, target: Path) -> Any:
            found = call(source, target)
            events.append(("moved", target.name))
            return found

        return moved

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "rename", noted(rename))
    monkeypatch.setattr(swap, "atomic_swap", noted(exchange))
    make(plan_of(folder))
    order = {name: events.index(("synced", (folder / name).stat().st_ino)) for name in ("a.txt", "sub/b.bin", "sub")}
    last = events.index(("synced", (folder / "manifest.json").stat().st_ino))
    moved_at = events.index(("moved", "thing"))
    assert max(order["a.txt"], order["sub/b.bin"]) < last < events.index(("synced", folder.stat().st_ino)) < moved_at
    assert last < order["sub"] < moved_at
    assert events[moved_at - 1] == events[moved_at + 1] == ("synced", folder.parent.stat().st_ino)


@pytest.mark.parametrize("wrong", [{2}, {3}, {3, 4}], ids=str)
def test_what_was_moved_aside_is_moved_back_or_named(
    folder: Path, wrong: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(plan_of(folder))
    rename, seen = os.rename, []
    monkeypatch.setattr(artifact, "file_system_problem", lambda folder: None)  # it renames before

    def failing(source: Any, target: Any) -> None:
        seen.append(source)
        if len(seen) in wrong:  # 1: finds the place taken, 2: moves aside, 3: puts the new one there, 4: moves back
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    monkeypatch.setattr(swap, "atomic_swap", lambda one, other: False)
    with pytest.raises(OSError, match="Input/output error") as caught:
        make(plan_of(folder, a=2))
    monkeypatch.undo()
    aside = re.search(r"what was there is now (\S+): move it back", str(caught.value))
    if aside is not None:
        assert isinstance(caught.value.__cause__, OSError)
        os.rename(aside[1].rstrip("'"), folder)
    assert (aside is not None) == (4 in wrong)
    assert stale_reason(plan_of(folder)) is None


def test_an_interrupt_right_after_the_new_one_stands_stays_an_interrupt(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(plan_of(folder))
    exchange = swap.atomic_swap

    def interrupted(source: Path, target: Path) -> bool:
        exchange(source, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(swap, "atomic_swap", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(plan_of(folder, n=2))
    assert stale_reason(plan_of(folder, n=2)) is None
    assert around(folder) == set()


def test_a_hash_is_remembered_only_for_a_file_that_is_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    file.write_text("a")
    digests = []
    real = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *given: digests.append(given) or real(*given))
    for expected in (1, 2):
        files.sha256_of(file)
        assert len(digests) == expected
    monkeypatch.setattr(files, "MIN_CACHEABLE_AGE_NS", -1)
    for _ in range(3):
        files.sha256_of(file)
        assert len(digests) == 3
    file.write_text("bb")
    assert files.sha256_of(file) == hashlib.sha256(b"bb").hexdigest()


def test_a_check_whose_folder_cannot_be_removed_ends_no_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that the check made is left, and the next publisher removes it."""

    remove = Path.rmdir

    def fail(path: Path) -> None:
        if path.parent == folder.parent:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        remove(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rmdir", fail)
        artifact.check_output_is_writable(plan_of(folder))
    assert len(around(folder)) == 1
    make(plan_of(folder))
    assert around(folder) == set()
