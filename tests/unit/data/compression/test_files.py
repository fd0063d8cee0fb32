"""Compressed files: the same lines however they are compressed, and errors that say which file it is."""

import bz2
import gzip
import io
import lzma
import random
import struct
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfm.data.compression import streams
from tfm.data.compression.files import COMPRESSION_ENDINGS, strip_compression_ending
from tfm.data.corpora.sources import content_fingerprints, read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.lines import count_lines, open_lines


def zipped(content: bytes, name: str = "train.en", **about: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", about.get("compression", zipfile.ZIP_DEFLATED)) as archive:
        archive.writestr("__MACOSX/._train.en", b"\0")
        archive.writestr("folder/", b"")
        archive.writestr(name, content)
    return stream.getvalue()


def _with_a_fault(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + b"\xff\0\xff" + content[middle + 3 :]


PACK: Mapping[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": partial(bz2.compress, compresslevel=1),
    ".xz": partial(lzma.compress, preset=0),
    ".zst": lambda content: pa.compress(content, codec="zstd", asbytes=True),  # type: ignore[no-any-return]
    ".zip": zipped,
}
TEXT = "".join(f"Zeile {number} über\u2028{random.Random(number).random()}\n" for number in range(20_000)).encode()


@pytest.mark.parametrize("name", ["text.en{}", "text.en"])
@pytest.mark.parametrize("ending", COMPRESSION_ENDINGS)
@pytest.mark.few(5)
def test_lines_are_the_same_by_ending_and_by_content(ending: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / name.format(ending)
    file.write_bytes(PACK[ending](TEXT))
    assert list(open_lines(file)) == TEXT.decode().removesuffix("\n").split("\n")
    assert count_lines(file) == 20_000
    file.write_bytes(PACK[ending](b""))
    assert list(open_lines(file)) == []


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
def test_streams_one_after_another_are_one_file(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"text{ending}"
    parts = [b"a\n" * 40_000, b"", b"b\n" * 40_000, random.Random(1).randbytes(200_000).hex().encode()]
    file.write_bytes(b"".join(map(PACK[ending], parts)) + (b"\0" * 8 if ending == ".xz" else b""))
    assert "\n".join(open_lines(file)).encode() == b"".join(parts)


@pytest.mark.parametrize("ending", COMPRESSION_ENDINGS)
def test_what_is_cut_off_or_no_such_file_is_named(ending: str, tmp_path: Path) -> None:
    whole, file = PACK[ending](TEXT), tmp_path / f"text.en{ending}"
    for damaged in (whole[:-9], whole[: len(whole) // 2], b"\1 no text\n", _with_a_fault(whole)):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=rf"text\.en\{ending}: not a complete (\w+ file|zip archive): .") as error:
            count_lines(file)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
def test_other_bytes_behind_the_end_are_refused(ending: str, tmp_path: Path) -> None:
    """They may be a second part that was damaged, whose lines would be missing."""
    file = tmp_path / f"text.en{ending}"
    file.write_bytes(PACK[ending](TEXT) + b"garbage")
    with pytest.raises(DataError, match=r"not a complete|other bytes follow the end of a gzip file: .* by gunzip"):
        count_lines(file)


@pytest.mark.parametrize("ending", COMPRESSION_ENDINGS)
@pytest.mark.parametrize("text", [b"plain text\n", b"\xef\xbb\xbf{\n", "é".encode() * 99, b"a\tb\r\n"])
def test_text_with_the_name_of_a_compressed_file_is_named(ending: str, text: bytes, tmp_path: Path) -> None:
    file = tmp_path / f"text.en{ending}"
    file.write_bytes(text)
    with pytest.raises(DataError, match=rf"is text, not a \w+ \w+: remove \{ending} from its name"):
        count_lines(file)


@pytest.mark.parametrize("inner", COMPRESSION_ENDINGS)
@pytest.mark.parametrize("outer", COMPRESSION_ENDINGS)
def test_what_is_compressed_is_told_by_content_and_twice_is_refused(outer: str, inner: str, tmp_path: Path) -> None:
    file = tmp_path / f"text.en{outer}"
    file.write_bytes(PACK[inner](TEXT))
    assert count_lines(file) == 20_000
    file.write_bytes(PACK[outer](PACK[inner](TEXT)))
    with pytest.raises(DataError, match=r"is a \w+ \w+ that holds a \w+ \w+: unpack it once"):
        count_lines(file)


def test_files_that_a_file_manager_adds_to_an_archive_are_none_of_it(tmp_path: Path) -> None:
    file = tmp_path / "pairs.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/train.en", "a\n")
        archive.writestr("a/.DS_Store", "b\n")
    assert list(open_lines(file)) == ["a"]


def test_an_archive_of_several_files_is_refused_by_their_names(tmp_path: Path) -> None:
    file = tmp_path / "pairs.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("train.en", "a\n")
        archive.writestr("train\n.de", "b\n")
    with pytest.raises(DataError, match=r"holds 2 files \(train\.en, train\\n\.de\), not one: unpack it"):
        list(open_lines(file))
    with zipfile.ZipFile(file, "w"):
        pass
    with pytest.raises(DataError, match="holds no file, not one"):
        list(open_lines(file))


def test_archives_that_are_not_read(tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    file.write_bytes(zipped(b"a\n" * 100, compression=zipfile.ZIP_BZIP2))
    with pytest.raises(DataError, match="in an unusual way: unpack it"):
        list(open_lines(file))
    content = bytearray(zipped(b"a\n"))
    place = content.rindex(b"PK\1\2")
    struct.pack_into("<H", content, place + 8, 1)
    file.write_bytes(content)
    with pytest.raises(DataError, match="is an encrypted zip archive"):
        list(open_lines(file))


LIES = {"shorter": 50, "longer": 10**6, "endless": 2**32 - 2}
"""Sizes that an archive of 200 bytes may say."""


@pytest.mark.parametrize("size", LIES.values(), ids=LIES)
@pytest.mark.parametrize("field", [20, 24], ids=["packed", "unpacked"])
@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_an_archive_that_lies_about_its_size(kind: int, field: int, size: int, tmp_path: Path) -> None:
    """The checksum refuses bytes whose stated size is too small; newer versions of zipfile, too many packed ones."""
    text = random.Random(1).randbytes(100).hex()
    content = bytearray(zipped(text.encode(), compression=kind))
    struct.pack_into("<I", content, content.rindex(b"PK\1\2") + field, size)
    (tmp_path / "a.zip").write_bytes(content)
    if size > len(text):
        try:
            assert list(open_lines(tmp_path / "a.zip")) == [text]
        except DataError as error:
            said = str(error)
            assert (field, "not a complete zip archive: Overlapped entries" in said) == (20, True)
        return
    with pytest.raises(DataError, match=r"a\.zip: not a complete zip archive: .") as error:
        list(open_lines(tmp_path / "a.zip"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out.txt", "C:\\out.txt", "a/../../out.txt", "x" * 60_000])
def test_where_a_member_would_lie_does_not_matter(name: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.zip").write_bytes(zipped(b"a\nb\n", name))
    assert list(open_lines(tmp_path / "in" / "a.zip")) == ["a", "b"]
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["a.zip"]


def test_gzip_and_xz_that_lie_about_their_size_or_content(tmp_path: Path) -> None:
    for ending, places in {".gz": (-4, -8), ".xz": (-24, -9, -12)}.items():
        for place in places:
            content = bytearray(PACK[ending](TEXT))
            content[place] ^= 0xFF
            (tmp_path / f"a{ending}").write_bytes(content)
            with pytest.raises(DataError, match=rf"a\{ending}: not a complete (gzip|xz) file: ."):
                list(open_lines(tmp_path / f"a{ending}"))


def test_an_archive_with_an_endless_list_is_refused_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_READ_BYTES", 200)
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(10):
            archive.writestr(f"file {number}", "a\n")
    with pytest.raises(DataError, match="not a complete zip archive"):
        list(open_lines(file))


def test_an_xz_file_that_asks_for_much_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.xz"
    file.write_bytes(lzma.compress(b"a\n" * 100, preset=9))
    assert count_lines(file) == 100
    monkeypatch.setattr(streams, "MAX_XZ_MEMORY", 2**24)
    with pytest.raises(DataError, match=r"a\.xz: not a complete xz file: Memory usage limit exceeded"):
        count_lines(file)


def test_zstandard_that_pyarrow_lacks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.zst"
    file.write_bytes(PACK[".zst"](b"a\n"))
    monkeypatch.setattr(pa, "Codec", SimpleNamespace(is_available=lambda _: False))
    with pytest.raises(DataError, match="is compressed by zstandard, which this pyarrow lacks: `pip install"):
        list(open_lines(file))


@pytest.mark.parametrize("ending", COMPRESSION_ENDINGS)
@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "parquet"])
def test_every_format_may_be_compressed(kind: str, ending: str, tmp_path: Path) -> None:
    contents = {
        "tsv": b"source\ttarget\na\tb\n",
        "csv": b"source;target\na;b\n",
        "jsonl": b'{"version": 1, "data": [\n{"source": "a", "target": "b"}]}',
    }
    if kind == "parquet":
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"source": ["a"], "target": ["b"]}), sink)
        contents[kind] = sink.getvalue().to_pybytes()
    file = tmp_path / f"a.{kind}{ending}"
    file.write_bytes(PACK[ending](contents[kind]))
    corpus = CorpusConfig.model_validate({"format": kind, "path": str(file)})
    assert content_fingerprints(corpus)[0][1] == file
    if kind == "parquet" and ending in (".bz2", ".xz", ".zst"):
        with pytest.raises(DataError, match="it is compressed so that it can be read from its beginning alone"):
            list(read_pairs(corpus))
    else:
        assert list(read_pairs(corpus)) == [("a", "b")]


def test_endings_of_names() -> None:
    assert [strip_compression_ending(f"a.en{ending}") for ending in COMPRESSION_ENDINGS] == ["a.en"] * len(
        COMPRESSION_ENDINGS
    )
    assert strip_compression_ending("a.gz.en") == "a.gz.en"
    assert strip_compression_ending("a.en.zst.gz") == "a.en.zst"


@pytest.mark.parametrize(
    ("member", "name"),
    [
        ("xl/workbook.xml", "Excel workbook"),
        ("xl/workbook.bin", "Excel workbook"),
        ("word/document.xml", "Word document"),
        ("META-INF/manifest.xml", "OpenD"),
        ("ppt/presentation.xml", "presentation"),
        ("META-INF/container.xml", "e-book"),
        ("collection.anki2", "Anki"),
    ],
)
def test_files_of_offices_are_named(tmp_path: Path, member: str, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        for each in ("[Content_Types].xml", member):
            archive.writestr(each, "x")
    with pytest.raises(DataError, match=rf"is an? .*{name}.*: (?:save|write|export) .*, and give that"):
        list(open_lines(tmp_path / "a.xlsx"))


def test_weights_of_torch_are_no_archive_to_unpack(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "pytorch_model.bin", "w") as archive:
        for each in ("pytorch_model/data.pkl", "pytorch_model/data/0"):
            archive.writestr(each, "x")
    with pytest.raises(DataError, match="holds the weights of a model or data of torch, and no text"):
        list(open_lines(tmp_path / "pytorch_model.bin"))
