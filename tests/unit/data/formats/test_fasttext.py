"""Files of labelled texts, as SST-2 and fastText have them."""

import subprocess
from pathlib import Path

import pytest

from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError


def read(folder: Path, text: str, **config: str | int | None) -> list[tuple[str, str]]:
    (folder / "a.txt").write_text(text, encoding="utf-8", newline="")
    return list(
        read_pairs(CorpusConfig.model_validate({"format": "labelled", "path": str(folder / "a.txt"), **config}))
    )


def test_the_label_is_the_first_word(tmp_path: Path) -> None:
    assert read(tmp_path, "1 a fine film .\n0\tso so\r\n") == [("a fine film .", "1"), ("so so", "0")]


def test_fasttext_writes_a_prefix_before_the_label(tmp_path: Path) -> None:
    text = "__label__good a fine film\n__label__bad  __lab el__ 1\n__label__x\n__label__y a __label__ b\n"
    assert read(tmp_path, text) == [
        ("a fine film", "good"),
        ("__lab el__ 1", "bad"),
        ("", "x"),
        ("a __label__ b", "y"),
    ]


def test_a_label_may_stand_behind_its_text(tmp_path: Path) -> None:
    """The first word was the label, and the label text."""
    text = "a fine\tfilm\t__label__good\n so  so __label__bad \n__label__x first\n"
    assert read(tmp_path, text) == [("a fine\tfilm", "good"), ("so  so", "bad"), ("first", "x")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a text", "has no label: those of the lines before begin with __label__, before or behind the text"),
        ("a __label__x text", "has no label"),
        ("__label__a text __label__b", r"has more than one label \(a, b\)"),
        ("text __label__a __label__b", r"has more than one label \(a, b\)"),
    ],
)
def test_each_line_has_one_label_if_the_first_has_fasttexts(tmp_path: Path, line: str, message: str) -> None:
    for first in ("__label__x a", "a __label__x"):
        with pytest.raises(DataError, match=rf"a\.txt, line 2: {message}"):
            read(tmp_path, f"{first}\n{line}\n")


def test_blank_lines_are_passed_over_and_a_text_may_be_empty(tmp_path: Path) -> None:
    assert read(tmp_path, "1 a\n\n \t\n0\n") == [("a", "1"), ("", "0")]


def test_sides_have_names(tmp_path: Path) -> None:
    assert read(tmp_path, "1 a b\n", source="label", target="text") == [("1", "a b")]
    assert read(tmp_path, "1 a b\n", source=None, target="text") == [("", "a b")]


def test_a_part_of_a_corpus(tmp_path: Path) -> None:
    text = "".join(f"{number % 2} text {number}\n" for number in range(10))
    assert read(tmp_path, text, size=2) == [("text 0", "0"), ("text 1", "1")]
    assert read(tmp_path, text, size=2, skip=3) == [("text 3", "1"), ("text 4", "0")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("__label__a __label__b text", r"has more than one label \(a, b\)"),
        ("__label__ text", "its label is empty"),
    ],
)
def test_what_is_no_label_is_an_error_that_names_the_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"a\.txt, line 2: {message}"):
        read(tmp_path, f"1 a\n{line}\n")


def test_comments_of_a_dictionary_of_pronunciations_are_no_phones(tmp_path: Path) -> None:
    """`# place, danish` of CMUdict was read as three phones, and each line of its head as a word."""
    text = ";;; # CMUdict\n;;; x\nAALBORG  AO1 L B # place, danish\na AH0\na(2) EY1\n"
    keys: dict[str, str | int | None] = {"source": "label", "target": "text"}
    with collect_remarks() as remarks:
        assert read(tmp_path, text, **keys) == [("AALBORG", "AO1 L B"), ("a", "AH0"), ("a(2)", "EY1")]
    comments, variants = remarks
    assert comments.endswith("a.txt: 3 comments (;;; or #) left out")
    assert "1 word has the number of a variant, as in a(2), which is read as part of the word: cut it by" in variants
    command = variants.partition(" by ")[2].replace("FILE", str(tmp_path / "a.txt"))
    mended = subprocess.run(command, shell=True, capture_output=True, text=True).stdout
    assert read(tmp_path, mended, **keys)[1:] == [("a", "AH0"), ("a", "EY1")]


def test_a_number_sign_in_a_text_is_text(tmp_path: Path) -> None:
    with collect_remarks() as remarks:
        assert read(tmp_path, "x a\nA AH0 # up\n;;; b\n") == [("a", "x"), ("AH0 # up", "A"), ("b", ";;;")]
        assert read(tmp_path, "A GO # up\n1 (2) # b\nx(2) y\n") == [("GO # up", "A"), ("(2) # b", "1"), ("y", "x(2)")]
    assert not remarks
