"""A word a line with labels in columns: CoNLL-2003 and its like, and the schemes of their tags."""

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs, with_lists_of
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.formats.conll.schemes import TagSchemeChecker

CONLL_2003 = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER
# . O O
"""


def read(file: Path, text: str, **keys: Any) -> list[tuple[str, str]]:
    file.write_text(text, "utf-8", newline="")
    return list(read_pairs(CorpusConfig.model_validate({"format": "conll", "path": str(file), **keys})))


def said(file: Path, text: str) -> list[str]:
    with collect_remarks() as found:
        read(file, text)
    return [each.removeprefix(f"{file}: ") for each in found]


@pytest.mark.parametrize(("target", "line"), [(1, 2), ("target", 4)])
def test_a_word_whose_label_is_unspecified_is_refused(target: int | str, line: int, tmp_path: Path) -> None:
    """A treebank without a column of tags was learned with a perfect accuracy of `_`."""
    text = "_ A B\nb _ B\n\nc A _\n"
    with pytest.raises(DataError, match=rf"line {line}: its label \(column \d\) is _, which says that the"):
        read(tmp_path / "a.txt", text, target=target)
    assert read(tmp_path / "a.txt", text, source=None, target=0) == [("", "_ b"), ("", "c")]


def test_the_word_is_first_and_its_label_last_or_columns_are_numbers(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    words = ["EU rejects German", "Peter Blackburn #"]
    assert read(file, CONLL_2003) == list(zip(words, ["I-ORG O I-MISC", "I-PER I-PER O"], strict=True))
    assert read(file, CONLL_2003, target=1) == list(zip(words, ["NNP VBZ JJ", "NNP NNP ."], strict=True))
    assert [text for _, text in read(file, CONLL_2003, source=None, target=0)] == words
    assert said(file, CONLL_2003) == ["its tags are IOB1, without invalid transitions"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tabs_let_a_word_have_spaces(tmp_path: Path, end: str) -> None:
    text = "# id 1\nNew York\tB-LOC\nist\tO\n \n\nda\tO\n".replace("\n", end)
    assert read(tmp_path / "a", text) == [("New York ist", "B-LOC O"), ("da", "O")]
    corpus = with_lists_of(CorpusConfig(format="conll", path=str(tmp_path / "a")), "tags")
    assert list(read_pairs(corpus)) == [("New␣York ist", "B-LOC O"), ("da", "O")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a O\nb\n", "line 2: has 1 column, but the first word has 2"),
        ("a O\nb B x\n", "line 2: has 3 columns"),
        ("a\tO\nb\t\n", "line 2: its column 1 is empty"),
        ("a O\n\nb O", None),
    ],
)
def test_every_word_has_as_many_columns(tmp_path: Path, text: str, message: str | None) -> None:
    if message is None:
        assert read(tmp_path / "a", text) == [("a", "O"), ("b", "O")]
        return
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a", text)


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no column 2; its first word has 2"):
        read(tmp_path / "a", "a O\n", target=2)
    with pytest.raises(ValueError, match='replace "ner"'):
        CorpusConfig.model_validate({"format": "conll", "path": "a", "target": "ner"})


@pytest.mark.parametrize(
    ("tags", "scheme", "breaks"),
    [
        ("O B-X I-X O B-X B-Y", "IOB2", 0),
        ("O I-X I-X B-X I-Y O", "IOB1", 0),
        ("I-X I-X O I-Y", "IOB1", 0),
        ("B-X I-Y O I-X B-Z B-X I-X", "IOB2", 2),
        ("B-X I-X E-X S-Y O", "IOBES", 0),
        ("B-X O E-X S-Y I-Y", "IOBES", 4),
        ("B-X", "IOB2", 0),
        ("B-X I-X L-X U-Y O", "BILOU", 0),
        ("B-X I-X L-X U-Y O S-X", "BILOU", 1),
        ("B-X I-X E-X U-Y O", "BILOU", 1),
        ("B-X M-X E-X S-Y O", "BMES", 0),
        ("S-X B-X", "IOBES", 1),
        ("E-X O I-Y E-Y E-Y", "IOE2", 0),
        ("I-X O I-Y E-Y I-Y", "IOE1", 0),
        ("I-X E-X O I-Y O E-Y", "IOE2", 1),
        ("W-X O B-Y M-Y E-Y", "BMEWO", 0),
        ("O O", None, 0),
        ("NN VB", None, 0),
        ("B-X NN", None, 0),
        ("B-", None, 0),
        ("B I O O B", "IOB2", 0),
        ("B M E S", "BMES", 0),
        ("O I S", None, 0),
    ],
)
def test_schemes_are_recognised_and_their_breaks_counted(tags: str, scheme: str | None, breaks: int) -> None:
    check = TagSchemeChecker()
    check.add(tags.split(), range(1, 1 + len(tags.split())))
    assert check.scheme == scheme
    if scheme is not None:
        assert check.breaks[scheme].count == breaks


def test_breaks_are_shown(tmp_path: Path) -> None:
    (text,) = said(tmp_path / "a", "a B-PER\nb I-PER\n\nc I-LOC\nd O\ne B-PER\n\nf B-X\n")
    assert text == (
        "its tags are IOB2, with 1 invalid transition, the first in line 4: the beginning of the sentence to I-LOC"
    )


@pytest.mark.parametrize("spelling", ["PER-B", "B_PER", "b-per"])
def test_tags_in_another_spelling_are_named_with_what_writes_them(spelling: str, tmp_path: Path) -> None:
    def spell(tag: str) -> str:
        letter, _, kind = tag.partition("-")
        parts = {"PER-B": f"{kind}-{letter}", "B_PER": f"{letter}_{kind}", "b-per": tag.lower()}
        return parts[spelling] if kind or spelling == "b-per" else tag

    rows = [("Ann", "B-PER"), ("o", "O"), ("", ""), ("b-per", "B-X_Y"), ("X", "I-X_Y"), ("O", "O")]
    file = tmp_path / "a"
    text = "".join(f"{word} {spell(tag)}\n" if word else "\n" for word, tag in rows)
    (remark,) = said(file, text)
    assert remark.startswith(f"its labels seem to be tags ({spelling}), whose spans entity_f1 does not find: B-PER is")
    command = remark.partition("written by ")[2].replace("FILE", str(file))
    mended = subprocess.run(command, shell=True, capture_output=True, text=True).stdout
    assert mended == "".join(f"{word} {tag}\n" if word else "\n" for word, tag in rows)
    assert said(file, text + "\nof IN\n") == []


@pytest.mark.parametrize("text", ["", "\n \n\n", "# a comment\n\n"])
def test_a_file_without_a_word_is_named_as_that(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no word: it is empty"):
        said(tmp_path / "a", text)


@pytest.mark.parametrize("stray", ["0", "o", "I_PER", "O-PER"])
def test_few_labels_that_are_no_tags_among_tags_are_told(stray: str, tmp_path: Path) -> None:
    """A label that is mistyped; labels of another kind are none of tags, and nothing is said."""
    tagged = "a B-PER\nb I-PER\nc O\n\n" * 20
    (remark,) = said(tmp_path / "a", tagged + f"d B-LOC\ne {stray}\n\nf {stray}\n")
    assert remark.startswith(f'2 labels of 63 are no tag, the first in line 82 ("{stray}"); all others are tags')
    assert said(tmp_path / "a", tagged + "d NN\n" * 10) == []


def test_random_spans_in_each_scheme_have_no_breaks() -> None:
    """Written by spans, as another reads them: what this counts is none."""
    draw = random.Random(49)
    for scheme in ("IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "BMES", "BMEWO"):
        check = TagSchemeChecker()
        for _ in range(200):
            tags: list[str] = []
            before = ""
            for _ in range(draw.randint(1, 6)):
                kind, length = draw.choice(["", "X", "Y"]), draw.randint(1, 4)
                if not kind:
                    tags += ["O"] * length
                elif scheme == "IOB1":
                    tags += [("B-" if kind == before else "I-") + kind, *[f"I-{kind}"] * (length - 1)]
                elif scheme == "IOB2":
                    tags += [f"B-{kind}", *[f"I-{kind}"] * (length - 1)]
                elif scheme == "IOE1":
                    tags[-1:] = [f"E-{kind}"] if kind == before else tags[-1:]
                    tags += [f"I-{kind}"] * length
                elif scheme == "IOE2":
                    tags += [*[f"I-{kind}"] * (length - 1), f"E-{kind}"]
                else:
                    inner, last, single = {"IOBES": "IES", "BILOU": "ILU", "BMES": "MES", "BMEWO": "MEW"}[scheme]
                    whole = [f"B-{kind}", *[f"{inner}-{kind}"] * (length - 2), f"{last}-{kind}"]
                    tags += whole if length > 1 else [f"{single}-{kind}"]
                before = kind
            check.add(tags, range(len(tags)))
        assert check.scheme == scheme
        assert check.breaks[scheme].count == 0


GERMEVAL = "#\thttp://a.de/x\t[2010-07-04]\t\n1\tGleich\tO\tO\n2\tin\tO\tO\n3\tKiel\tB-LOC\tO\n\n"
MULTICONER = "# id f5-46\tdomain=en\ndoris _ _ B-Artist\nday _ _ I-Artist\n\n# id f6-1\tdomain=en\nin _ _ O\n"


@pytest.mark.parametrize(
    ("text", "keys", "rows", "first"),
    [
        (
            GERMEVAL * 2,
            {"source": 1, "target": 2},
            [("Gleich in Kiel", "O O B-LOC")] * 2,
            "2 lines are left out as com",
        ),
        (MULTICONER, {}, [("doris day", "B-Artist I-Artist"), ("in", "O")], "2 lines are left out as comments"),
        ("# s1\na O\nb B-X\n\n# O\n# O\n", {}, [("a b", "O B-X"), ("# #", "O O")], "line 1 is left out as a comment"),
        ("# #\nx NN\n# XX\n", {}, [("# x #", "# NN XX")], None),
        ("#a O\n#b c O\nx O\n", {}, [("#a x", "O O")], "line 2 is left out as a comment"),
    ],
)
def test_comments_of_as_many_columns_are_no_words(
    text: str, keys: dict[str, int], rows: list[tuple[str, str]], first: str | None, tmp_path: Path
) -> None:
    """GermEval's and MultiCoNER's comments were words, with a date or `domain=en` as their labels."""
    file = tmp_path / "a"
    with collect_remarks() as found:
        assert read(file, text, **keys) == rows
    remark = next(iter(found), None)
    assert remark is None if first is None else remark is not None and first in remark


def test_a_header_is_no_word(tmp_path: Path) -> None:
    text = "Token\tPOS\tNER\nEU\tNNP\tB-ORG\n\nx\tNN\tO\n"
    assert read(tmp_path / "a", text) == [("EU", "B-ORG"), ("x", "O")]
    assert said(tmp_path / "a", text)[0] == "its first line names the columns, and is left out"
    assert read(tmp_path / "a", "word NN\ntags NNS\n") == [("word tags", "NN NNS")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GERMEVAL, r"first column counts the words \(1, 2, 3, ...\): set source to the number of the column with"),
        ("0 a X\n1 b Y\n\n0 c X\n", "its first column counts the words"),
        ("bc/cctv a X\n" * 7, "its first column is bc/cctv at every word: set source to"),
        ("EU,B-ORG\nx,O\n", "its lines have one column; those of a word and its label stand between tabs or spaces"),
    ],
)
def test_words_that_are_in_another_column_are_asked_for(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a", text)
    read(tmp_path / "a", text, source=0, target=0)


def test_heads_behind_labels_are_remarked(tmp_path: Path) -> None:
    """As nltk has the Penn Treebank's dependencies: word, tag and head; classes as numbers are labels."""
    rows = [(f"w{number}", "NN" if number % 3 else "VB", number % 11) for number in range(40)]
    text = "".join(f"{word}\t{tag}\t{head}\n" for word, tag, head in rows)
    assert "its labels are the numbers of column 2, such as heads: target = 1 reads the column before" in "\n".join(
        said(tmp_path / "a", text)
    )
    assert read(tmp_path / "a", text, target=1)[0][1].startswith("VB NN NN VB")
    classes = "".join(f"{word}\t{tag}\t{head % 3}\n" for word, tag, head in rows)
    assert not any("such as heads" in remark for remark in said(tmp_path / "a", classes))


def test_a_space_of_another_kind_is_within_a_word(tmp_path: Path) -> None:
    assert read(tmp_path / "a", "5\u00a0000 O\n\u3042\u3000\u3044  B-X\n") == [("5 000 \u3042 \u3044", "O B-X")]


ONTONOTES = """#begin document (bc/cctv/00/cctv_0000); part 000
bc/cctv/00/cctv_0000   0   0    In     IN  (TOP(S(PP*   -   -   -   Speaker#1   *        *   (ARG*   -
bc/cctv/00/cctv_0000   0   1  1999     CD       (NP*)   -   -   -   Speaker#1   (DATE)   *      *)   -

#bc/x 0 0 0 0 0 0 0 0 0 0 0
bc/cctv/00/cctv_0000   0   0     #     UH  (TOP(S(PP*   -   -   -   Speaker#1   *   -

#end document
"""


def test_sentences_of_conll_2012_have_as_many_columns_as_predicates(tmp_path: Path) -> None:
    file = tmp_path / "a"
    assert read(file, ONTONOTES, source=3, target=4) == [("In 1999", "IN CD"), ("#", "UH")]
    for keys in ({}, {"source": 3}, {"target": 4}):
        with pytest.raises(
            DataError, match="is CoNLL-2012's: set source to 3 for its words, and target to 4 for parts"
        ):
            read(file, ONTONOTES, **keys)
    with pytest.raises(DataError, match="line 3: has 13 columns, but the first word has 14"):
        read(file, ONTONOTES.replace("*)   -\n", "-\n"), source=3, target=4)
    with pytest.raises(DataError, match="line 6: has 12 columns, and column 12 is asked for, counted from 0"):
        read(file, ONTONOTES, source=3, target=12)


KAGGLE = (
    "Sentence #,Word,POS,Tag\n"
    "Sentence: 1,Thousands,NNS,O\n,of,IN,O\n,London,NNP,B-geo\n"
    'Sentence: 2,",",",",O\n,"5 ""x""",CD,O\n'
)


def test_rows_of_words_with_a_column_of_sentences_are_sentences(tmp_path: Path) -> None:
    """A table of Kaggle was read as a text for each word."""
    file = tmp_path / "ner.csv"
    expected = [("Thousands of London", "O O B-geo"), (', 5 "x"', "O O")]
    assert read(file, KAGGLE) == expected
    assert said(file, KAGGLE)[0] == "its rows are words, and column 0 says of which sentence"
    assert read(file, KAGGLE, target=2)[0] == ("Thousands of London", "NNS IN NNP")
    ids = "sentence_id;words;labels\n1;a;O\n1;b;B-X\n2;c;O\n2;;O\n"
    with pytest.raises(DataError, match="line 5: its column 1 is empty"):
        read(file, ids)
    assert read(file, ids.removesuffix("2;;O\n")) == [("a b", "O B-X"), ("c", "O")]
    with pytest.raises(DataError, match="line 3: has 3 columns, but the first word has 4"):
        read(file, KAGGLE.replace(",of,IN,O", ",of,IN"))
    with pytest.raises(DataError, match="line 2: not a row of CSV: "):
        read(file, KAGGLE.replace("Sentence: 1,", '"Sentence: 1'))
    with collect_remarks() as remarks:
        file.write_text(KAGGLE)
        keys = {"format": "csv", "path": str(file), "source": "Word", "target": "Tag"}
        assert len(list(read_pairs(CorpusConfig.model_validate(keys)))) == 5
    rows = "its rows are words, and column 0 says of which sentence"
    assert list(remarks) == [f'{file}: {rows}: format = "conll" reads sentences']


def test_cells_in_quotation_marks_are_those_that_pandas_writes(tmp_path: Path) -> None:
    file = tmp_path / "a"
    assert read(file, 'Er\tO\n"""ja"""\tO\n\n""""\tO\n') == [('Er "ja"', "O O"), ('"', "O")]
    assert said(file, '""""\tO\n')[0] == "quotation marks around cells are removed, as in CSV"
    assert read(file, '"word"\t"tag"\n"a"\t"O"\n') == [("a", "O")]
    for raw in ('"\tO\n""""\tO\n', '""\tO\na\tO\n', '"ja"\tO\na\tO\n'):
        assert read(file, raw)[0][0].split()[0] == raw.partition("\t")[0]


def test_a_tab_behind_the_last_column_is_none(tmp_path: Path) -> None:
    """In a file of GermEval one line ends in a tab, for which its comments were taken for words."""
    text = GERMEVAL.replace("3\tKiel\tB-LOC\tO\n", "3\tKiel\tB-LOC\tO\t\n") * 2
    assert read(tmp_path / "a", text, source=1, target=2) == [("Gleich in Kiel", "O O B-LOC")] * 2


def test_tags_in_another_column_than_the_last_are_named(tmp_path: Path) -> None:
    """GermEval has names within names in its last column, which is nearly empty."""
    columns = "a {} O\nb {} O\n"
    reads = "its labels are those of column 2; column 1 has tags of entities too: target = 1 reads those"
    for text, is_named in (
        (columns.format("B-PER", "I-PER"), True),
        ("a B-PER B-PER\nb O O\n", True),
        ("a B-PER +\nb O -\n", True),
        ("a B-NP B-PER\nb I-NP I-PER\n", False),
        ("a NN O\nb VB O\n", False),
    ):
        assert (reads in said(tmp_path / "a", text)) == is_named
    with collect_remarks() as found:
        read(tmp_path / "a", columns.format("B-PER", "I-PER"), target=1)
    assert not any("too" in each for each in found)


def test_sentences_of_words_with_their_labels_are_named(tmp_path: Path) -> None:
    spacy, brown = "When|WRB|O Thrun|NNP|B-PER started|VBD|O\n" * 2, "The/at County/nn-tl said/vbd\n"
    for text in (spacy, brown, "a_DT b_NN c_VB\n"):
        with pytest.raises(DataError, match=r"its lines are sentences of words with their labels .*: write a word and"):
            read(tmp_path / "a", text)
    assert read(tmp_path / "a", "1/2 NN B-X\nb/c NN O\n") == [("1/2 b/c", "B-X O")]


def test_sentences_with_their_tags_behind_a_tab_are_named(tmp_path: Path) -> None:
    """Each was one word, and all of them one sentence."""
    text = "BOS to boston EOS\tO O B-city flight\nBOS hi EOS\tO O greeting\n"
    with pytest.raises(DataError, match='its lines are sentences with their tags: set format = "tsv", source = 0'):
        read(tmp_path / "a", text)
    assert read(tmp_path / "a", "New York\tB-LOC\nis\tO\n") == [("New York is", "B-LOC O")]


def test_a_tab_behind_every_word_is_no_column(tmp_path: Path) -> None:
    assert read(tmp_path / "a.txt", "EU\tB-ORG\t\nsays\tO\t\n\nx\tO\n") == [("EU says", "B-ORG O"), ("x", "O")]


def conll_2009(*arguments: str) -> str:
    cells = ("1 Ann ann ann NNP NNP _ _ 2 2 SBJ SBJ _ _", "2 sees see see VBZ VBZ _ _ 0 0 ROOT ROOT Y see.01")
    return "".join("\t".join([*line.split(), *arguments]) + "\n" for line in cells) + "\n"


def test_sentences_of_conll_2009_have_as_many_columns_as_predicates(tmp_path: Path) -> None:
    file, text = tmp_path / "a.conll", conll_2009("A0") + conll_2009("A0", "_") + conll_2009()
    assert read(file, text, source=1, target=4) == [("Ann sees", "NNP VBZ")] * 3
    with pytest.raises(DataError, match="is CoNLL-2009's: set source to 1 for its words, and target to 4"):
        read(file, text)
    with pytest.raises(DataError, match="line 2: has 14 columns, but the first word has 15"):
        read(file, text.replace("see.01\tA0", "see.01", 1), source=1, target=4)


def test_conll_2012_without_the_lines_around_documents(tmp_path: Path) -> None:
    lines = [line for line in ONTONOTES.splitlines() if not line.startswith("#begin")]
    assert read(tmp_path / "a.conll", "\n".join(lines), source=3, target=4) == [("In 1999", "IN CD"), ("#", "UH")]


@pytest.mark.parametrize("mark", ["-DOCSTART-", "-DOCSTART- -X- O O", "-DOCSTART-(1 EU) -X- O O", "-DOCSTART- (1 EU)"])
def test_the_start_of_a_document_is_no_word(mark: str, tmp_path: Path) -> None:
    text = f"{mark}\n\nEU NNP I-NP I-ORG\n\n{mark}\n\nsays VBZ I-VP O\n"
    assert read(tmp_path / "a.conll", text) == [("EU", "I-ORG"), ("says", "O")]


def test_words_with_a_language_before_them_and_sentences_without_end_are_remarked(tmp_path: Path) -> None:
    """As the first files of WikiANN (PAN-X), and files whose sentences are not separated."""
    cases = {
        "美0\tB-LOC\n国1\tI-LOC\n\n好0\tO\n。12\tO\n": "each of its words is a character and a number, such",
        "美0\tB-LOC\n国1\tI-LOC\n\n好0\tO\nA1\tO\nok\tO\n": "",
        "en:New\tB-LOC\nen:York\tI-LOC\n\nen:is\tO\nen:big\tO\n": "each of its words begins with 'en:', which is read",
        "a\tO\nb\tO\n" * 501: "its 1,002 words are one sentence: put a blank line between sentences",
        "en:New\tB-LOC\nen:York\tI-LOC\n\nat\tO\nen:big\tO\n": "",
        "a\tO\nb\tO\n" * 501 + "\nc\tO\n": "",
        "re:\tO\nre:a\tO\nre:b\tO\nre:c\tO\n": "",
    }
    for text, said in cases.items():
        with collect_remarks() as found:
            read(tmp_path / "a.conll", text)
        remarks = " ".join(map(str, found))
        assert said in remarks
        assert said or not any(each in remarks for each in ("begins with", "a number", "are one sentence"))
