"""CoNLL-U files give the words of each sentence, and one of their columns."""

from pathlib import Path

import pytest

from tfm.data.corpora.preflight import check_and_count_splits
from tfm.data.corpora.sources import read_pairs, with_lists_of
from tfm.data.corpora.splits import Splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train


def word(number: str, form: str, lemma: str = "_", upos: str = "X", xpos: str = "_", deprel: str = "dep") -> str:
    return "\t".join((number, form, lemma, upos, xpos, "_", "0", deprel, "_", "_"))


SENTENCES = [
    "# sent_id = 1",
    "# text = vámonos al mar",
    word("1-2", "vámonos"),
    word("1", "vamos", "ir", "VERB", "V", "root"),
    word("2", "nos", "nosotros", "PRON", "P", "obj"),
    word("2.1", "null", "null", "ADV", "A", "advmod"),
    word("3", "mar", "mar", "NOUN", "N", "obl"),
    "",
    "",
    word("1", "5", "5", "NUM", "CD", "root"),
]
VALUES = {
    "form": ["vamos nos mar", "5"],
    "lemma": ["ir nosotros mar", "5"],
    "upos": ["VERB PRON NOUN", "NUM"],
    "xpos": ["V P N", "CD"],
    "deprel": ["root obj obl", "root"],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path, SENTENCES)


def write(folder: Path, lines: list[str]) -> Path:
    (folder / "a.conllu").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return folder / "a.conllu"


def read(file: Path, **config: str | None) -> list[tuple[str, str]]:
    return list(read_pairs(CorpusConfig.model_validate({"format": "conllu", "path": str(file), **config})))


def test_words_and_their_parts_of_speech(file: Path) -> None:
    assert read(file) == list(zip(VALUES["form"], VALUES["upos"], strict=True))


@pytest.mark.parametrize("column", VALUES)
def test_any_column_may_be_the_target(file: Path, column: str) -> None:
    assert [target for _, target in read(file, target=column)] == VALUES[column]


def test_without_a_source_there_are_texts(file: Path) -> None:
    assert read(file, source=None, target="form") == [("", text) for text in VALUES["form"]]


def test_every_source_word_has_a_target_word(file: Path) -> None:
    for source, target in read(file):
        assert len(source.split()) == len(target.split())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (word("1", "a", upos="X Y"), r"line 2: its target is 'X Y': a word must not"),
        (word("1", "\u00a0"), r"line 2: its source is '\\xa0'"),
        (word("1", ""), r"line 2: its source is ''"),
        (word("1", "a", upos=""), r"line 2: its target is ''"),
        ("1\ta\ta", r"line 2: has 3 columns; CoNLL-U has 10"),
        ("1 a a X _ _ 0 dep _ _", r"line 2: has 1 column"),
        (word("a", "b"), r"line 2: a is not a word number"),
        (word("1-", "b"), r"line 2: 1- is not a word number"),
    ],
)
def test_what_is_no_word_is_an_error_that_names_the_line(tmp_path: Path, line: str, message: str) -> None:
    file = write(tmp_path, ["# text", line, ""])
    with pytest.raises(DataError, match=rf"a\.conllu, {message}"):
        read(file)


def test_a_space_in_a_column_that_is_not_read_does_not_matter(tmp_path: Path) -> None:
    file = write(tmp_path, [word("1", "a", lemma="a b")])
    assert read(file) == [("a", "X")]


def test_a_word_with_a_space_is_the_word_as_it_is_and_keeps_its_tag(tmp_path: Path) -> None:
    spaces = ("5 000", "5\u00a0000", "chủ\u2009tịch", "a  b c")
    file = write(tmp_path, [*(word(str(number), form, lemma=form) for number, form in enumerate(spaces, 1)), ""])
    words = "5 000 5 000 chủ tịch a b c"
    assert read(file) == [(words, "X X X X")]
    assert read(file, target="lemma") == [(words, words)]
    corpus = with_lists_of(CorpusConfig(format="conllu", path=str(file)), "tags")
    ((tagged, tags),) = read_pairs(corpus)
    assert tagged == "5␣000 5␣000 chủ␣tịch a␣b␣c"
    assert tags == "X X X X"
    tokenizer = train([words], TokenizerConfig(kind="char", min_frequency=1))
    whole, apart = tokenizer.encode_words([tagged])[0], tokenizer.encode_words([words])[0]
    assert len(whole) == 4
    assert [each for one in whole for each in one] == [each for one in apart for each in one] == tokenizer.encode(words)


def test_preflight_reads_it_through(tmp_path: Path, file: Path) -> None:
    corpus = CorpusConfig(format="conllu", path=str(file))
    assert check_and_count_splits(Splits((corpus,), (corpus,), {})) == {"train": None, "valid": None}
    file.write_bytes(file.read_bytes() + b"1\t\xff")
    with pytest.raises(DataError, match=r"line 11, byte 3: not UTF-8"):
        check_and_count_splits(Splits((corpus,), (corpus,), {}))


@pytest.mark.parametrize("column", ["upos", "xpos", "deprel"])
def test_what_says_that_there_is_none_is_no_label(tmp_path: Path, column: str) -> None:
    lines = [word("1", "_", "_", "PUNCT", "P", "root"), word("2", "x", **{"upos": "X", "xpos": "X", column: "_"})]
    file = write(tmp_path, lines)
    with pytest.raises(DataError, match=f"its {column} is _, which says that the word has none") as problem:
        read(file, source="form", target=column)
    assert "name a target column that every word has" in str(problem.value)
    assert read(file, source=column, target="form")[0][1] == "_ x", "a word may be an underscore, and a source anything"


def test_a_treebank_without_its_text_is_refused(tmp_path: Path) -> None:
    lines = [word("1", "_", upos="X"), word("2", "_"), "", word("1", "_"), ""]
    with pytest.raises(DataError, match="its words are all _, as in treebanks without their text: merge the text into"):
        read(write(tmp_path, lines))
    assert read(write(tmp_path, [*lines, word("1", "a"), ""])) == [("_ _", "X X"), ("_", "X"), ("a", "X")]


def test_a_treebank_without_lemmas_has_none_to_learn(tmp_path: Path) -> None:
    words = [word(str(number), form, lemma="_") for number, form in enumerate("abc", 1)]
    with pytest.raises(DataError, match="its lemmas are all _, which says that words have none: name another target"):
        read(write(tmp_path, words), target="lemma")
    assert read(write(tmp_path, words)) == [("a b c", "X X X")]
    assert read(write(tmp_path, [*words, word("4", "d", lemma="e")]), target="lemma") == [("a b c d", "_ _ _ e")]


def test_conllu_plus_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.conllup").write_text("# global.columns = ID FORM UPOS NER\n1\ta\tX\tB-PER\n\n")
    corpus = CorpusConfig(format="conllu", path=str(tmp_path / "a.conllup"))
    with pytest.raises(
        DataError, match=r"is CoNLL-U Plus, with the columns ID FORM UPOS NER, counted from 0: set form"
    ):
        list(read_pairs(corpus))
    ten = "# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC\n1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "a.conllup").write_text(ten)
    assert list(read_pairs(corpus)) == [("a", "X")]


def test_a_sentence_whose_words_are_numbered_anew_is_two(tmp_path: Path) -> None:
    """Without a blank line two sentences were one, without a word."""
    file, text = tmp_path / "a.conllu", word("1", "a") + "\n" + word("2", "b") + "\n"
    keys = {"format": "conllu", "path": str(file), "source": "form", "target": "upos"}
    file.write_text(text + text)
    with pytest.raises(DataError, match="line 3: its word has the number 1 behind 2: a blank line separates sentences"):
        list(read_pairs(CorpusConfig.model_validate(keys)))
    file.write_text(text + " \t\n" + text)  # blank to the eye
    assert list(read_pairs(CorpusConfig.model_validate(keys))) == [("a b", "X X")] * 2
    file.write_text(word("1", "a") + "\n" + word("3", "b"))  # one was taken out
    assert list(read_pairs(CorpusConfig.model_validate(keys))) == [("a b", "X X")]
