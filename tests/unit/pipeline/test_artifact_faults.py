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

from pipeline import files
from pipeline.artifact import open_artifact, stale
from pipeline.errors import DataError
from tests.tiny_artifact import make, plan_of


def around(folder: Path) -> set[str]:
    """Names beside an artifact that are neither it, nor its one version, nor its lock."""
    return {name for name in os.listdir(folder.parent) if name not in (folder.name, f".{folder.name}.lock")} - {
        os.readlink(folder) if folder.is_symlink() else ""
    }


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
@pytest.mark.parametrize("copied", [False, True])
def test_stopped_at_any_call_the_old_is_whole_or_the_new_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, dead: bool, copied: bool
) -> None:
    outcomes = []
    for at in range(1, 1000):
        shutil.rmtree(folder.parent, ignore_errors=True)
        make(plan_of(folder, n=1), "old")
        if copied:
            shutil.copytree(folder, folder.parent / "copy")
            os.unlink(folder)
            os.rename(folder.parent / "copy", folder)
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
        if copied and dead and not folder.exists():
            outcomes.append("none")  # a folder cannot be replaced by a link in one step
        else:
            made = open_artifact(folder)
            text = (folder / "a.txt").read_text()
            assert (made.config["n"], text) in [(1, "old"), (2, "new")]
            outcomes.append(text)
        make(plan_of(folder, n=2), "new")
        assert stale(plan_of(folder, n=2)) is None
        assert around(folder) == set()
    assert outcomes.count("none") <= 1
    assert {"old", "new"} <= set(outcomes)
    if dead:  # else some calls may fail without harm
        assert outcomes == sorted(outcomes, key=["old", "none", "new"].index)


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


@pytest.mark.parametrize("damage", [damage_flip, damage_truncate, damage_remove, damage_link])
@pytest.mark.parametrize("name", ["a.txt", "sub/b.bin", "manifest.json"])
def test_a_damaged_file_is_refused_by_name_and_made_again(
    folder: Path, damage: Callable[[Path], None], name: str
) -> None:
    make(plan_of(folder))
    open_artifact(folder)
    damage(folder.resolve() / name)
    with pytest.raises(DataError) as caught:
        open_artifact(folder)
    assert str(folder) in str(caught.value)
    assert name in str(caught.value)
    reason = stale(plan_of(folder))
    assert reason is not None
    assert reason.startswith("damaged: ")
    make(plan_of(folder))
    assert stale(plan_of(folder)) is None


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


def test_all_is_on_disk_before_the_name_gives_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[tuple[str, object]] = []
    sync, replace = os.fsync, os.replace

    def noted_sync(descriptor: int) -> None:
        events.append(("synced", os.fstat(descriptor).st_ino))
        sync(descriptor)

    def noted_replace(source: Any, target: Any) -> None:
        events.append(("replaced", Path(target).name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    make(plan_of(folder))
    version = folder.resolve()
    order = {name: events.index(("synced", (version / name).stat().st_ino)) for name in ("a.txt", "sub/b.bin", "sub")}
    last = events.index(("synced", (version / "manifest.json").stat().st_ino))
    swap = events.index(("replaced", "thing"))
    assert max(order["a.txt"], order["sub/b.bin"]) < last < events.index(("synced", version.stat().st_ino)) < swap
    assert last < order["sub"] < swap
    assert events[swap + 1] == ("synced", folder.parent.stat().st_ino)


def copied(folder: Path) -> Path:
    """An artifact in a real folder, as `cp -rL` leaves it, and the link beside it gone."""
    make(plan_of(folder))
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    return copy


@pytest.mark.parametrize("nth", [1, 2])
def test_what_stands_where_a_copy_was_says_where_the_copy_is(
    folder: Path, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copied(folder)
    rename, seen = os.rename, []

    def failing(source: Any, target: Any) -> None:
        seen.append(source)
        if len(seen) >= nth:
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="Input/output error") as caught:
        make(plan_of(copy, a=2))
    monkeypatch.undo()
    aside = re.search(r"what was there is now (\S+): move it back", str(caught.value))
    if nth == 1:
        assert aside is None
    else:
        assert aside is not None
        assert isinstance(caught.value.__cause__, OSError)
        os.rename(aside[1].rstrip("'"), copy)
    assert stale(plan_of(copy)) is None


def test_an_interrupt_right_after_the_new_one_stands_stays_an_interrupt(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def interrupted(source: Any, target: Any) -> None:
        replace(source, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(plan_of(folder))
    assert stale(plan_of(folder)) is None


def test_a_hash_is_remembered_only_for_a_file_that_is_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    file.write_text("a")
    digests = []
    real = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *given: digests.append(given) or real(*given))
    for expected in (1, 2):
        files.sha256_of(file)
        assert len(digests) == expected
    monkeypatch.setattr(files, "SETTLED_NS", -1)
    for _ in range(3):
        files.sha256_of(file)
        assert len(digests) == 3
    file.write_text("bb")
    assert files.sha256_of(file) == hashlib.sha256(b"bb").hexdigest()
