"""Files of others: special files are refused without waiting, sizes are bounded, names stay in their folder."""

import os
from pathlib import Path

import pytest

from tfm.data.errors import DataError
from tfm.data.safe_files import open_regular_file, read_bounded_file, resolve_path_inside


def fifo(place: Path) -> None:
    os.mkfifo(place)


def folder(place: Path) -> None:
    place.mkdir()


def device(place: Path) -> None:
    place.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [fifo, folder, device])
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path, make: object) -> None:
    place = tmp_path / "x"
    assert callable(make)
    make(place)
    with pytest.raises(DataError, match="is not a regular file"):
        open_regular_file(place)
    with pytest.raises(DataError, match="is not a regular file"):
        read_bounded_file(place)


def test_a_link_is_followed_only_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    link = tmp_path / "link"
    link.symlink_to("file")
    assert read_bounded_file(link, follow_symlinks=True) == b"text"
    with pytest.raises(DataError, match=r"link: is not a regular file"):
        read_bounded_file(link)


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_bounded_file(tmp_path / "file", max_bytes=5) == b"12345"
    with pytest.raises(DataError, match="is larger than any file"):
        read_bounded_file(tmp_path / "file", max_bytes=4)


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a/../b",
        "",
        ".",
        "link",
        "https://x.org/a",
        "hf://d",
        "zip::a",
        3,
        [],
        None,
        "a\0",
    ],
)
def test_a_name_that_leads_out_of_its_folder_is_refused(tmp_path: Path, name: object) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(DataError, match="not a file inside its folder"):
        resolve_path_inside(root, name, file=root / "README.md")


def test_a_name_inside_its_folder_is_its_path_also_where_the_folder_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "root" / "a").mkdir(parents=True)
    (tmp_path / "root" / "a" / "link").symlink_to("../b")
    (tmp_path / "link").symlink_to("root")
    for root in tmp_path / "root", tmp_path / "link":
        for name in "a/x.bin", "x", "a/link", "a:b":
            assert resolve_path_inside(root, name, file=root / "README.md") == root / name
