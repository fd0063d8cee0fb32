"""Files of word vectors from other programs: separated by tabs, and word2vec's binary format."""

import bz2
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tfm.data.errors import DataError
from tfm.pipeline.model_io import vector_files
from tfm.pipeline.model_io.pretrained_vectors import format_vectors, pack_vectors
from tfm.pipeline.model_io.vector_files import read_vectors, vector_width

ROWS = {"a": [1.0, -2.5, 3e-8], "über": [4.0, 5.0, 6.0], "b": [7.0, 8.0, 0.1]}


def binary(rows: dict[str, list[float]], *, end: bytes = b"\n", num: int | None = None) -> bytes:
    """As word2vec writes it with a line break behind each vector, or as gensim does, without."""
    width = len(next(iter(rows.values())))
    words = [word.encode() + b" " + struct.pack(f"<{width}f", *numbers) + end for word, numbers in rows.items()]
    return f"{len(rows) if num is None else num} {width}\n".encode() + b"".join(words)


@pytest.mark.parametrize("block", [1, 7, 2**20])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_word2vec_in_binary(end: bytes, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_files, "READ_BLOCK_BYTES", block)
    for name, pack in {"v.bin": bytes, "v": bytes, "v.bin.bz2": bz2.compress}.items():
        (tmp_path / name).write_bytes(pack(binary(ROWS, end=end)))
        found = read_vectors(tmp_path / name, 3, {"a", "über", "c"})
        assert {word: vector.tolist() for word, vector in found.items()} == {
            word: np.float32(ROWS[word]).tolist() for word in ("a", "über")
        }


@example(words=["0"], seed=41804)  # the fp32 have a line break, before any byte that no text has
@given(
    words=st.lists(
        st.text(st.characters(exclude_characters=" ", exclude_categories=["Cc", "Cs"]), min_size=1),
        min_size=1,
        unique=True,
    ),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_words_and_numbers(words: list[str], seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    vectors = np.random.default_rng(seed).normal(size=(len(words), 50)).astype(np.float32)
    file = tmp_path_factory.getbasetemp() / "v.bin"
    file.write_bytes(binary(dict(zip(words, vectors.tolist(), strict=True))))
    found = read_vectors(file, 50, words)
    assert list(found) == words
    assert np.array_equal(np.stack([*found.values()]), vectors)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (binary(ROWS)[:-6], "line 1: should have 3 vectors by its first line, but has 2: is it complete?"),
        (binary(ROWS, num=10**17), "should have 100,000,000,000,000,000 vectors by its first line, but has 3"),
        (binary(ROWS, num=2), "line 1: has more than the 2 vectors of its first line"),
        (binary({"a": [1.0, 2.0]}), "line 1: its vectors are 2 wide, and the embedding is 3"),
        (binary({"a": [1.0, float("nan"), 2.0]}), "a vector contains a number that is not finite"),
        (b"1 3\n" + b"\0" * 2**17, "word 1 is longer than 65,536 bytes: is it word2vec's format?"),
        (binary(ROWS | {"New York": [1.0, 2.0, 3.0], "c": [4.0, 5.0, 6.0]}), "word 5 has bytes that no text has"),
        (
            b"2 3\na " + struct.pack("<3d", 1, 2, 3) + b"b " + struct.pack("<3d", 1, 2, 3),
            "word 2 has bytes that no text",
        ),
        (pickle.dumps({"a": 1}), "is a Python pickle, which may run anything and is not read"),
        (b"\xba\x16\x4f\x2f\0", "is a model of fastText: give the text file .vec"),
        (b"\x93NUMPY\1\0", "is a NumPy array, which has no words"),
    ],
    ids=["cut", "promised", "more", "width", "nan", "endless word", "spaces", "fp64", "pickle", "fastText", "NumPy"],
)
def test_what_is_damaged_or_of_another_program_is_named(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "v.bin").write_bytes(content)
    with pytest.raises(DataError) as error:
        read_vectors(tmp_path / "v.bin", 3, {"a"})
    assert said in str(error.value)


@pytest.mark.parametrize(
    "lines",
    [
        ["a\t1\t2\t3", "New York\t4\t5\t6"],
        ["2\t3", "a\t1\t2\t3", "New York\t4\t5\t6\t"],
        ["a\t1 2 3", "New York\t4 5 6"],
    ],
)
def test_tabs_between_numbers(lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "v.tsv").write_text("\n".join([*lines, ""]))
    found = read_vectors(tmp_path / "v.tsv", 3, {"a", "New York"})
    assert {word: vector.tolist() for word, vector in found.items()} == {"a": [1, 2, 3], "New York": [4, 5, 6]}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["New York 1 2 3", "a 1 2 3"], ["New York", "a"]),
        (["a  1  2   3", " b 1 2 3"], ["a", "b"]),
        (["a 1 2 3", ". . . 1 2 3", "12 1 2 3", "x@y z 1 2 3"], ["a", ". . .", "12", "x@y z"]),
    ],
    ids=["first", "several spaces", "later"],
)
def test_words_with_spaces_and_columns_of_text(lines: list[str], words: list[str], tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("\n".join([*lines, ""]))
    assert {word: vector.tolist() for word, vector in read_vectors(tmp_path / "v.txt", 3, words).items()} == {
        word: [1, 2, 3] for word in words
    }


@pytest.mark.parametrize(
    ("lines", "width", "said"),
    [
        (["word,d0,d1,d2", "a,1,2,3"], 3, "line 1: is no vector: a line has a word and its numbers"),
        (['{"a": [1, 2, 3]}'], 9, "line 1: is no vector: a line has a word and its numbers"),
        (["1 4", "a 1 2 3"], 4, "line 2: its vector is 3 wide, and the first line of the file says 4: correct that"),
        (["a 1 2 3", "route 66 1 2 3"], 3, "line 2: its vector is 4 wide, and those above it 3: remove the line"),
    ],
    ids=["CSV", "JSON", "first line", "number"],
)
def test_no_remedy_leads_to_another_error(lines: list[str], width: int, said: str, tmp_path: Path) -> None:
    """A width is advised only if all vectors have it: 0 was of a CSV, and 3 of a file whose first line says 4."""
    (tmp_path / "v.txt").write_text("\n".join([*lines, ""]))
    with pytest.raises(DataError) as error:
        read_vectors(tmp_path / "v.txt", width, {"a"})
    assert said in str(error.value)
    assert "set model.embedding_dim" not in str(error.value)


WORD = st.text(st.sampled_from('ab"\\#,.0-1ü語\u2028\x85'), min_size=1, max_size=4)


@given(
    words=st.lists(WORD, min_size=1, max_size=8),
    wanted=st.lists(WORD, max_size=4),
    seed=st.integers(0, 2**32 - 1),
    form=st.sampled_from(["binary", "binary without line breaks", "tabs", "spaces"]),
    block=st.integers(1, 200),
    is_headed=st.booleans(),
)
def test_files_as_others_write_them(
    words: list[str], wanted: list[str], seed: int, form: str, block: int, is_headed: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    """The first vector of each wanted word counts, whatever words come twice and wherever blocks end."""
    vectors = np.random.default_rng(seed).normal(size=(len(words), 20)).astype(np.float32)
    head = f"{len(words)} 20\n".encode()
    if form.startswith("binary"):
        end = b"" if "without" in form else b"\n"
        rows = [struct.pack("<20f", *vector) + end for vector in vectors]
        content = head + b"".join(word.encode() + b" " + row for word, row in zip(words, rows, strict=True))
    else:
        mark = "\t" if form == "tabs" else " "
        lines = [mark.join([word, *map(repr, vector.tolist())]) for word, vector in zip(words, vectors, strict=True)]
        content = head * is_headed + "".join(f"{line}\n" for line in lines).encode()
    file = tmp_path_factory.getbasetemp() / "v"
    file.write_bytes(content)
    asked = {*wanted, *words[::2]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_files, "READ_BLOCK_BYTES", block)
        patch.setattr("tfm.data.lines.BLOCK_BYTES", block)
        found = read_vectors(file, 20, asked)
    expected = {word: vectors[words.index(word)].tolist() for word in words if word in asked}
    assert {word: vector.tolist() for word, vector in found.items()} == expected


@pytest.mark.parametrize("pack", [pack_vectors, lambda *vectors: format_vectors(*vectors).encode()])
@given(
    words=st.lists(
        st.text(st.characters(exclude_characters=" ", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), min_size=1),
        min_size=1,
        unique=True,
    ),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_file_of_vectors_is_known_by_its_beginning_and_read_whole(
    pack: Callable[..., bytes], words: list[str], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    vectors = np.random.default_rng(seed).normal(size=(len(words), 50)).astype(np.float32)
    file = tmp_path_factory.getbasetemp() / "v"
    file.write_bytes(pack({word: row for row, word in enumerate(words)}, vectors))
    assert vector_width(file) == 50
    found = read_vectors(file, 50, None)
    assert list(found) == words
    assert np.array_equal(np.stack([*found.values()]), vectors)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("king 0.5 -1\nqueen 1 2e-3\n", 2),
        ("king\t0.5\t-1\r\nqueen\t1\t2\r\n", 2),
        (". . . 0.5 -1\n1 0.5 1.5\n\nat name@a.org 2 3\n", 2),
        ("2 3\nking 0.5 -1 0 \nqueen 1 2 3 \n", 3),
        ("king 0.5 -1\nqueen 1\n", 2),
        ("See pages 3 4\nand 5 6\nThat is all.\n", None),
        ("On page 3.5 and 4.5\nis\nit\n", None),
        ("page 1\npage 2\n", None),
        ("It costs 3.50\n", None),
        ("", None),
        ("0.5 0.7\n0.5 0.8\n", None),
    ],
)
def test_what_seems_word_vectors(text: str, width: int | None, tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(text.encode())
    assert vector_width(tmp_path / "v") == width


def test_a_space_within_a_word_has_no_place_in_the_binary_format() -> None:
    with pytest.raises(
        DataError, match=r"the word '\. \.' holds a space, which ends a word in word2vec's binary format"
    ):
        pack_vectors({". .": 0}, np.zeros((1, 2), np.float32))
