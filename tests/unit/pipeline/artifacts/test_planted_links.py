"""Writers of files, locks and artifacts, with links out, pipes and devices under every name that they use."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.planted import KINDS, PLANTS, tree, write_outside
from tests.tiny_artifact import as_link, make, plan_of
from tfm.pipeline.artifacts import hash_cache
from tfm.pipeline.artifacts.artifact import is_fresh, open_artifact
from tfm.pipeline.artifacts.files import write_text_atomically
from tfm.pipeline.artifacts.folder_lock import current_writer, lock_folder
from tfm.pipeline.artifacts.place import check_output_files
from tfm.pipeline.errors import DataError, WriteError
from tfm.pipeline.runtime.progress import NullReporter

HASH = "0123456789abcdef"


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder outside, which is as it was when the test ends; and nothing is waited for."""
    write_outside(tmp_path / "outside")
    signal.alarm(20)
    yield tmp_path / "outside"
    signal.alarm(0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def publish(run: Path) -> None:
    make(plan_of(run / "thing"), "new")


def look(run: Path) -> None:
    is_fresh(plan_of(run / "thing"), NullReporter())


def replace(run: Path) -> None:
    write_text_atomically(run / "file", "new")


def hold(run: Path) -> None:
    with lock_folder(run / "thing"):
        assert current_writer(run / "thing") == f"process {os.getpid()}"


def ask(run: Path) -> None:
    assert current_writer(run / "thing") is None


WRITERS: dict[Callable[[Path], None], tuple[str, ...]] = {
    publish: ("thing", "thing/manifest.json", ".thing.lock", f".thing.{HASH}", f".thing.{HASH}.aside"),
    look: ("thing", "thing/manifest.json", ".thing.lock", f".thing.{HASH}"),
    replace: ("file", ".file.draft"),
    hold: (".thing.lock",),
    ask: (".thing.lock",),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("write", "name"),
    [pytest.param(write, each, id=f"{write.__name__} {each}") for write in WRITERS for each in WRITERS[write]],
)
def test_nothing_outside_is_touched(
    run: Path, outside: Path, write: Callable[[Path], None], name: str, kind: str
) -> None:
    make(plan_of(run / "thing"))
    PLANTS[kind](run / name, outside)
    before = tree(outside)
    with suppress(WriteError, DataError, OSError):
        write(run)
    assert tree(outside) == before
    assert not (outside / "nothing").exists()


@pytest.mark.parametrize("kind", ["link to a file", "dangling link", "endless", "full", "pipe", "folder"])
def test_a_file_in_the_way_is_refused_before_any_work_and_named(run: Path, outside: Path, kind: str) -> None:
    PLANTS[kind](run / "page.html", outside)
    check = write_text_atomically if kind == "folder" else lambda file, _: check_output_files({"--out": file})
    with pytest.raises((WriteError, IsADirectoryError), match=r"page\.html"):
        check(run / "page.html", "new")


@pytest.mark.parametrize("kind", ["link to a file", "dangling link", "endless", "full", "pipe"])
def test_a_draft_in_the_way_is_no_obstacle(run: Path, outside: Path, kind: str) -> None:
    PLANTS[kind](run / ".file.draft", outside)
    write_text_atomically(run / "file", "new")
    assert (run / "file").read_text() == "new"
    assert os.listdir(run) == ["file"]


@pytest.mark.parametrize("kind", ["link to a file", "dangling link", "endless", "full", "pipe", "folder"])
def test_a_lock_that_is_none_is_refused_and_named(run: Path, outside: Path, kind: str) -> None:
    PLANTS[kind](run / ".thing.lock", outside)
    with pytest.raises(WriteError, match=r"\.thing\.lock"), lock_folder(run / "thing"):
        pass
    assert current_writer(run / "thing") is None


def test_what_was_set_aside_is_put_back_unless_it_is_a_link(run: Path, outside: Path) -> None:
    make(plan_of(run / "thing"))
    os.rename(run / "thing", run / f".thing.{HASH}.aside")
    make(plan_of(run / "thing", size=2), "new")
    assert {*os.listdir(run)} == {"thing", ".thing.lock"}
    os.rename(run / "thing", outside / "thing")
    (run / f".thing.{HASH}.aside").symlink_to(outside / "thing")
    make(plan_of(run / "thing", size=3), "newest")
    assert {*os.listdir(run)} == {"thing", ".thing.lock"}
    assert open_artifact(outside / "thing").config == {"size": 2}


def test_a_fresh_manifest_is_touched_where_it_lies_in_the_run_alone(run: Path, outside: Path) -> None:
    make(plan_of(run / "thing"))
    manifest = run / "thing" / "manifest.json"
    os.utime(manifest, (1, 1))
    assert is_fresh(plan_of(run / "thing"), NullReporter())
    assert manifest.stat().st_mtime > 1
    version = as_link(run / "thing")  # as earlier versions of tfm had it
    os.utime(version / "manifest.json", (1, 1))
    assert is_fresh(plan_of(run / "thing"), NullReporter())
    assert manifest.stat().st_mtime > 1
    os.rename(version, outside / "thing")
    version.symlink_to(outside / "thing")
    os.utime(outside / "thing" / "manifest.json", (1, 1))
    assert is_fresh(plan_of(run / "thing"), NullReporter())
    assert manifest.stat().st_mtime == 1


def test_the_drafts_of_a_shared_cache_cannot_be_guessed(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "tfm").mkdir()
    (tmp_path / "tfm" / f"hashes.json.{os.getpid()}").symlink_to(outside / "file")
    before = tree(outside)
    hash_cache.store_hash("key", "0" * 64)
    assert hash_cache.cached_hash("key") == "0" * 64
    assert tree(outside) == before
