"""Columns of numbers, places and tags, where the words and labels are, and files that have no labels."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.data.corpora.paths.test_single_files import advised, corpus
from tfm.data.config import DataConfig
from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import resolve_splits
from tfm.data.corpora.text_remarks import table_remark
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


UNLABELLED = {
    "alone.txt": "EU\nlehnt\nab\n.\n\nPeter\nlacht\nnun\n\n",
    "alone.conll": "-DOCSTART-\n\nEU\nlehnt\nab\n.\n\nPeter\nlacht\nnun",
    "tab_behind.tsv": "EU\t\nlehnt\t\nab\t\n.\t\n\nPeter\t\nlacht\t\nnun\t\n",
    "germeval.tsv": "#\thttp://a [2010]\n1\tEU\n2\tlehnt\n3\tab\n4\t.\n\n#\thttp://b\n1\tPeter\n2\tlacht\n3\tnun\n\n",
    "tabs.tsv": "# http://a\n1\tEU\t\t\n2\tlehnt\t\t\n3\tab\t\t\n4\t.\t\t\n\n1\tPeter\t\t\n2\tlacht\t\t\n3\tnun\t\t\n\n",
    "multiconer.conll": "# id 1\nEU _ _ _\nlehnt _ _ _\nab _ _ _\n. _ _ _\n\n\nPeter _ _ _\nlacht _ _ _\nnun _ _ _\n",
    "question.txt": "EU ?\nlehnt ?\nab ?\n. ?\n\nPeter ?\nlacht ?\nnun ?\n\n",
}


@pytest.mark.parametrize("name", UNLABELLED)
def test_words_without_labels_are_named_with_what_makes_sentences_of_them(name: str, tmp_path: Path) -> None:
    """Test sets were advised as texts, or with the words as their own labels."""
    file = tmp_path / name
    file.write_text(UNLABELLED[name])
    with pytest.raises(
        DataError, match=r"has .*no labels: write those of a sentence in a line.*labels, as by"
    ) as error:
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    command = re.sub("FILE$", str(file), str(error.value).partition("as by ")[2])
    command = command.replace("awk '", "awk '/^-DOC/ {next} ") if "DOC" in UNLABELLED[name] else command
    assert (
        subprocess.run(command, shell=True, capture_output=True, text=True).stdout == "EU lehnt ab .\nPeter lacht nun\n"
    )
    with pytest.raises(DataError, match="no labels: write those of a sentence in a line"):
        list(read_pairs(CorpusConfig(format="conll", path=str(file))))


def test_words_without_labels_that_are_read_as_texts_are_remarked() -> None:
    remark = table_remark(UNLABELLED["alone.txt"].split("\n"))
    assert str(remark).startswith("has a word a line and blank lines between sentences, and are read")
    for text in ("dog\ncat\n\ntree\ncar\n", "a\n.\nb\n.\n", "3\n4\n.\n\n5\n6\n", "A dog\n.\n\nNo\n.\n"):
        assert "word a line" not in str(table_remark(text.split("\n")))


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


def test_webanno_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text(
        "#FORMAT=WebAnno TSV 3.2\n\n\n#Text=Anna lacht\n1-1\t0-4\tAnna\tPER[1]\t\n1-2\t5-10\tlacht\t_\t\n\n"
    )
    with pytest.raises(DataError, match="is TSV of WebAnno or INCEpTION: export it as CoNLL 2002"):
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    with pytest.raises(DataError, match="is TSV of WebAnno or INCEpTION"):
        list(read_pairs(CorpusConfig(format="conll", path=str(file))))


@pytest.mark.parametrize(
    "text",
    [
        "<PER>Anna</PER> lives in <LOC>Rome</LOC> .\nEva sings .\n<PER>Eva</PER> sings .\n",
        "<START:person> Anna <END> lives in Rome .\n",
        '<ENAMEX TYPE="PERSON">Anna</ENAMEX> lives .\n',
        "[PER Anna] lives in [LOC Rome] .\n",
    ],
)
def test_tags_around_entities_are_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(text)
    with pytest.raises(DataError, match=r"sentences with tags around entities \(.*\): write a word and its tag a line"):
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    file.write_text("<b>bold</b> text\n<i>x</i>\n[see Rome]\n")
    assert "OTHER" in advised(file)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("The/at 1\\/2/cd dog/nn ./.\nNo/uh ,/, no/uh\n", ["The at", "1\\/2 cd", "dog nn", ". ."]),
        ("The|DT|O Rome|NNP|B-LOC .|.|O\nAnna|NNP|B-PER ran|VB|O\nIt|PR|O is|VB|O so|RB|O .|.|O\n", ["The DT O"]),
        ("a_b_DT dog_NN ran_VB\nNo_UH no_UH no_UH\n", ["a_b DT", "dog NN", "ran VB"]),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.conll"])
def test_the_command_of_words_with_labels_behind_a_mark_writes_columns(
    name: str, text: str, columns: list[str], tmp_path: Path
) -> None:
    """They were advised as texts, or as columns, which they are not."""
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(
        DataError, match=r"sentences of words with their labels .*: write a word and its label a"
    ) as error:
        resolve_splits(DataConfig.model_validate({"path": str(file)}))
    command = str(error.value).partition("as by ")[2].partition(", and set")[0].replace("FILE", str(file))
    (tmp_path / "b.conll").write_text(subprocess.run(command, shell=True, capture_output=True, text=True).stdout)
    lines = (tmp_path / "b.conll").read_text().splitlines()
    assert [line.replace("\t", " ") for line in lines[: len(columns)]] == columns
    assert len(list(read_pairs(CorpusConfig(format="conll", path=str(tmp_path / "b.conll"))))) == text.count("\n")
