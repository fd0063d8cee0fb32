"""What people do to artifacts with mv, cp, tar and rm: what they see is what is there, in runs of any age."""

import errno
import os
import subprocess
from pathlib import Path

import pytest

from tests.tiny_artifact import around, as_link, make, plan_of
from tfm.pipeline.artifacts import artifact, files
from tfm.pipeline.artifacts.artifact import open_artifact, publish, stale_reason
from tfm.pipeline.errors import WriteError
from tfm.pipeline.runtime.progress import NullReporter

KINDS = pytest.mark.parametrize("kind", ["a folder", "a link"])


def shell(*words: str | Path) -> None:
    subprocess.run([str(word) for word in words], check=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run" / "thing"


def made(folder: Path, kind: str) -> None:
    """An artifact as this version of tfm makes it, or as an earlier one did."""
    make(plan_of(folder), "old")
    if kind == "a link":
        as_link(folder)


@KINDS
def test_what_was_renamed_stays_when_another_is_made_in_its_place(folder: Path, kind: str) -> None:
    made(folder, kind)
    good = folder.with_name("thing-good")
    shell("mv", folder, good)
    for number in range(3):
        make(plan_of(folder, n=number), "new")
        assert (good / "a.txt").read_text() == "old"
        assert open_artifact(good).config == {}
        assert open_artifact(folder).config == {"n": number}
    assert artifact.is_fresh(plan_of(folder, n=2), NullReporter())
    assert (good / "a.txt").read_text() == "old"
    if good.is_symlink():
        with pytest.raises(WriteError, match="a link that tfm did not make"):
            make(plan_of(good, n=9))
        good.unlink()
    make(plan_of(good, n=9), "newest")  # now that one is replaced, and nothing of it is left
    assert open_artifact(good).config == {"n": 9}
    make(plan_of(folder, n=4))
    assert around(folder) == {"thing-good", ".thing-good.lock"}


@pytest.mark.parametrize(
    "copy",
    [("cp", "-r"), ("cp", "-a"), ("cp", "-rL"), ("mv",)],
    ids=" ".join,
)
def test_an_artifact_copied_or_moved_elsewhere_is_whole(folder: Path, tmp_path: Path, copy: tuple[str, ...]) -> None:
    made(folder, "a folder")
    before = open_artifact(folder)
    shell(*copy, folder, tmp_path / "elsewhere")
    assert open_artifact(tmp_path / "elsewhere").fingerprint == before.fingerprint
    make(plan_of(folder, n=2), "new")
    assert open_artifact(tmp_path / "elsewhere").fingerprint == before.fingerprint
    assert stale_reason(plan_of(tmp_path / "elsewhere")) is None


@KINDS
@pytest.mark.parametrize("how", ["cp -r", "cp -rL", "tar", "mv"])
def test_a_run_copied_packed_or_renamed_is_whole_and_can_be_worked_on(
    folder: Path, tmp_path: Path, kind: str, how: str
) -> None:
    made(folder, kind)
    run, other = folder.parent, tmp_path / "other"
    if how == "tar":
        other.mkdir()
        shell("tar", "-cf", tmp_path / "run.tar", "-C", run, ".")
        shell("tar", "-xf", tmp_path / "run.tar", "-C", other)
    else:
        shell(*how.split(), run, other)
    assert stale_reason(plan_of(other / "thing")) is None
    make(plan_of(other / "thing", n=2), "new")
    assert (other / "thing" / "a.txt").read_text() == "new"
    assert around(other / "thing") == set()
    if how != "mv":
        assert (folder / "a.txt").read_text() == "old"


def test_what_is_removed_is_gone(folder: Path) -> None:
    made(folder, "a folder")
    shell("rm", "-r", folder)
    assert around(folder) == set()
    assert stale_reason(plan_of(folder)) == "not made yet"
    make(plan_of(folder))


@KINDS
def test_a_run_of_any_age_is_published_over_and_then_has_a_real_folder(folder: Path, kind: str) -> None:
    made(folder, kind)
    assert stale_reason(plan_of(folder)) is None
    make(plan_of(folder, n=2), "new")
    assert not folder.is_symlink()
    assert (folder / "a.txt").read_text() == "new"
    assert around(folder) == set()


def test_a_link_whose_version_is_gone_is_replaced(folder: Path) -> None:
    made(folder, "a link")
    shell("rm", "-r", folder.resolve())
    make(plan_of(folder))
    assert stale_reason(plan_of(folder)) is None
    assert not folder.is_symlink()


def test_links_of_the_user_keep_a_hidden_version_too(folder: Path) -> None:
    made(folder, "a link")
    (folder.parent / "best").symlink_to(folder.resolve())  # an absolute one
    make(plan_of(folder, n=2), "new")
    assert (folder.parent / "best" / "a.txt").read_text() == "old"
    (folder.parent / "best").unlink()
    make(plan_of(folder, n=3), "newer")
    assert around(folder) == set()


def test_a_link_that_the_user_made_is_not_replaced(folder: Path, tmp_path: Path) -> None:
    make(plan_of(tmp_path / "disk" / "thing"))
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "disk" / "thing")
    assert open_artifact(folder).config == {}
    with pytest.raises(WriteError, match="a link that tfm did not make"):
        make(plan_of(folder, n=2))
    assert open_artifact(folder).config == {}


@pytest.mark.parametrize("code", sorted(files.SWAP_UNSUPPORTED_ERRNOS))
def test_a_file_system_that_cannot_swap_names_has_real_folders_too(
    folder: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ctypes

    made(folder, "a link")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Refusing())
    monkeypatch.setattr(ctypes, "get_errno", lambda: code)
    for number in range(3):
        make(plan_of(folder, n=number), "new")
        assert open_artifact(folder).config == {"n": number}
        assert not folder.is_symlink()
        assert around(folder) == set()


class Refusing:
    """A C library whose calls that swap names fail."""

    def renameat2(self, *_: object) -> int:
        return -1

    def renamex_np(self, *_: object) -> int:
        return -1


def test_a_c_library_that_knows_no_swapping(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    made(folder, "a folder")
    make(plan_of(folder, n=2), "new")
    assert (folder / "a.txt").read_text() == "new"
    assert around(folder) == set()


def test_names_are_swapped_in_one_step_or_an_error_names_them(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "mine").touch()
    (tmp_path / "other").symlink_to("nowhere")
    if not files.atomic_swap(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this file system cannot swap names")
    assert os.readlink(tmp_path / "one") == "nowhere"
    assert (tmp_path / "other" / "mine").exists()
    with pytest.raises(OSError, match="absent") as caught:
        files.atomic_swap(tmp_path / "one", tmp_path / "absent")
    assert caught.value.errno == errno.ENOENT


def test_a_draft_of_a_process_that_was_killed_is_removed_by_the_next(folder: Path) -> None:
    made(folder, "a folder")
    for name in (".thing.0123456789abcdef", ".thing.0123456789abcdee.aside"):
        (folder.parent / name).mkdir()
    mine = [".thing.0123456789abcdef.txt", ".thing.backup", ".other.0123456789abcdef"]
    for name in mine:
        (folder.parent / name).mkdir()
    with publish(plan_of(folder, n=2), command=[]):
        pass
    assert around(folder) == set(mine)
