"""Nothing below a folder is written or removed through a link; a folder that is a link itself is."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tfm.pipeline.artifacts.no_symlinks import (
    check_tree_has_no_symlinks,
    make_folder_below,
    open_file_below,
    remove_path_below,
)
from tfm.pipeline.errors import WriteError


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that nothing may reach, with a file in it."""
    (tmp_path / "outside" / "b").mkdir(parents=True)
    (tmp_path / "outside" / "file").write_text("kept")
    (tmp_path / "outside" / "b" / "file").write_text("kept")
    return tmp_path / "outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    return tmp_path / "link"


def write(root: Path, place: Path) -> None:
    for mode in "a", "w", "r+":
        with open_file_below(root, place, mode) as stream:
            stream.write("changed")


@pytest.mark.parametrize("touch", [write, make_folder_below, remove_path_below])
def test_a_folder_on_the_way_that_is_a_link_is_refused(
    root: Path, outside: Path, touch: Callable[[Path, Path], None]
) -> None:
    (root / "a").symlink_to(outside)
    with pytest.raises(WriteError, match=r"run/a|link/a: is a link that tfm did not make; remove it"):
        touch(root, root / "a" / "b" / "file")
    assert (outside / "b" / "file").read_text() == "kept"


def test_a_file_that_is_a_link_is_not_written_and_removed_alone(root: Path, outside: Path) -> None:
    (root / "file").symlink_to(outside / "file")
    for mode in "a", "w", "r+":
        with pytest.raises(WriteError, match="is a link"):
            open_file_below(root, root / "file", mode)
    with pytest.raises(WriteError, match="is a link"):
        check_tree_has_no_symlinks(root / "file")
    remove_path_below(root, root / "file")
    assert not os.path.lexists(root / "file")
    assert (outside / "file").read_text() == "kept"


def test_links_inside_what_is_removed_are_not_followed(root: Path, outside: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "link").symlink_to(outside)
    with pytest.raises(WriteError, match="link: is a link"):
        check_tree_has_no_symlinks(root / "a")
    remove_path_below(root, root / "a")
    remove_path_below(root, root / "a")  # nothing there any more
    remove_path_below(root, root / "never" / "there")
    assert not (root / "a").exists()
    assert (outside / "file").read_text() == "kept"


def test_a_pipe_is_refused_without_waiting(root: Path) -> None:
    os.mkfifo(root / "pipe")
    for mode in "a", "w", "r+":
        with pytest.raises(WriteError, match="is a special file"):
            open_file_below(root, root / "pipe", mode)
    with pytest.raises(WriteError, match="is a special file"):
        check_tree_has_no_symlinks(root.resolve())


def test_regular_files_are_written_as_open_does(root: Path) -> None:
    make_folder_below(root, root / "a" / "b")
    make_folder_below(root, root / "a" / "b")
    place = root / "a" / "b" / "file"
    for mode, text, expected in ("a", "one", "one"), ("a", "two", "onetwo"), ("w", "new", "new"), ("r+", "o", "oew"):
        with open_file_below(root, place, mode, encoding="utf-8") as stream:
            stream.write(text)
        assert place.read_text() == expected
    check_tree_has_no_symlinks(root / "a")
    check_tree_has_no_symlinks(root / "nowhere")
    with pytest.raises(FileNotFoundError, match="nowhere/file"):
        open_file_below(root, root / "nowhere" / "file", "a")
