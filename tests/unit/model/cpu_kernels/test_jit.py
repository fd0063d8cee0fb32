"""What numba keeps of the loops is used again, until any file that they are made of changes."""

import ast
import os
import resource
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("numba", reason="no numba (extra: fast)")

FOLDER = Path(__file__).parents[4] / "model" / "cpu_kernels"
OF_LOOPS = sorted(file for file in FOLDER.glob("*.py") if file.stem != "dispatch")
SHOW = """
import numpy as np
from tfm.model.cpu_kernels.log_softmax_topk import log_softmax
logits = np.zeros((1, 4), np.float32)
log_softmax(logits)
stats = log_softmax.stats
print(logits[0, 0], sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the folder of the loops, in a package `tfm` that holds nothing else."""
    copy = tmp_path / "tfm" / "model" / "cpu_kernels"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for package in copy.parents[:2]:
        (package / "__init__.py").touch()
    # one loop of its file is enough here
    file = copy / "log_softmax_topk.py"
    file.write_text(file.read_text().partition("\n\n\n@inline_jit\ndef insert_candidate")[0] + "\n")
    return copy


def shown(folder: Path, **environment: str) -> tuple[float, int, int, Path]:
    """log(1 / 4) as the loop finds it, how many loops were taken from the cache, how many compiled, and where to."""
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    root = folder.parents[2]
    done = subprocess.run(
        [sys.executable, "-B", "-c", SHOW],
        cwd=root,
        env={**kept, "PYTHONPATH": str(root), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    value, hits, misses, path = done.stdout.split(maxsplit=3)
    return float(value), int(hits), int(misses), Path(path.strip())


@pytest.mark.slow
def test_a_loop_is_compiled_anew_when_a_function_in_another_file_changes(folder: Path) -> None:
    value, *counts, path = shown(folder)
    assert value == pytest.approx(-1.3862944)
    assert (counts, path) == ([0, 1], folder / "__pycache__")
    again, *counts, _ = shown(folder)
    assert (again, counts) == (value, [1, 0])

    file = folder / "softmax.py"
    was, text = file.stat(), file.read_text()
    changed = text.replace("+ rest + splat(np.float32(1.0))) *", "+ rest + splat(np.float32(2.0))) *")  # e^0 = 2
    assert changed != text
    file.write_text(changed)
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))  # what it holds counts, not when it was written
    value, *counts, _ = shown(folder)
    assert value == pytest.approx(-2.0794415)
    assert counts == [0, 1]


@pytest.mark.slow
def test_where_the_folder_cannot_be_written_it_is_kept_in_the_users_own(folder: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        (folder / "__pycache__").write_text("")  # root may write everywhere: a file stands in the way
    else:
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    homes = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home" / "cache")}
    value, *counts, path = shown(folder, **homes)
    assert counts == [0, 1]
    assert path.is_relative_to(tmp_path / "home")
    assert shown(folder, **homes)[:3] == (value, 1, 0)


@pytest.mark.slow
def test_where_it_can_be_kept_nowhere_it_is_compiled(folder: Path, tmp_path: Path) -> None:
    for file in (folder / "__pycache__", tmp_path / "home"):
        file.write_text("")
    value, *_, path = shown(folder, HOME=str(tmp_path / "home"), XDG_CACHE_HOME=str(tmp_path / "home"))
    assert value == pytest.approx(-1.3862944)
    assert str(path) == "None"


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def fill_with_zeros(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def change_a_bit(file: Path) -> None:
    """In the code, where a file that holds it has it."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def put_a_folder_there(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", [empty, cut, fill_with_zeros, change_a_bit, put_a_folder_there])
@pytest.mark.few(5)
def test_whatever_the_cache_holds_a_loop_is_compiled(kept: Any, damage: Any, ending: str) -> None:
    kept.make()
    files = [file for file in kept.folder.rglob("*") if file.suffix == ending]
    assert files
    for file in files:
        damage(file)
    assert kept.make() == (0, 1)
    if damage is not put_a_folder_there:
        assert kept.make() == (1, 0)  # it was kept anew


def test_without_room_for_the_cache_a_loop_is_compiled(kept: Any) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        assert kept.make() == (0, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert kept.make() == (0, 1)
    assert kept.make() == (1, 0)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A folder of compiled loops, and a function that makes a loop: how many were in the cache, and compiled."""
    from numba.core import config

    from tfm.model.cpu_kernels.jit import compile_function

    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    def make() -> tuple[int, int]:
        loop = compile_function("i8(i8)")(successor)
        assert loop(1) == 2
        return sum(loop.stats.cache_hits.values()), sum(loop.stats.cache_misses.values())

    return SimpleNamespace(folder=tmp_path, make=make)


def successor(number: int) -> int:
    return number + 1


@pytest.mark.parametrize("file", OF_LOOPS, ids=lambda file: file.stem)
def test_loops_are_made_of_nothing_of_ours_from_elsewhere(file: Path) -> None:
    imported = [each for each in ast.walk(ast.parse(file.read_text())) if isinstance(each, ast.Import | ast.ImportFrom)]
    names = [each.module or "" if isinstance(each, ast.ImportFrom) else each.names[0].name for each in imported]
    assert all(name.startswith("tfm.model.cpu_kernels.") for name in names if name.startswith("tfm"))
