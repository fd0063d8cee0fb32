"""What whoever sends a folder may put under any name in it: ways out of the folder, and what waits or never ends."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

Plant = Callable[[Path, Path], None]


def write_outside(outside: Path) -> None:
    """Files and folders that nothing may reach, with every name that tfm writes or removes."""
    (outside / "folder").mkdir(parents=True)
    for name in ("file", "folder/metrics.jsonl", "folder/manifest.json"):
        (outside / name).write_text("kept\n")
    for name in ("checkpoints", "checkpoints/step-0000002", "step-0000002", ".draft-0000004", "tokenizer"):
        (outside / "folder" / name).mkdir()
        (outside / "folder" / name / "tokenizer.json").write_text("kept\n")


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """All that is in a folder: of each name its kind with its rights, time and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path)] = status.st_mode, status.st_mtime_ns, content
    return found


def clear(place: Path) -> None:
    """Remove whatever has a name."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _link_to(target: str) -> Plant:
    def plant(place: Path, outside: Path) -> None:
        clear(place)
        place.symlink_to(outside / target)

    return plant


def _moved_out(place: Path, outside: Path) -> None:
    """The same bytes, but outside: all that verifies is in order."""
    if not os.path.lexists(place):
        place.mkdir()
    clear(outside / "moved")
    shutil.move(place, outside / "moved")
    place.symlink_to(outside / "moved")


def _pipe(place: Path, outside: Path) -> None:
    clear(place)
    os.mkfifo(place)


def _folder(place: Path, outside: Path) -> None:
    clear(place)
    place.mkdir()
    (place / "file").write_text("x")


def _file(place: Path, outside: Path) -> None:
    clear(place)
    place.write_text("x")


PLANTS: dict[str, Plant] = {
    "moved out": _moved_out,
    "link to a folder": _link_to("folder"),
    "link to a file": _link_to("file"),
    "dangling link": _link_to("nothing"),
    "endless": _link_to("/dev/zero"),
    "full": _link_to("/dev/full"),
    "pipe": _pipe,
    "folder": _folder,
    "file": _file,
}

QUICK = ("moved out", "link to a folder", "dangling link", "pipe")
KINDS = [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in PLANTS]
