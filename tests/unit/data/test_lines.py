import gzip
import io
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data import lines
from tfm.data.errors import DataError
from tfm.data.lines import NormalForm, chunk_rows, count_lines, normalize, open_lines, stream_lines


@pytest.fixture(params=["text.en", "text.en.gz"])
def write(request, tmp_path):
    def write(content):
        path = tmp_path / request.param
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path

    return write


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a\nb\n", ["a", "b"]),
        ("a\nb", ["a", "b"]),
        ("a\n\n", ["a", ""]),
        ("\n", [""]),
        ("", []),
        ("a\r\nb\r\r\n", ["a", "b\r"]),
        ("\ufeffa\n\ufeffb\n", ["a", "\ufeffb"]),
        ("a\u2028b\x85c\x0cd\x1ce\x0bf\rg\n", ["a\u2028b\x85c\x0cd\x1ce\x0bf\rg"]),
        ("a\r\nb\r\n\x1a", ["a", "b"]),
        ("a\nb\x1a\x1a", ["a", "b"]),
        ("a\x1ab\n\x1a\n", ["a\x1ab", "\x1a"]),
        ("\x1a", []),
    ],
)
def test_lines_end_at_newlines_and_nowhere_else(write, content, expected):
    path = write(content.encode())
    assert list(open_lines(path)) == expected
    assert count_lines(path) == len(expected)
    assert list(stream_lines(io.BytesIO(content.encode()), "stdin")) == expected


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_blocks_do_not_show(write, monkeypatch, block):
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    content = "\ufeffeins\nzwei drei\r\n\nvierß\u2028\nfünf"
    path = write(content.encode())
    assert list(open_lines(path)) == ["eins", "zwei drei", "", "vierß\u2028", "fünf"]
    assert count_lines(path) == 5


@pytest.mark.parametrize("block", [4, 1 << 20])
@pytest.mark.parametrize("read", [count_lines, lambda path: list(open_lines(path))])
def test_a_byte_that_is_not_utf8_is_named(write, monkeypatch, block, read):
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    path = write("gut\nschön\n".encode() + b"sch\xf6n\nrest\n")
    with pytest.raises(DataError, match=r"text\.en\S*, line 3, byte 4: not UTF-8 \(0xf6: .*\); convert"):
        read(path)


def test_what_is_not_there_or_cut_off_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"missing\.en: no such file"):
        count_lines(tmp_path / "missing.en")
    with pytest.raises(DataError, match="is a folder"):
        count_lines(tmp_path)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a\n" * 1000)[:-9])
    (tmp_path / "plain.gz").write_bytes(b"a\n")
    for name, problem in (("cut.gz", "not a complete gzip file"), ("plain.gz", "is text, not a gzip file")):
        with pytest.raises(DataError, match=f"{name}: {problem}"):
            count_lines(tmp_path / name)


@pytest.mark.promise("text")
@pytest.mark.parametrize("read", [count_lines, lambda path: list(open_lines(path))])
def test_a_line_that_goes_on_and_on_is_refused(write, monkeypatch, read):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 10)
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 50)
    longest = b"a\n" * 30 + b"b" * 50 + b"\n" + b"c" * 50
    assert read(write(longest))
    with pytest.raises(DataError, match=r"text\.en\S*, line 32: is longer than 50 bytes"):
        read(write(longest + b"c" * 10))


@pytest.mark.promise("bytes")
@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xff", b"\0"])).map(b"".join))
def test_a_stream_is_read_as_a_file_is(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "stream.txt"
    path.write_bytes(content)

    def outcome(found):
        try:
            return list(found)
        except DataError as error:
            return str(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", 1)
        from_file = outcome(open_lines(path))
    assert outcome(stream_lines(io.BytesIO(content), str(path))) == from_file


@pytest.mark.promise("text")
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60))), st.integers(1, 20))
def test_portions_are_all_rows_in_order_and_bounded(lengths, most_rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "MAX_CHUNK_CHARACTERS", 200)
        rows = [("a" * one, "b" * other) for one, other in lengths]
        found = list(chunk_rows(iter(rows), most_rows))
    assert [row for portion in found for row in portion] == rows
    for portion in found:
        assert 1 <= len(portion) <= most_rows
        assert len(portion) == 1 or sum(len(text) for row in portion for text in row) <= 200
    if sum(map(sum, lengths)) <= 200:
        assert all(len(portion) == most_rows for portion in found[:-1])


def test_a_portion_of_one_row_waits_for_no_other():
    asked = []
    rows = chunk_rows(((asked.append(number) or "a",) for number in range(3)), 1)
    assert next(rows) == [("a",)]
    assert asked == [0]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("read", [count_lines, lambda file: list(open_lines(file))])
def test_utf_16_is_named_and_not_read_as_text_with_zeros(tmp_path, encoding, read):
    (tmp_path / "a").write_bytes("english\tgerman\na\tb\n".encode(encoding))
    with pytest.raises(DataError, match=r"is UTF-16, as Excel's Unicode text is; convert it to UTF-8"):
        read(tmp_path / "a")
    (tmp_path / "b").write_bytes(b"SQLite\0\0\0\0" * 20 + b"\xff")
    with pytest.raises(DataError, match="not UTF-8"):
        read(tmp_path / "b")
    (tmp_path / "a").write_bytes(b"a\0b\ncd\n")
    assert list(open_lines(tmp_path / "a")) == ["a\0b", "cd"]


@pytest.mark.parametrize(
    ("begin", "problem"),
    [
        (b"PAR1\x15\x04\x15\x80", 'is Parquet: in a corpus set format = "parquet"; else write'),
        (b"ARROW1\x00\x00\xff\xff", r"is an Arrow file \(Feather\): write it as Parquet or CSV"),
        (b"7z\xbc\xaf\x27\x1c\0", r"is an archive \(7z\): unpack it"),
        (b"Rar!\x1a\x07\x00abc", r"is an archive \(RAR\)"),
        (b"\x1f\x9d\x90abc", r"is compressed by compress \(\.Z\): unpack it, as by gunzip"),
        (b"\x04\x22\x4d\x18abc", "is compressed by lz4"),
        (b"\x5d\x00\x00\x80\x00", "is compressed by lzma"),
        (b"LZIP\x01abc", "is compressed by lzip"),
        (b"\xff\x06\x00\x00sNaPpY", "is compressed by snappy"),
        (b"Obj\x01\x04", "is Avro"),
        (b"\x80\x03}q\x00.", "is a Python pickle"),
        (b"\x80\x02}q\x00.", "is a Python pickle"),
        (b"%PDF-1.7\n%\xe2\xe3", "is a PDF: save its text"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a document of an office of before 2007"),
        (b"\x80\x04\x95\x00", "is a Python pickle, which may run anything and is not read"),
        (b"GGUF\x03\x00", r"the weights of a model \(GGUF\)"),
        (b"\xba\x16\x4f\x2f\x0c", "is a model of fastText"),
        (b"mmap lm http://kheafield.com/code format", "is a language model of n-grams"),
        (b'@\0\0\0\0\0\0\0{"a":{"dtype":"F32"}}', r"the weights of a model \(safetensors\)"),
        (b'@\n\0\0\0\0\0\0{"a":{"dtype":"F32"}}\n', r"the weights of a model \(safetensors\)"),
        (b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02\n", "is a model of SentencePiece.*`tfm tokenize --from FILE`"),
        (b"a.csv".ljust(257, b"\x00") + b"ustar\x0000", r"is an archive \(tar\): unpack it, and give a file in it"),
    ],
)
def test_files_of_other_programs_are_named(begin: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(begin + b"\xff" * 10)
    with pytest.raises(DataError, match=problem):
        list(open_lines(tmp_path / "a"))


MARKS = "\u0301\u0323\u0345\u0344\u0f73\u0f81\u3099\uff9e\u0308\u0c48\U0001f600.-"


@given(st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]), st.text(st.sampled_from(f"{MARKS}aé한ﾊ \n"), max_size=40))
def test_a_normal_form_is_that_of_unicodedata(form: NormalForm, text: str) -> None:
    """Short runs of marks are left to `unicodedata`; those of copies are long."""
    marks = "".join(each for each in text if each in MARKS)
    for each in (text, f"a{marks * 16}", f"{text}{marks * 16}{text}"):
        assert normalize(form, each) == unicodedata.normalize(form, each)
