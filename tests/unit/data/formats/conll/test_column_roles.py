"""Columns of numbers, places and tags: where the words and labels are."""

from pathlib import Path

import pytest

from tests.unit.data.corpora.paths.test_single_files import advised, corpus
from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

SENTENCES = [[("Anna", "B-PER"), ("lacht", "O"), (".", "O")], [("Eva", "B-PER"), ("weint", "O"), ("nun", "O")]]
EXPECTED = [("Anna lacht .", "B-PER O O"), ("Eva weint nun", "B-PER O O")]


def written(*columns: str, separator: str = "\t") -> str:
    """The sentences, with columns by their names: word, tag, begin, end, number, document, sentence, second."""
    lines: list[str] = []
    place = total = 0
    for sentence, words in enumerate(SENTENCES):
        for number, (word, tag) in enumerate(words, 1):
            total += 1
            cells = {
                "word": word, "tag": tag, "begin": place, "end": place + len(word), "number": number, "total": total,
                "span": f"{place}-{place + len(word)}", "place": f"{sentence + 1}-{number}", "lemma": word.lower(),
                "sentence": f"s{sentence}", "second": f"{place / 10}", "part": "NN" if number % 2 else "VB",
                "none": "_",
            }  # fmt: skip
            lines.append(separator.join(str(cells[column]) for column in columns) + "\n")
            place += len(word) + 1
        lines.append("\n")
    return "".join(lines)


@pytest.mark.parametrize(
    ("columns", "keys"),
    [
        (("begin", "end", "word", "tag"), "source = 2"),
        (("number", "begin", "end", "word", "tag"), "source = 3"),
        (("begin", "word", "tag"), "source = 1"),
        (("total", "word", "tag"), "source = 1"),
        (("second", "word", "tag"), "source = 1"),
        (("place", "span", "word", "tag"), "source = 2"),
        (("sentence", "word", "tag"), "source = 1"),
        (("tag", "begin", "end", "word"), "source = 3, target = 0"),
        (("tag", "word"), "source = 1, target = 0"),
        (("word", "begin", "end", "tag"), ""),
        (("word", "tag", "begin", "end"), "target = 1"),
        (("word", "tag", "part", "lemma"), "target = 1"),
        (("word", "part", "tag"), ""),
        (("word", "tag", "none", "none"), "target = 1"),
        (("word", "part", "none"), "target = 1"),
    ],
)
@pytest.mark.parametrize("separator", ["\t", " "])
def test_words_and_labels_are_found_beside_places(
    columns: tuple[str, ...], keys: str, separator: str, tmp_path: Path
) -> None:
    """Numbers of characters were learned as words, and the last of them as labels."""
    for name in ("a.conll", "a.txt"):
        file = tmp_path / name
        file.write_text(written(*columns, separator=separator))
        advice = advised(file)
        assert advice == f'{{ format = "conll", path = "{file}"{", " * bool(keys)}{keys} }}'
        labels = [tags for _, tags in EXPECTED] if "tag" in columns else ["NN VB NN"] * 2
        assert list(read_pairs(corpus(advice))) == [
            (words, tags) for (words, _), tags in zip(EXPECTED, labels, strict=True)
        ]
    plain = CorpusConfig(format="conll", path=str(file))
    if "source" in keys:
        remedy = rf"its first column .*: set source to the number of the column with the words, such as {keys[9]}"
        with pytest.raises(DataError, match=remedy):
            list(read_pairs(plain))
    elif "none" in columns:
        with pytest.raises(DataError, match=r"its label .* is _, which says that the word has none: name a target col"):
            list(read_pairs(plain))
    else:
        with collect_remarks() as remarks:
            list(read_pairs(plain))
        assert any(f"{keys} reads" in remark for remark in remarks) == bool(keys)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 NUM\n2 NUM\n\n5 NUM\n3 NUM\n", ["1 2", "5 3"]),
        ("ha B-X\nha I-X\n\nno O\n", ["ha ha", "no"]),
        ("7 O\n8 O\n\n9 O\n", ["7 8", "9"]),
    ],
)
def test_numbers_and_repeated_words_are_words(text: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    corpus_config = CorpusConfig(format="conll", path=str(tmp_path / "a"))
    assert [source for source, _ in read_pairs(corpus_config)] == expected


HIPE = (
    "TOKEN\tNE-COARSE-LIT\tNE-COARSE-METO\tNEL-LIT\tMISC\n# hipe2020:document_id = x\nAnna\tB-pers\tO\tQ1\t_\n"
    "lacht\tO\tO\t_\tNoSpaceAfter\n.\tO\tO\t_\tEndOfLine\n\nEva\tB-pers\tO\tQ1\t_\nweint\tO\tO\t_\t_\n\n"
)


def test_a_header_whose_last_column_is_of_no_labels_is_one(tmp_path: Path) -> None:
    (tmp_path / "hipe.tsv").write_text(HIPE)
    assert list(read_pairs(corpus(advised(tmp_path / "hipe.tsv")))) == [
        ("Anna lacht .", "B-pers O O"),
        ("Eva weint", "B-pers O"),
    ]
