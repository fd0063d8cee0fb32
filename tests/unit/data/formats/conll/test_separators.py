"""Columns of words and labels, whatever white space stands between them."""

from pathlib import Path

import pytest

from tfm.data.corpora.paths.single_files import suggest_corpus_table
from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

WORDS = ["EU", "rejects", "German", "call", "to", "boycott", "British", "lamb", "Peter", "Blackburn"]
PARTS = ["NNP", "VB", "JJ", "NN", "TO", "VB", "JJ", "NN", "NNP", "NNP"]
TAGS = ["B-ORG", "O", "B-MISC", "O", "O", "O", "B-MISC", "O", "B-PER", "I-PER"]


def written(*separators: tuple[str, str]) -> str:
    """The sentence, whose lines take turns at the separators before the second and the third column."""
    rows = enumerate(zip(WORDS, PARTS, TAGS, strict=True))
    turns = ((row, separators[number % len(separators)]) for number, row in rows)
    return "".join(f"{word}{first}{part}{second}{tag}\n" for (word, part, tag), (first, second) in turns)


def read(file: Path, text: str) -> list[tuple[str, str]]:
    file.write_text(text, "utf-8")
    return list(read_pairs(CorpusConfig(format="conll", path=str(file))))


@pytest.mark.parametrize(
    ("separators", "remark"),
    [
        ([("\u00a0", "\u00a0")], "white space of any kind"),
        ([("\u3000", "\u3000")], "white space of any kind"),
        ([(" ", " "), ("\u00a0", " ")], "white space of any kind"),
        ([("\t", "\t"), ("\t", "\u00a0")], "white space of any kind"),
        ([(" ", "\t")], "tabs and by spaces"),
        ([("\t", " ")], "tabs and by spaces"),
        ([("\t", "\t"), (" ", " ")], "tabs and by spaces"),
        ([("\t\t", "\t"), ("\t", "\t")], "tabs and by spaces"),
        ([(" ", " "), ("\t", "\t")], None),
        ([("  ", "   ")], None),
        ([("\t\t", "\t")], None),
    ],
)
def test_columns_are_read_whatever_white_space_separates_them(
    separators: list[tuple[str, str]], remark: str | None, tmp_path: Path
) -> None:
    """Words were learned with their part of speech in them, and columns between no-break spaces were one."""
    file = tmp_path / "a.txt"
    with collect_remarks() as found:
        assert read(file, written(*separators)) == [(" ".join(WORDS), " ".join(TAGS))]
    said = [each for each in found if "separated" in each]
    assert len(said) == (remark is not None)
    assert all(remark in each for each in said if remark)
    assert 'format = "conll"' in suggest_corpus_table(file, ["source"], "target")


def test_padded_columns_of_words_are_no_table_of_fixed_width(tmp_path: Path) -> None:
    rows = zip(WORDS, PARTS, TAGS, strict=True)
    text = "".join(f"{word:<12}{part:<5}{tag}\n" for word, part, tag in rows)
    assert read(tmp_path / "a.txt", text) == [(" ".join(WORDS), " ".join(TAGS))]
    assert 'format = "conll"' in suggest_corpus_table(tmp_path / "a.txt", ["source"], "target")


@pytest.mark.parametrize("space", [" ", "\u00a0", "\u2009"])
def test_a_space_within_some_words_separates_nothing(space: str, tmp_path: Path) -> None:
    text = f"5{space}000\tB-NUM\nMark\tI-NUM\nzahlen\tO\n"
    assert read(tmp_path / "a", text) == [(f"5{space}000 Mark zahlen".replace(space, " "), "B-NUM I-NUM O")]


@pytest.mark.parametrize("space", [" ", "\u00a0"])
def test_names_of_two_words_each_stay_whole_between_tabs(space: str, tmp_path: Path) -> None:
    """Their second parts are no classes."""
    text = "".join(f"{word}{space}{word[::-1]}\t{tag}\n" for word, tag in zip(WORDS, TAGS, strict=True))
    words = " ".join(f"{word} {word[::-1]}" for word in WORDS)
    assert read(tmp_path / "a", text) == [(words, " ".join(TAGS))]


def test_a_line_in_which_another_space_was_to_separate_is_named(tmp_path: Path) -> None:
    text = "Kaffee\u00a0Hag B-ORG\nist O\nEU\u00a0B-ORG\n"
    with pytest.raises(DataError, match=r"line 3: has 1 column, but .* 2; U\+00A0 \(no-break space\) separates no"):
        read(tmp_path / "a", text)
