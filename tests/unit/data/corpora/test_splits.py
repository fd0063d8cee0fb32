import gzip

import datasets
import numpy as np
import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.portions import HashRange, Portion, hash_to_unit_interval
from tfm.data.corpora.splits import resolve_splits, split_size_shares, unused_settings_message
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

CORPUS = CorpusConfig(source="a.en", target="a.de")
OTHER = CorpusConfig(source="b.en", target="b.de", weight=2.0)


def touch(folder, *names):
    for name in names:
        text = b"A dog runs.\tEin Hund rennt.\n" if ".tsv" in name else b"x\n"
        (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)


def test_validation_may_be_of_several_corpora_and_one_is_described_as_before() -> None:
    several = DataConfig(train=CORPUS, valid=(CORPUS, OTHER), tests={"test": OTHER})
    assert resolve_splits(several).corpora_by_split()["valid"] == (CORPUS, OTHER)
    assert [*several.corpora_by_name] == ["train.0", "valid.0", "valid.1", "tests.test"]
    assert DataConfig.model_validate_json(several.model_dump_json()) == several
    one, none = DataConfig(train=CORPUS, valid=CORPUS), DataConfig(train=CORPUS)
    assert one == DataConfig(train=CORPUS, valid=(CORPUS,))
    assert one.model_dump(mode="json")["valid"] == CORPUS.model_dump(mode="json")
    assert none.model_dump(mode="json")["valid"] is None
    for each in (one, none):
        assert DataConfig.model_validate_json(each.model_dump_json()) == each


def test_given_splits_are_used():
    splits = resolve_splits(DataConfig(train=(CORPUS, OTHER), valid=OTHER, tests={"z": CORPUS, "a": OTHER}))
    assert splits.train == (CORPUS, OTHER)
    assert splits.valid == (OTHER,)
    assert list(splits.tests) == ["z", "a"]
    assert list(splits.corpora_by_split()) == ["train", "valid", "z", "a"]


def test_missing_splits_are_random_portions_that_cover_all_and_do_not_overlap():
    splits = resolve_splits(DataConfig(train=(CORPUS, OTHER), ratios=(0.7, 0.2, 0.1)))
    edges = [(part.part.low, part.part.high) for part in (*splits.train, *splits.valid, splits.tests["test"])]
    assert np.array(edges) == pytest.approx(np.array([(0, 0.7), (0, 0.7), (0.7, 0.9), (0.9, 1)]))
    assert edges[1][1] == edges[2][0]
    assert edges[2][1] == edges[3][0]
    assert [part.corpora for part in splits.train] == [(CORPUS,), (OTHER,)]
    assert splits.valid[0].corpora == (CORPUS, OTHER)
    assert [part.weight for part in splits.train] == [1.0, 2.0]


def test_only_what_is_missing_is_cut_off():
    no_valid = resolve_splits(DataConfig(train=CORPUS, tests={"test": OTHER}))
    assert no_valid.tests == {"test": OTHER}
    assert (no_valid.valid[0].part.low, no_valid.valid[0].part.high) == (0.9, 1.0)
    assert no_valid.train[0].part.high == 0.9
    no_test = resolve_splits(DataConfig(train=CORPUS, valid=OTHER))
    assert no_test.valid == (OTHER,)
    assert (no_test.tests["test"].part.low, no_test.tests["test"].part.high) == (0.9, 1.0)


def test_draws_are_uniform_seeded_and_the_text_alone_decides():
    drawn = np.array([hash_to_unit_interval(f"sentence {i}", 1) for i in range(4000)])
    counts = np.histogram(drawn, bins=10, range=(0, 1))[0]
    assert counts.sum() == 4000
    assert (np.abs(counts - 400) < 100).all()
    assert hash_to_unit_interval("sentence 0", 1) == drawn[0]
    assert hash_to_unit_interval("sentence 0", 2) != drawn[0]
    assert all(hash_to_unit_interval(f"  sentence\u00a0 \u2003{i}\t", 1) == drawn[i] for i in range(100))
    assert hash_to_unit_interval("e\u0301", 1) == hash_to_unit_interval("é", 1) != hash_to_unit_interval("e", 1)


def test_the_seed_of_the_split_is_its_own():
    config = DataConfig(train=CORPUS, split_seed=7)
    assert isinstance(resolve_splits(config).valid[0], Portion)
    assert resolve_splits(config).valid[0].part.seed == 7


def test_a_folder_of_text_files(tmp_path):
    touch(
        tmp_path,
        *(f"{name}.{side}" for name in ("train", "val", "test_2017", "test", "notes") for side in ("en", "de.gz")),
    )
    splits = resolve_splits(DataConfig(path=str(tmp_path), source="en", target="de"))
    assert splits.train[0].source == str(tmp_path / "train.en")
    assert splits.train[0].target == str(tmp_path / "train.de.gz")
    assert splits.valid[0].source == str(tmp_path / "val.en")
    assert list(splits.tests) == ["test", "test_2017"]


def test_a_folder_with_training_files_only(tmp_path):
    touch(tmp_path, "train.en", "train.de")
    splits = resolve_splits(DataConfig(path=str(tmp_path), source="en", target="de"))
    assert isinstance(splits.valid[0], Portion)
    assert list(splits.tests) == ["test"]


def test_a_folder_of_texts_alone(tmp_path):
    touch(tmp_path, "train.txt", "valid.txt.gz", "test.txt", "train.en", "notes.txt")
    splits = resolve_splits(DataConfig(path=str(tmp_path), source=None, target="txt"))
    assert [(corpus.source, corpus.target) for corpus in (*splits.train, *splits.valid, splits.tests["test"])] == [
        (None, str(tmp_path / f"{name}.txt{gz}")) for name, gz in (("train", ""), ("valid", ".gz"), ("test", ""))
    ]
    with pytest.raises(DataError, match=r"neither train\.de \(or \.gz\) nor a Hugging Face dataset"):
        resolve_splits(DataConfig(path=str(tmp_path), source=None, target="de"))
    touch(tmp_path, "test.de")
    with pytest.raises(DataError, match=r"no training data: expected train\.de \(or \.gz\)"):
        resolve_splits(DataConfig(path=str(tmp_path), source=None, target="de"))


def test_one_ending_for_both_sides_is_one_file_for_both(tmp_path):
    touch(tmp_path, "train.txt", "valid.txt.gz", "test.txt", "notes.txt")
    splits = resolve_splits(DataConfig(path=str(tmp_path), source="txt", target="txt"))
    assert [(corpus.source, corpus.target) for corpus in (*splits.train, *splits.valid, splits.tests["test"])] == [
        (str(tmp_path / name),) * 2 for name in ("train.txt", "valid.txt.gz", "test.txt")
    ]
    assert list(splits.tests) == ["test"]
    assert splits.unused == ()
    touch(tmp_path, "test.de")
    with pytest.raises(DataError, match=r"no training data: expected train\.de"):
        resolve_splits(DataConfig(path=str(tmp_path), source="de", target="de"))


def test_splits_whose_names_begin_with_that_of_the_corpus(tmp_path):
    names = ("ptb.train.txt", "ptb.valid.txt.gz", "ptb.test.txt", "ptb.char.train.txt", "ptb.char.test.txt", "README")
    touch(tmp_path, *names)
    config = DataConfig(path=str(tmp_path), source=None, target="txt")
    splits = resolve_splits(config)
    assert splits.train[0].target == str(tmp_path / "ptb.train.txt")
    assert splits.valid[0].target == str(tmp_path / "ptb.valid.txt.gz")
    assert {name: test.target for name, test in splits.tests.items()} == {"test": str(tmp_path / "ptb.test.txt")}
    assert splits.unused == ("ptb.char.test", "ptb.char.train")
    assert "not used: ptb.char.test, ptb.char.train; " in unused_settings_message(config, splits)
    touch(tmp_path, "wiki.train.txt")  # which of the two is meant, nobody can tell
    with pytest.raises(DataError, match=r"expected train\.txt"):
        resolve_splits(config)
    touch(tmp_path, "train.txt")
    assert resolve_splits(config).train[0].target == str(tmp_path / "train.txt")


def test_pairs_whose_names_begin_with_that_of_the_corpus(tmp_path):
    touch(tmp_path, *(f"news.{split}.{side}" for split in ("train", "dev", "test2016") for side in ("en", "de")))
    splits = resolve_splits(DataConfig(path=str(tmp_path), source="en", target="de"))
    assert splits.train[0].source == str(tmp_path / "news.train.en")
    assert splits.valid[0].target == str(tmp_path / "news.dev.de")
    assert list(splits.tests) == ["test2016"]


def test_a_hugging_face_dataset_of_texts_alone(tmp_path):
    one = datasets.Dataset.from_dict({"text": ["a"]})
    datasets.DatasetDict(train=one, validation=one).save_to_disk(str(tmp_path / "set"))
    splits = resolve_splits(DataConfig(path=str(tmp_path / "set"), source=None, target="text"))
    assert (splits.train[0].corpora[0].source, splits.valid[0].source) == (None, None)


def test_where_there_is_no_source_the_target_decides():
    alone = CORPUS.model_copy(update={"source": None})
    portion = Portion((CORPUS, alone), HashRange(0.0, 0.5, 1))
    texts = [f"sentence {i}" for i in range(200)]
    inside = [text for text in texts if hash_to_unit_interval(text, 1) < 0.5]
    assert 60 < len(inside) < 140
    assert list(portion.select_pairs(CORPUS, [(text, "x") for text in texts])) == [(text, "x") for text in inside]
    assert list(portion.select_pairs(alone, [("", text) for text in texts])) == [("", text) for text in inside]


def test_a_portion_takes_part_when_its_corpus_does():
    corpus = CORPUS.model_copy(update={"epochs": (2, 3)})
    splits = resolve_splits(DataConfig(train=(corpus, OTHER)))
    assert [part.epochs for part in splits.train] == [(2, 3), None]
    assert [part.has_source for part in splits.train] == [True, True]


def test_a_side_that_is_missing_is_an_error(tmp_path):
    touch(tmp_path, "train.en", "train.de", "test.de")
    with pytest.raises(DataError, match=r"test\.de: its other side is missing: expected test\.en"):
        resolve_splits(DataConfig(path=str(tmp_path), source="en", target="de"))


def test_a_folder_without_training_data_is_an_error(tmp_path):
    touch(tmp_path, "test.en", "test.de")
    with pytest.raises(DataError, match=r"no training data: expected train\.en and train\.de"):
        resolve_splits(DataConfig(path=str(tmp_path), source="en", target="de"))


def test_a_folder_with_nothing_we_read_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"neither train\.fr and train\.de .* nor a Hugging Face dataset"):
        resolve_splits(DataConfig(path=str(tmp_path), source="fr", target="de"))


def test_a_hugging_face_dataset_with_its_splits(tmp_path):
    one = datasets.Dataset.from_dict({"en": ["a"], "de": ["b"]})
    datasets.DatasetDict(train=one, validation=one, test=one).save_to_disk(str(tmp_path / "set"))
    splits = resolve_splits(DataConfig(path=str(tmp_path / "set"), source="en", target="de"))
    assert splits.train[0].format == "huggingface"
    assert [splits.train[0].split, splits.valid[0].split, splits.tests["test"].split] == ["train", "validation", "test"]


def test_no_training_data_and_names_that_are_no_folders_are_errors():
    with pytest.raises(DataError, match=r"give data\.path or data\.train"):
        resolve_splits(DataConfig())
    for name in ("train", "tokenizer", "../x", "a/b", ""):
        with pytest.raises(DataError, match="cannot be called"):
            resolve_splits(DataConfig(train=CORPUS, valid=CORPUS, tests={name: CORPUS}))


def test_shares_add_up_to_one():
    assert split_size_shares({"train": 8, "valid": 1, "test": 1}) == {"train": 0.8, "valid": 0.1, "test": 0.1}
    assert split_size_shares({"train": 0}) == {"train": 0.0}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "test",
            "test2016",
            "test-2017",
            "test_2016_flickr",
            "flickr2018.test",
            "test.foo",
            "newstest2014",
            "tst2013",
        ),
        *("IWSLT14.TED.tst2010", "newstest2014-deen", "devtest", "TEST", "tests", "mscoco-test", "test_matched"),
    ],
)
def test_names_of_test_sets_are_found_and_nothing_is_cut_from_training(tmp_path, name):
    touch(tmp_path, *(f"{each}.{side}" for each in ("train", "valid", name) for side in ("en", "de")))
    splits = resolve_splits(DataConfig(path=str(tmp_path), source="en", target="de"))
    assert list(splits.tests) == [name]
    assert splits.train == (CorpusConfig(source=str(tmp_path / "train.en"), target=str(tmp_path / "train.de")),)
    assert splits.unused == ()


@pytest.mark.parametrize(
    "name", ["dev", "val", "validation", "newsdev2016", "dev2010", "valid_1", "validation_matched"]
)
def test_names_of_validation_data_are_found(tmp_path, name):
    touch(tmp_path, *(f"{each}.{side}" for each in ("train", name, "test") for side in ("en", "de")))
    splits = resolve_splits(DataConfig(path=str(tmp_path), source="en", target="de"))
    assert splits.valid[0].source == str(tmp_path / f"{name}.en")
    assert list(splits.tests) == ["test"]


@pytest.mark.parametrize("name", ["contest", "latest", "value", "notes", "protester", "develop", "eval", "train2"])
def test_other_pairs_of_files_are_no_splits_and_are_named(tmp_path, name):
    touch(tmp_path, *(f"{each}.{side}" for each in ("train", name) for side in ("en", "de")))
    config = DataConfig(path=str(tmp_path), source="en", target="de")
    splits = resolve_splits(config)
    assert isinstance(splits.valid[0], Portion)
    assert splits.unused == (name,)
    note = unused_settings_message(config, splits)
    assert f"not used: {name} (validation and test data are cut from the training data); to use them, name" in note


def test_what_looks_like_a_split_and_is_not_used_is_named(tmp_path):
    names = ("train", "valid", "dev", "val", "dev2010", "test", "newstest2014")
    touch(tmp_path, *(f"{each}.{side}" for each in names for side in ("en", "de")), "test2018.en", "train.fr", "x.en")
    config = DataConfig(path=str(tmp_path), source="en", target="de")
    splits = resolve_splits(config)
    assert list(splits.tests) == ["test", "newstest2014"]
    assert splits.unused == (*("dev (valid is)", "dev2010", "val (valid is)", "test2018.en (there is no test2018.de)"),)
    assert "cut from" not in unused_settings_message(config, splits)
    assert unused_settings_message(config, resolve_splits(DataConfig(train=CORPUS))) is None


def test_splits_of_a_hugging_face_dataset_that_are_not_used_are_named(tmp_path):
    one = datasets.Dataset.from_dict({"en": ["a"], "de": ["b"]})
    names = ("train", "validation_matched", "validation_mismatched", "test_matched", "unsupervised")
    datasets.DatasetDict(dict.fromkeys(names, one)).save_to_disk(str(tmp_path / "set"))
    splits = resolve_splits(DataConfig(path=str(tmp_path / "set"), source="en", target="de"))
    assert splits.valid[0].split == "validation_matched"
    assert list(splits.tests) == ["test_matched"]
    assert splits.unused == ("unsupervised", "validation_mismatched")


@pytest.mark.parametrize(
    ("name", "keys", "instead"),
    [
        ("a.txt", {}, 'source = "PATH", target = "OTHER"'),
        ("a.tsv.gz", {}, 'format = "tsv", path = "PATH", source = "A dog runs.", target = "Ein Hund rennt."'),
        ("a.jsonl", {"source": "en", "target": "de"}, 'format = "jsonl", path = "PATH", source = "en", target = "de"'),
        ("a.txt", {"source": None}, 'source = "none", target = "PATH"'),
    ],
)
def test_a_file_in_place_of_a_folder_is_answered_with_what_to_say(tmp_path, name, keys, instead):
    touch(tmp_path, name)
    with pytest.raises(DataError, match=r"is a file, and data\.path is a folder") as error:
        resolve_splits(DataConfig(path=str(tmp_path / name), **keys))
    assert f"set data.train = {{ {instead.replace('PATH', str(tmp_path / name))} }}" in str(error.value)
