"""Corpora behind URLs: copied once, copied again when they change, verified, and never asked for without leave."""

import errno
import re
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path

import fsspec
import pytest

from tfm.data.corpora.paths import remote_files
from tfm.data.corpora.paths.remote_files import cache_folder, fetch_local_copy, is_url
from tfm.data.corpora.sources import content_fingerprints, read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

URL = "memory://corpora/train.tsv"


@pytest.fixture(autouse=True)
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[fsspec.AbstractFileSystem]:
    """Yield a file system that counts what is opened; the cache is a new folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(remote_files, "_refreshed_copies_by_url", {})
    system = fsspec.filesystem("memory")
    system.pipe("/corpora/train.tsv", b"eins\tone\nzwei\ttwo\n")
    yield system
    system.store.clear()


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a new process, as far as copies know."""
    monkeypatch.setattr(remote_files, "_refreshed_copies_by_url", {})


def test_a_url_is_told_from_a_path() -> None:
    assert all(map(is_url, ("https://a.b/c", "s3://bucket/key", "nosuch://x")))
    assert not any(map(is_url, ("a.tsv", "/a/b", "C:\\x", "a:b", "://x", "x//y")))


def test_pairs_of_a_url_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_bytes(b"eins\tone\nzwei\ttwo\n")
    here, there = (
        CorpusConfig(format="tsv", path=path, source="0", target="1") for path in (str(tmp_path / "train.tsv"), URL)
    )
    assert list(read_pairs(there, online=True)) == list(read_pairs(here))
    (label, _, fingerprint), (_, _, local) = (*content_fingerprints(there), *content_fingerprints(here))
    assert label == URL
    assert fingerprint == local


def test_a_file_that_changes_is_copied_again_and_one_that_does_not_is_not(
    server: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[int] = []
    for _ in range(2):
        file = fetch_local_copy(URL, online=True, on_bytes=lambda count, total: came.append(count))
        forget(monkeypatch)
    assert came == [18]
    server.pipe("/corpora/train.tsv", b"drei\tthree\n")
    assert fetch_local_copy(URL, online=False).read_bytes() == b"eins\tone\nzwei\ttwo\n"
    assert fetch_local_copy(URL, online=True) == file
    assert file.read_bytes() == b"drei\tthree\n"


@pytest.mark.parametrize(("marks", "copies"), [(("first", "second"), 2), (("first", "first"), 1), ((None, None), 2)])
def test_a_change_of_the_same_size_is_seen_by_the_time_that_a_server_tells_or_read_again(
    server: fsspec.AbstractFileSystem,
    monkeypatch: pytest.MonkeyPatch,
    marks: tuple[str | None, str | None],
    copies: int,
) -> None:
    """An FTP server tells the time of a change as `modify` (RFC 3659); some tell the size alone."""
    came: list[int] = []
    for mark, text in zip(marks, (b"eins\tone\n", b"zwei\ttwo\n"), strict=True):
        server.pipe("/corpora/train.tsv", text)
        info = {"type": "file", "size": len(text), **({} if mark is None else {"modify": mark})}
        monkeypatch.setattr(type(server), "info", lambda self, path, info=info, **_: info)
        forget(monkeypatch)
        file = fetch_local_copy(URL, online=True, on_bytes=lambda count, total: came.append(count))
    assert len(came) == copies
    assert file.read_bytes() == (text if copies == 2 else b"eins\tone\n")


def test_a_damaged_copy_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    file = fetch_local_copy(URL, online=True)
    file.write_bytes(b"other text")
    forget(monkeypatch)
    with pytest.raises(DataError, match=r"data.online = false"):
        fetch_local_copy(URL, online=False)
    assert fetch_local_copy(URL, online=True).read_bytes() == b"eins\tone\nzwei\ttwo\n"


def test_nothing_is_asked_for_without_leave() -> None:
    with pytest.raises(DataError, match=r"is not downloaded yet, and data.online = false"):
        fetch_local_copy(URL, online=False)
    assert not cache_folder().exists()


def test_a_copy_of_a_file_that_is_no_longer_there_is_named(
    server: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = fetch_local_copy(URL, online=True)
    server.rm(URL)
    forget(monkeypatch)
    with pytest.raises(DataError, match=r"cannot be downloaded \(.*\); data.online = false reads the copy"):
        fetch_local_copy(URL, online=True)
    assert fetch_local_copy(URL, online=False) == copy


def test_a_download_that_is_cut_leaves_nothing(
    server: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(server), "info", lambda self, path, **_: {"type": "file", "size": 99})
    with pytest.raises(DataError, match="has 99 bytes, but 18 came"):
        fetch_local_copy(URL, online=True)
    assert [each for each in cache_folder().rglob("*") if each.is_file()] == []


def test_a_file_that_changes_while_it_is_downloaded_is_refused(server: fsspec.AbstractFileSystem) -> None:
    def replace_file(count: int, total: int | None) -> None:
        server.pipe("/corpora/train.tsv", b"drei\tthree\n")

    with pytest.raises(DataError, match=r"cannot be downloaded \(it was changed meanwhile; run the command again\)"):
        fetch_local_copy(URL, online=True, on_bytes=replace_file)
    assert [each for each in cache_folder().rglob("*") if each.is_file()] == []


def test_a_file_system_that_tells_a_change_by_a_number_is_put_into_words(
    server: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EBUSY, 'The remote file corresponding to filename x and Etag "0" no longer exists.')

    monkeypatch.setattr(type(server), "open", fail)
    with pytest.raises(DataError, match=r"cannot be downloaded \(it was changed meanwhile; run the command again\)"):
        fetch_local_copy(URL, online=True)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("memory://corpora/nosuch.tsv", r"cannot be downloaded \(there is no such file\)"),
        ("memory://corpora", "is a folder"),
        ("file:///etc/passwd", "not a supported scheme"),
        ("simplecache::memory://corpora/train.tsv", "not a supported scheme|single file"),
        ("memory://corpora/*.tsv", "single file"),
        ("memory://a::file:///etc/passwd", "single file"),
    ],
)
def test_other_places_are_refused(url: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        fetch_local_copy(url, online=True)


def test_credentials_of_a_url_are_in_no_message_and_in_no_file(server: fsspec.AbstractFileSystem) -> None:
    with pytest.raises(DataError) as caught:
        fetch_local_copy("memory://me:hunter22@corpora/x.tsv?token=abcdefgh12345678", online=True)
    assert "hunter22" not in str(caught.value)
    assert "abcdefgh12345678" not in str(caught.value)
    server.pipe("/me:hunter22@corpora/x.tsv", b"a\tb\n")
    fetch_local_copy("memory://me:hunter22@corpora/x.tsv", online=True)
    for file in cache_folder().rglob("*"):
        assert "hunter22" not in str(file)
        assert not file.is_file() or b"hunter22" not in file.read_bytes()


@pytest.mark.parametrize(
    ("url", "package"),
    [("hf://datasets/o/n/t.tsv", "huggingface_hub"), ("s3://b/k", "fsspec[s3]"), ("gs://b/k", "fsspec[gs]")],
)
def test_a_package_that_is_not_installed_is_named_as_pip_knows_it(
    url: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object, **options: object) -> None:
        raise ImportError("no such module")

    monkeypatch.setattr(fsspec.core, "url_to_fs", fail)
    with pytest.raises(DataError, match=re.escape(f'pip install "{package}"')):
        fetch_local_copy(url, online=True)
    extra = re.fullmatch(r"fsspec\[(\w+)\]", package)
    assert extra is None or extra[1] in metadata("fsspec").get_all("Provides-Extra", [])


def test_missing_credentials_are_asked_for_by_the_names_of_their_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object, **options: object) -> None:
        raise RuntimeError("Unable to locate credentials")  # botocore's words

    monkeypatch.setattr(fsspec.core, "url_to_fs", fail)
    with pytest.raises(DataError, match=r"locate credentials\): set AWS_ACCESS_KEY_ID .* FSSPEC_S3_ANON=true"):
        fetch_local_copy("s3://bucket/key.tsv", online=True)
