"""Where a stage cannot write, that is said before any work, and nothing there is changed."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.user import tfm
from tests.tiny_stages import STAGES, make_runs
from tfm.pipeline.errors import WriteError
from tfm.pipeline.model_io import loaded_model
from tfm.pipeline.stages import evaluate, preprocess, tokenize
from tfm.pipeline.training import checks, session
from tfm.pipeline.training.loop import Trainer

pytestmark = pytest.mark.promise("place")
WORK = (
    (tokenize, "train_tokenizers"),
    (preprocess, "load_tokenizer_pair"),
    (Trainer, "run"),
    (loaded_model, "load_model"),
    (evaluate, "_load_model"),
)


@pytest.fixture(scope="module")
def runs(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Path]:
    return make_runs(corpora, tmp_path_factory.mktemp("runs") / "made")


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails the test where a stage begins its work."""

    def began(*_: object, **__: object) -> None:
        raise AssertionError("it began to work")

    for owner, name in WORK:
        monkeypatch.setattr(owner, name, began)


def a_file(place: Path) -> Path:
    place.write_text("mine")
    return place


def under_a_file(place: Path) -> Path:
    place.write_text("mine")
    return place / "deep" / "er"


def a_dangling_link(place: Path) -> Path:
    place.symlink_to("nowhere")
    return place


def a_link_to_a_folder(place: Path) -> Path:
    (place.parent / "elsewhere").mkdir()
    (place.parent / "elsewhere" / "mine.txt").write_text("mine")
    place.symlink_to("elsewhere")
    return place


def under_a_link_to_itself(place: Path) -> Path:
    place.symlink_to(place.name)
    return place / "out"


def a_folder_of_the_users(place: Path) -> Path:
    place.mkdir()
    (place / "mine.txt").write_text("mine")
    return place


def a_name_too_long(place: Path) -> Path:
    return place.with_name("n" * 300)


def a_name_too_long_for_its_drafts(place: Path) -> Path:
    return place.with_name("n" * 245)


def a_folder_in_the_way_of_the_lock(place: Path) -> Path:
    (place.parent / f".{place.name}.lock").mkdir()
    return place


def the_current_folder(place: Path) -> Path:
    place.mkdir()
    os.chdir(place)
    return Path()


def the_current_folder_in_full(place: Path) -> Path:
    return place / the_current_folder(place)


def the_folder_above(place: Path) -> Path:
    the_current_folder(place)
    return Path("..")


def under_a_folder_closed_to_us(place: Path) -> Path:
    if os.geteuid() == 0:
        pytest.skip("permissions do not bind root")
    place.mkdir(mode=0o500)
    return place / "out"


def beside_a_lock_in_a_folder_closed_to_us(place: Path) -> Path:
    out = under_a_folder_closed_to_us(place)
    place.chmod(0o700)
    (place / ".out.lock").touch()
    place.chmod(0o500)
    return out


PLACES = (
    a_file,
    under_a_file,
    a_dangling_link,
    a_link_to_a_folder,
    under_a_link_to_itself,
    a_folder_of_the_users,
    a_name_too_long,
    a_name_too_long_for_its_drafts,
    a_folder_in_the_way_of_the_lock,
    the_current_folder,
    the_current_folder_in_full,
    the_folder_above,
    under_a_folder_closed_to_us,
    beside_a_lock_in_a_folder_closed_to_us,
)


def contents(folder: Path) -> dict[str, bytes | str | None]:
    """All that is under a folder; of locks, only those that hold something."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        what = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        if what != b"" or not path.name.endswith(".lock"):
            found[path.relative_to(folder).as_posix()] = what
    return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A free name in a folder of its own; the working folder is restored afterwards."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "around").mkdir()
    yield tmp_path / "around" / "out"
    for folder in (tmp_path / "around").glob("out"):
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o700)


@pytest.mark.few(4)
@pytest.mark.parametrize("make", PLACES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", ["tokenize", "preprocess", "translate", "evaluate"])
@pytest.mark.usefixtures("no_work")
def test_no_place_for_an_artifact(
    name: str, make: Callable[[Path], Path], corpora: Path, runs: dict[tuple[str, bool], Path], place: Path
) -> None:
    out = make(place)
    refused(STAGES[name].to(corpora, runs["all", True], out), out, place)


@pytest.mark.few(6)
@pytest.mark.parametrize("call", ["replace", "rename", "fsync"])
@pytest.mark.parametrize("code", [errno.EXDEV, errno.ENOTSUP, errno.EINVAL, errno.EPERM, errno.ENOSYS])
@pytest.mark.parametrize("name", ["tokenize", "preprocess", "translate", "evaluate"])
@pytest.mark.usefixtures("no_work")
def test_a_file_system_without_renames_or_syncs(
    name: str,
    code: int,
    call: str,
    corpora: Path,
    runs: dict[tuple[str, bool], Path],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As object stores are that somebody mounts as a folder."""
    words = STAGES[name].to(corpora, runs["all", True], place)

    def fails(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fails)
    refused(words, place, place)
    assert "an object store mounted as a folder" in " ".join(tfm(*words).err.split())


@pytest.mark.usefixtures("no_work")
def test_a_training_where_nothing_can_be_renamed(
    corpora: Path, runs: dict[tuple[str, bool], Path], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = STAGES["train"].to(corpora, runs["all", True], place)

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    place.mkdir()
    monkeypatch.setattr(os, "replace", fails)
    refused(words, place / "model", place)


@pytest.mark.parametrize(
    ("part", "make"),
    [
        *(("model", make) for make in PLACES[:6]),
        # work in progress may lie behind a link, and beside files of somebody's
        *(("training", make) for make in (a_file, under_a_file, a_dangling_link, under_a_link_to_itself)),
    ],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
@pytest.mark.usefixtures("no_work")
def test_no_place_for_a_model_or_for_the_work_on_it(
    part: str, make: Callable[[Path], Path], corpora: Path, runs: dict[tuple[str, bool], Path], place: Path
) -> None:
    place.mkdir()
    out = make(place / part)
    refused(STAGES["train"].to(corpora, runs["all", True], out.parent if out.name == part else out), out, place)


def refused(words: tuple[str | Path, ...], out: Path, place: Path) -> None:
    """A command ends with 73 and a line that names the place, and all around it is as it was."""
    before = contents(place.parent)
    result = tfm(*words)
    assert result.code == 73, result.err
    assert result.err.splitlines()[-1].startswith(str(out)), result.err
    assert "Traceback" not in result.err
    assert contents(place.parent) == before


def test_a_training_that_has_no_room_does_not_begin(
    corpora: Path, runs: dict[tuple[str, bool], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_work: None
) -> None:
    words = STAGES["train"].to(corpora, runs["all", True], tmp_path / "run")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 50_000}))
    result = tfm(*words)
    assert result.code == 73
    assert "make room, or keep fewer (training.keep)" in result.err.splitlines()[-1]
    assert str(tmp_path / "run" / "training") in result.err


def test_the_room_of_a_training_is_that_of_its_checkpoints(
    runs: dict[tuple[str, bool], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What check_room asks for is at least what a training of that size has on disk at its largest."""
    run = runs["all", True]
    asked: list[int] = []

    def free(folder: Path) -> object:
        return type("Usage", (), {"free": asked[-1]})

    monkeypatch.setattr(shutil, "disk_usage", free)
    weights = (run / "model" / "model.safetensors").stat().st_size
    one = sum(file.stat().st_size for file in max((run / "training" / "checkpoints").iterdir()).iterdir())
    keep = session.TrainingConfig.model_validate({"max_steps": 1, "keep": {"last": 2, "best": 1}}).keep
    largest = 5 * one + weights  # two last ones, a best one, the newest, one being written; and the model
    asked.append(int(largest * 0.7))
    with pytest.raises(WriteError):
        checks.check_disk_space(run / "elsewhere", weights // 4, keep, ema=False)
    asked.append(int(largest * 1.3))
    checks.check_disk_space(run / "elsewhere", weights // 4, keep, ema=False)
