"""Files of others: special files are refused without waiting, sizes are bounded, names stay in their folder."""

import os
from pathlib import Path

import pytest

from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.foreign_tokenizers.loading import load_foreign_tokenizer
from tfm.data.safe_files import open_regular_file, read_bounded_file, resolve_path_inside
from tfm.tokenizer.config import TokenizerConfig


def fifo(place: Path) -> None:
    os.mkfifo(place)


def folder(place: Path) -> None:
    place.mkdir()


def device(place: Path) -> None:
    place.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "problem"),
    [(fifo, "is not a regular file"), (folder, "is a folder, not a file"), (device, "is not a regular file")],
)
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path, make: object, problem: str) -> None:
    place = tmp_path / "x"
    assert callable(make)
    make(place)
    with pytest.raises(DataError, match=problem):
        open_regular_file(place)
    with pytest.raises(DataError, match=problem):
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


def test_a_pointer_of_git_lfs_is_no_file(tmp_path: Path) -> None:
    """A repository that was cloned without it has such pointers, which as texts were three pairs."""
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:3b4e\nsize 1102207\n"
    for name in ("train.en", "train.de", "a.parquet", "a.csv.gz", "spiece.model", "model.safetensors"):
        (tmp_path / name).write_bytes(pointer)
    corpora = [
        {"source": str(tmp_path / "train.en"), "target": str(tmp_path / "train.de")},
        {"format": "parquet", "path": str(tmp_path / "a.parquet")},
        {"format": "csv", "path": str(tmp_path / "a.csv.gz"), "source": 0, "target": 1},
    ]
    for corpus in corpora:
        with pytest.raises(DataError, match=r"is a pointer of Git LFS, .* `git lfs pull`"):
            list(read_pairs(CorpusConfig.model_validate(corpus)))
    with pytest.raises(DataError, match="is a pointer of Git LFS"):
        load_foreign_tokenizer(TokenizerConfig(file=str(tmp_path / "spiece.model")))
    with pytest.raises(DataError, match="is a pointer of Git LFS"):
        open_regular_file(tmp_path / "model.safetensors")
