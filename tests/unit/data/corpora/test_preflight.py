import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.preflight import check_and_count_splits
from tfm.data.corpora.splits import resolve_splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError


@pytest.fixture
def corpus(tmp_path):
    def corpus(source, target, name="a"):
        for ending, content in (("en", source), ("de", target)):
            (tmp_path / f"{name}.{ending}").write_bytes(content)
        return CorpusConfig(source=str(tmp_path / f"{name}.en"), target=str(tmp_path / f"{name}.de"))

    return corpus


def check(train, valid=None, test=None):
    return check_and_count_splits(
        resolve_splits(DataConfig(train=train, valid=valid or train, tests={"test": test or train}))
    )


def test_pairs_are_counted(corpus):
    assert check(corpus(b"a\nb\n", b"c\nd")) == {"train": 2, "valid": 2, "test": 2}


def test_random_portions_are_not_counted(corpus):
    lines = b"".join(b"line %d\n" % i for i in range(100))
    splits = resolve_splits(DataConfig(train=corpus(lines, lines)))
    assert check_and_count_splits(splits) == {"train": None, "valid": None, "test": None}


def test_other_formats_are_counted_where_that_is_cheap(tmp_path, corpus):
    (tmp_path / "a.tsv").write_text("source\ttarget\na\tb\n", encoding="utf-8")
    tsv = CorpusConfig(format="tsv", path=str(tmp_path / "a.tsv"))
    generated = CorpusConfig(format="generated", path="copy", split="test", size=3)
    assert check(corpus(b"a\n", b"b\n"), tsv, generated) == {"train": 1, "valid": None, "test": 3}


def test_texts_alone_and_parts_of_corpora_are_counted(tmp_path, corpus):
    alone = corpus(b"", b"a\nb\n\nc\n").model_copy(update={"source": None})
    part = alone.model_copy(update={"size": 2})
    rest = alone.model_copy(update={"skip": 3, "size": 2})
    assert check(alone, part, rest) == {"train": 4, "valid": 2, "test": 1}
    with pytest.raises(DataError, match=r"the test split is empty: \S*a\.de from pair 5 on has no pair"):
        check(alone, test=alone.model_copy(update={"skip": 4}))


def test_lines_that_are_not_read_must_be_aligned_too(corpus):
    with pytest.raises(DataError, match=r"a\.en: has 3 lines, but \S*a\.de has 2"):
        check(corpus(b"a\nb\nc\n", b"a\nb\n").model_copy(update={"size": 1}))


def test_differing_line_counts_are_both_named(corpus):
    with pytest.raises(DataError, match=r"a\.en: has 3 lines, but \S*a\.de has 2"):
        check(corpus(b"a\nb\nc\n", b"a\nb\n"))


@pytest.mark.parametrize(("source", "target"), [(b"a\nb\n\n \n", b"a\nb\n"), (b"a\n", b"a\n\n")])
def test_blank_lines_too_many_are_named(corpus, source, target):
    """As editors leave them at the end of a file."""
    longer = "en" if len(source) > len(target) else "de"
    for skip in (0, 1):
        with pytest.raises(DataError, match=rf"other; the lines at the end of \S*a\.{longer} are blank: remove them"):
            check(corpus(source, target).model_copy(update={"skip": skip}))


def test_a_line_separator_is_no_line_end(corpus):
    text = "a\u2028b\x0cc\x85d\n".encode()
    assert check(corpus(text, b"x\n"))["train"] == 1


def test_invalid_utf8_is_named_in_any_split(corpus):
    good = corpus(b"a\n", b"a\n")
    bad = corpus(b"a\nb\n", b"a\nb\xff\n", name="b")
    with pytest.raises(DataError, match=r"b\.de, line 2, byte 2: not UTF-8"):
        check(good, test=bad)


def test_a_missing_file_is_named(corpus, tmp_path):
    good = corpus(b"a\n", b"a\n")
    with pytest.raises(DataError, match=r"c\.en: no such file"):
        check(good, valid=CorpusConfig(source=str(tmp_path / "c.en"), target=good.target))


def test_an_empty_split_is_an_error(corpus):
    good, empty = corpus(b"a\n", b"a\n"), corpus(b"", b"", name="e")
    with pytest.raises(DataError, match="the valid split is empty"):
        check(good, valid=empty)


def test_a_random_split_that_comes_out_empty_is_an_error(corpus):
    with pytest.raises(DataError, match=r"the \w+ split is empty: random \d+% of .*a\.en"):
        check_and_count_splits(resolve_splits(DataConfig(train=corpus(b"a\n", b"a\n"))))


def test_a_missing_column_is_an_error(tmp_path, corpus):
    (tmp_path / "a.jsonl").write_text('{"en": "a"}\n', encoding="utf-8")
    with pytest.raises(DataError, match="there is no 'source'; it has en"):
        check(corpus(b"a\n", b"a\n"), test=CorpusConfig(format="jsonl", path=str(tmp_path / "a.jsonl")))
