"""What may happen to a file of an artifact, each with what undoes it; and the folder of a whole tiny run."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Damage = Callable[[Path], None]


def _flipped(share: float) -> Damage:
    def flip(file: Path) -> None:
        data = bytearray(file.read_bytes())
        data[int(share * (len(data) - 1))] ^= 1 << (len(data) % 8)
        file.write_bytes(data)

    return flip


def _truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _link(file: Path) -> None:
    """The same bytes, but elsewhere."""
    elsewhere = file.parent.parent.parent / "elsewhere"
    shutil.copyfile(file, elsewhere)
    file.unlink()
    file.symlink_to(elsewhere)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES: dict[str, Damage] = {
    "first bit flipped": _flipped(0),
    "bit flipped": _flipped(0.6),
    "last bit flipped": _flipped(1),
    "truncated": _truncate,
    "missing": Path.unlink,
    "a link": _link,
    "a folder": _folder,
}


@contextmanager
def damaged(file: Path, damage: Damage) -> Iterator[None]:
    """Within, a file is damaged."""
    data = file.read_bytes()
    damage(file)
    try:
        yield
    finally:
        if file.is_dir() and not file.is_symlink():
            file.rmdir()
        file.unlink(missing_ok=True)
        file.write_bytes(data)


def files_of(artifact: Path) -> list[str]:
    """Every file of an artifact by its path in it."""
    real = artifact.resolve()
    return sorted(str(file.relative_to(real)) for file in real.rglob("*") if file.is_file())


def listing(folder: Path, *, touched: str = "") -> dict[str, tuple[int, int, int]]:
    """All that is in a folder but locks, so that two listings differ where anything was written that stayed.

    touched: the name of files that may be touched.
    """
    return {
        str(path): (status.st_ino, *((0, 0) if path.is_dir() else (status.st_size, status.st_mtime_ns)))
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith(".lock") and path.name != touched
        for status in [path.lstat()]
    }
