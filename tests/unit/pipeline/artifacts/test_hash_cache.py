"""Hashes that one process takes and the next one knows: never of a file that was changed, and never an error."""

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tfm.pipeline.artifacts import files, hash_cache

CONTENT = b"x" * 1000


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where hashes are kept; every file counts as large and settled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(hash_cache, "MIN_CACHED_BYTES", 1000)
    monkeypatch.setattr(files, "MIN_CACHEABLE_AGE_NS", -1)
    return tmp_path / "cache" / "tfm" / "hashes.json"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(CONTENT)
    return tmp_path / "file"


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for each hash that was taken rather than remembered."""
    found: list[object] = []
    real = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *given: found.append(given) or real(*given))  # type: ignore[func-returns-value]
    return found


def anew(file: Path) -> str:
    """The sha256 that a new process finds."""
    files._hash_cache.clear()
    return files.sha256_of(file)


def test_the_next_process_knows_the_hash_of_a_large_file(cache: Path, file: Path, taken: list[object]) -> None:
    assert anew(file) == anew(file) == hashlib.sha256(CONTENT).hexdigest()
    assert len(taken) == 1
    assert oct(cache.parent.stat().st_mode)[-3:] == "700"
    assert os.listdir(cache.parent) == ["hashes.json"]


def test_a_small_file_is_hashed_each_time(cache: Path, file: Path, taken: list[object]) -> None:
    file.write_bytes(CONTENT[1:])
    anew(file), anew(file)
    assert len(taken) == 2
    assert not cache.exists()


def test_a_file_that_may_still_change_is_not_remembered(
    cache: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MIN_CACHEABLE_AGE_NS", 10**12)
    anew(file)
    assert not cache.exists()


def test_a_changed_file_of_the_same_size_and_time_is_seen(cache: Path, file: Path) -> None:
    before = file.stat()
    first = anew(file)
    time.sleep(0.02)  # more than a tick of the clock of any file system
    with open(file, "r+b") as stream:
        stream.write(b"y")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert anew(file) == hashlib.sha256(b"y" + CONTENT[1:]).hexdigest() != first


def test_the_oldest_of_too_many_are_forgotten(cache: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_cache, "MAX_CACHED_HASHES", 3)
    for number in range(5):
        hash_cache.store_hash(str(number), f"{number:064x}")
    assert list(json.loads(cache.read_text("utf-8"))) == ["2", "3", "4"]
    hash_cache.store_hash("2", f"{7:064x}")
    assert list(json.loads(cache.read_text("utf-8"))) == ["3", "4", "2"]
    assert hash_cache.cached_hash("2") == f"{7:064x}"


def hostile_fifo(cache: Path) -> None:
    os.mkfifo(cache)


def hostile_link(cache: Path) -> None:
    (cache.parent / "elsewhere").write_text(json.dumps({"key": "0" * 64}))
    cache.symlink_to(cache.parent / "elsewhere")


def hostile_giant(cache: Path) -> None:
    with open(cache, "wb") as stream:
        stream.truncate(10**10)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "empty": lambda cache: cache.write_bytes(b""),
    "no JSON": lambda cache: cache.write_bytes(b"\xff\x00{"),
    "deep": lambda cache: cache.write_bytes(b"[" * 100_000),
    "a list": lambda cache: cache.write_text("[1]"),
    "wrong types": lambda cache: cache.write_text('{"key": 3, "b": null, "c": ["d"], "d": "short"}'),
    "cut": lambda cache: cache.write_text('{"key": "00'),
    "a folder": lambda cache: cache.mkdir(),
    "a pipe": hostile_fifo,
    "a link": hostile_link,
    "giant": hostile_giant,
}


@pytest.mark.promise("hostile")
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_memory_that_is_none_of_ours_is_not_believed(cache: Path, file: Path, kind: str) -> None:
    cache.parent.mkdir(parents=True)
    HOSTILE[kind](cache)
    assert hash_cache.cached_hash("key") is None
    assert anew(file) == anew(file) == hashlib.sha256(CONTENT).hexdigest()
    assert not [name for name in os.listdir(cache.parent) if name.startswith("hashes.json.")]


@pytest.mark.parametrize("place", ["/dev/null/x", "relative", ""])
def test_where_there_is_no_place_nothing_is_remembered(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path, place: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", place)
    monkeypatch.setenv("HOME", "/dev/null/home")
    monkeypatch.chdir(tmp_path)
    assert anew(file) == anew(file) == hashlib.sha256(CONTENT).hexdigest()
    assert not (tmp_path / "relative").exists()
