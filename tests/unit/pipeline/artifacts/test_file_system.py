"""Renames and syncs of a file system are tried before any work: refused in words where they are not there."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_artifact import around, make, plan_of
from tfm.pipeline.artifacts.file_system import UNSUPPORTED_ERRNOS, file_system_problem
from tfm.pipeline.errors import WriteError


def test_a_usual_file_system_can_all_and_nothing_is_left(tmp_path: Path) -> None:
    assert file_system_problem(tmp_path) is None
    assert os.listdir(tmp_path) == []


def copied(source: Any, target: Any, **_: Any) -> None:
    """Rename as a store does that copies and leaves the old name."""
    (shutil.copytree if os.path.isdir(source) else shutil.copyfile)(source, target)


@pytest.mark.parametrize(
    ("call", "instead", "reason"),
    [
        ("replace", lambda source, target: os.unlink(source), "does not show what a rename replaced"),
        ("replace", copied, "does not show what a rename replaced"),
        ("rename", copied, "does not show what a rename moved"),
    ],
)
def test_a_rename_that_is_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, instead: Callable[..., None], reason: str
) -> None:
    monkeypatch.setattr(os, call, instead)
    folder = tmp_path / "thing"
    with pytest.raises(WriteError, match=reason) as caught:
        make(plan_of(folder))
    assert str(caught.value).startswith(f"{folder}: ")
    assert not folder.exists()
    assert around(folder) == set()


@pytest.mark.parametrize("code", sorted(UNSUPPORTED_ERRNOS))
@pytest.mark.parametrize("old", [False, True])
def test_an_artifact_stays_whole_where_nothing_can_be_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, old: bool
) -> None:
    folder = tmp_path / "thing"
    if old:
        make(plan_of(folder))
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    def fails(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "rename", fails)
    with pytest.raises(WriteError, match="cannot rename a folder"):
        make(plan_of(folder, a=2), "new")
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
    assert around(folder) == set()


def test_a_full_disk_is_none_of_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        make(plan_of(tmp_path / "thing"))
    assert around(tmp_path / "thing") == set()
