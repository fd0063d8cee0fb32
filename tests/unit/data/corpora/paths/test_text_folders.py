"""Folders of aligned files as OPUS, fairseq, WMT, Moses and Tatoeba lay them out: found, or named."""

import re
from pathlib import Path
from typing import Any

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.portions import Portion
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpora.splits import Splits, resolve_splits
from tfm.data.errors import DataError


def lay_out(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("x\n", "utf-8")


def found(folder: Path, source: str | None, target: str) -> Splits:
    return resolve_splits(DataConfig(path=str(folder), source=source, target=target))


LAYOUTS: dict[str, tuple[list[str], str, str | None, list[str]]] = {
    "OPUS": (["opus.en-ro-train", "opus.en-ro-dev", "opus.en-ro-test"], "opus.en-ro-train", "opus.en-ro-dev", ["test"]),
    "fairseq": (["train.en-ro", "valid.en-ro", "test.en-ro"], "train.en-ro", "valid.en-ro", ["test"]),
    "fairseq, reversed": (["train.ro-en", "valid.ro-en", "test.ro-en"], "train.ro-en", "valid.ro-en", ["test"]),
    "WMT": (["europarl-v8.ro-en", "newsdev2016", "newstest2016"], "europarl-v8.ro-en", "newsdev2016", ["newstest2016"]),
    "Moses": (["corpus.tc", "newsdev2016.tc", "newstest2016.tc"], "corpus.tc", "newsdev2016.tc", ["newstest2016.tc"]),
    "Moses, alone": (["corpus.tc"], "corpus.tc", None, ["test"]),
    "OPUS, alone": (["Tatoeba.en-ro"], "Tatoeba.en-ro", None, ["test"]),
    "the languages alone": (["en-ro"], "en-ro", None, ["test"]),
    "underscores": (["my_train", "my_dev", "my_test"], "my_train", "my_dev", ["test"]),
}


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_found(name: str, ending: str, tmp_path: Path) -> None:
    names, train, valid, tests = LAYOUTS[name]
    lay_out(tmp_path, *(f"{each}.{side}{ending}" for each in names for side in ("en", "ro")), "README", "LICENSE")
    splits = found(tmp_path, "en", "ro")
    (corpus,) = (each.corpora[0] if isinstance(each, Portion) else each for each in splits.train)
    assert (corpus.source, corpus.target) == tuple(str(tmp_path / f"{train}.{side}{ending}") for side in ("en", "ro"))
    held_out = splits.valid[0]
    assert (None if isinstance(held_out, Portion) else held_out.source) == (
        None if valid is None else str(tmp_path / f"{valid}.en{ending}")
    )
    assert list(splits.tests) == tests
    assert splits.unused == ()


def test_tatoeba_of_the_challenge(tmp_path: Path) -> None:
    lay_out(tmp_path, *(f"{each}.{side}" for each in ("train", "dev", "test") for side in ("src", "trg", "id")))
    assert found(tmp_path, "src", "trg").train[0].source == str(tmp_path / "train.src")
    with pytest.raises(DataError, match=r'train\.src and train\.trg: set data\.source = "src", data\.target = "trg"'):
        found(tmp_path, "en", "ro")


def test_several_corpora_are_named_with_the_keys_that_take_one(tmp_path: Path) -> None:
    lay_out(tmp_path, *(f"{each}.de-en.{side}" for each in ("europarl-v7", "commoncrawl") for side in ("de", "en")))
    pattern = (
        "; it has commoncrawl, europarl-v7: name those for training, "
        r'as data\.train = \[{ source = "(.*)", target = "(.*)" }\]'
    )
    with pytest.raises(DataError, match=pattern) as error:
        found(tmp_path, "en", "de")
    match = re.search(pattern, str(error.value))
    assert match is not None
    assert (match[1], match[2]) == tuple(str(tmp_path / f"commoncrawl.de-en.{side}") for side in ("en", "de"))
    lay_out(tmp_path, "newstest2014.de", "newstest2014.en")
    with pytest.raises(DataError, match=r"no training data: expected train\.en and .*it has commoncrawl, europarl-v7"):
        found(tmp_path, "en", "de")


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        (["dev/eng_Latn.dev", "dev/ron_Latn.dev", "dev/est_Latn.dev"], ("dev/eng_Latn.dev", "dev/ron_Latn.dev")),
        (
            ["newstest-src.eng.txt", "newstest-ref.ron.txt", "README.md"],
            ("newstest-src.eng.txt", "newstest-ref.ron.txt"),
        ),
        (["corpus-en.txt", "corpus-ro.txt", "corpus-rom.txt"], ("corpus-en.txt", "corpus-ro.txt")),
        (["dev.en.txt", "dev.ro.txt", "train.en.txt", "train.ro.txt"], ("train.en.txt", "train.ro.txt")),
        (["text", "utt2spk", "wav.scp", "eng.txt"], None),
    ],
    ids=["FLORES", "NTREX", "endings of texts", "splits", "Kaldi"],
)
def test_files_named_by_their_languages_are_named_with_the_keys(
    names: list[str], pair: tuple[str, str] | None, tmp_path: Path
) -> None:
    (tmp_path / "dev").mkdir()
    lay_out(tmp_path, *names)
    with pytest.raises(DataError, match="this folder has neither") as error:
        found(tmp_path, "en", "ro")
    match = re.search(r'; it has .* data\.train = \[{ source = "(.*)", target = "(.*)" }\]', str(error.value))
    assert (match and match.groups()) == (pair and tuple(str(tmp_path / each) for each in pair))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["corpus.tc.en", "corpus.tc.ro"], 'corpus.tc.en and corpus.tc.ro: set data.source = "en", data.target = "ro"'),
        (["train.eng_Latn", "train.ron_Latn", "x.txt", "x.py"], 'data.source = "eng_Latn", data.target = "ron_Latn"'),
        (["Test.EN", "Test.DE", "Train.EN", "Train.DE"], 'Train.DE: set data.source = "EN", data.target = "DE"'),
        (["opus.en-ro.en.gz", "opus.en-ro.ro.gz"], 'data.source = "en", data.target = "ro"'),
    ],
)
def test_files_with_other_endings_are_named_with_the_keys_that_take_them(
    names: list[str], said: str, tmp_path: Path
) -> None:
    lay_out(tmp_path, *names)
    with pytest.raises(DataError, match=re.escape(said)):
        resolve_splits(DataConfig(path=str(tmp_path), source="en" if "Test.EN" in names else "source"))


def test_names_that_would_be_there_twice_stay(tmp_path: Path) -> None:
    lay_out(tmp_path, *(f"{each}.{side}" for each in ("train", "train.en-ro", "test.en-ro") for side in ("en", "ro")))
    splits: Any = found(tmp_path, "en", "ro")
    assert (
        splits.train[0].corpora[0].source == str(tmp_path / "train.en")
        if isinstance(splits.train[0], Portion)
        else splits.train[0].source == str(tmp_path / "train.en")
    )
    assert splits.unused == ("train.en-ro",)
    assert list(splits.tests) == ["test"]


@pytest.mark.parametrize(
    ("names", "train"),
    [
        (["test_2016_flickr.lc", "train.lc", "val.lc"], "train.lc"),
        (["newstest2013.bpe", "newstest2014.bpe", "train.bpe.32000"], "train.bpe.32000"),
        (["dev2010", "europarl", "commoncrawl"], "commoncrawl"),
    ],
)
def test_the_pair_that_is_advised_for_training_is_no_test_set(names: list[str], train: str, tmp_path: Path) -> None:
    """The first pair by its name was advised: test_2016_flickr, dev2010."""
    lay_out(tmp_path, *(f"{each}.{side}" for each in names for side in ("en", "ro")))
    with pytest.raises(DataError, match=rf'data\.train = \[{{ source = "{re.escape(str(tmp_path / train))}\.en"'):
        found(tmp_path, "en", "ro")


def test_data_that_fairseq_binarized_are_named(tmp_path: Path) -> None:
    lay_out(tmp_path, *(f"train.en-ro.{side}.{end}" for side in ("en", "ro") for end in ("bin", "idx")), "dict.en.txt")
    with pytest.raises(DataError, match="it has what fairseq-preprocess writes: give the texts that it was made from"):
        found(tmp_path, "en", "ro")


@pytest.mark.parametrize(
    ("names", "sides"),
    [
        (("src-train.txt", "tgt-train.txt", "src-val.txt", "tgt-val.txt"), ("src", "tgt")),
        (("en/train.txt", "de/train.txt", "en/test.txt", "de/test.txt"), ("en", "de")),
        (("source_train.txt", "target_train.txt"), ("source", "target")),
    ],
)
def test_sides_elsewhere_in_the_path_are_named(names: tuple[str, ...], sides: tuple[str, str], tmp_path: Path) -> None:
    """As OpenNMT's layout has them, and folders of languages."""
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
    lay_out(tmp_path, *names)
    keys = f'{{ source = "{tmp_path / names[0]}", target = "{tmp_path / names[1]}" }}'
    with pytest.raises(DataError, match=re.escape(f"data.train = [{keys}]")):
        found(tmp_path, *sides)


@pytest.mark.parametrize(
    ("name", "content", "format_"),
    [
        ("eng.train", "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\n\n", "conll"),
        ("train.txt", "EU B-ORG\nsays O\n\n", "conll"),
        ("en_ewt-ud-train.conllu", "1\tA\ta\tDET\t_\t_\t0\troot\t_\t_\n\n", "conllu"),
        ("memory.tmx", '<tmx><tu><tuv xml:lang="en"><seg>A</seg></tuv></tu></tmx>', "tmx"),
    ],
)
def test_the_file_for_training_is_named_with_what_reads_it(
    name: str, content: str, format_: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=f'for {name} set data.train = {{ format = "{format_}", path'):
        found(tmp_path, "source", "target")


def write_pairs(folder: Path, *names: str) -> None:
    for name in names:
        for side in ("en", "de"):
            (folder / f"{name}.{side}").write_text("".join(f"{name} {side} {number}\n" for number in range(9)))


@pytest.mark.parametrize(
    ("names", "train", "valid", "test"),
    [
        (("training", "development", "test"), "training", "development", "test"),
        (("Train", "Dev", "Test"), "Train", "Dev", "Test"),
        (("TRN", "devel", "test"), "TRN", "devel", "test"),
    ],
)
def test_whatever_sounds_like_training_data_is_trained_on(
    names: tuple[str, ...], train: str, valid: str, test: str, tmp_path: Path
) -> None:
    """`development` was the training data beside `training`, which was left out."""
    write_pairs(tmp_path, *names)
    splits = resolve_splits(DataConfig(path=str(tmp_path), source="en", target="de"))
    assert next(iter(read_pairs(splits.train[0]))) == (f"{train} en 0", f"{train} de 0")
    assert next(iter(read_pairs(splits.valid[0]))) == (f"{valid} en 0", f"{valid} de 0")
    assert list(splits.tests) == [test]


def test_of_several_parts_of_training_data_none_is_chosen(tmp_path: Path) -> None:
    """The only pair that does not sound like a split was trained on beside them."""
    write_pairs(tmp_path, "train.1", "train.2", "extra", "dev")
    with pytest.raises(DataError, match=r"it has dev, extra, train\.1, train\.2: name those for training"):
        resolve_splits(DataConfig(path=str(tmp_path), source="en", target="de"))


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        (("train/seq.in", "train/seq.out", "train/label", "test/seq.in"), ("train/seq.in", "train/seq.out")),
        (("train_labels.txt", "train_text.txt", "val_text.txt"), ("train_text.txt", "train_labels.txt")),
        (("train.a.x", "train.b.x", "train.c.x"), None),
    ],
)
def test_two_files_for_training_that_differ_in_a_word_are_named(
    names: tuple[str, ...], pair: tuple[str, str] | None, tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n")
    with pytest.raises(DataError) as error:
        resolve_splits(DataConfig(path=str(tmp_path), source="source", target="target"))
    if pair is None:
        assert "name those for training" not in str(error.value)
    else:
        source, target = (tmp_path / name for name in pair)
        assert f'data.train = [{{ source = "{source}", target = "{target}" }}]' in str(error.value)


@pytest.mark.parametrize(
    ("tags", "names"),
    [
        (("B-LOC", "O"), ("esp.train", "ned.train", "esp.testa")),
        (("NOUN", "VERB"), ("en/train.txt", "de/train.txt", "en/test.txt")),
    ],
)
def test_words_with_their_labels_in_two_languages_are_no_pair(
    tags: tuple[str, str], names: tuple[str, ...], tmp_path: Path
) -> None:
    """CoNLL-2002 was advised as Spanish sources and Dutch targets."""
    sentence = "".join(f"w{number} {tags[number % 2]}\n" for number in range(8))
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{sentence}\n{sentence}", "utf-8")
    with pytest.raises(DataError) as error:
        resolve_splits(DataConfig(path=str(tmp_path), source="en", target="de"))
    assert "source = " not in str(error.value).partition("data.train = ")[2]


def test_splits_of_texts_alone_are_answered_with_their_ending(tmp_path: Path) -> None:
    """The training file of WikiText alone was advised, so that validation and test texts were cut from it."""
    lay_out(tmp_path, "wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens")
    with pytest.raises(DataError) as error:
        found(tmp_path, None, "target")
    names = "wiki.test.tokens, wiki.train.tokens, wiki.valid.tokens"
    assert str(error.value).endswith(f'; it has {names}: set data.target = "tokens"')
    splits = found(tmp_path, None, "tokens")
    assert [*splits.tests] == ["test"]
    assert (len(splits.train), len(splits.valid)) == (1, 1)
    (tmp_path / "wiki.valid.tokens").unlink()
    (tmp_path / "wiki.test.tokens").unlink()
    with pytest.raises(DataError, match=r'for wiki.train.tokens set data.train = { source = "none", target = '):
        found(tmp_path, None, "target")


def test_a_folder_of_texts_alone_is_answered_with_the_keys_that_read_it(tmp_path: Path) -> None:
    lay_out(tmp_path, "poem 1.txt", "poem 2.txt")
    with pytest.raises(DataError) as error:
        found(tmp_path, None, "target")
    assert 'its text files are one column, `text`: set data.source = "none", data.target = "text")' in str(error.value)
    splits = found(tmp_path, None, "text")
    assert sum(len(list(read_pairs(each))) for each in (*splits.train, *splits.valid, *splits.tests.values())) == 2
