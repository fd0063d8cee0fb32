import json

import datasets
import numpy as np
import pytest

from tfm.data.dataset.metadata import write_metadata
from tfm.data.dataset.split import TokenIdColumn
from tfm.data.dataset.store import load_dataset, load_split, write_split
from tfm.data.errors import DataError


def flat(lists):
    column = TokenIdColumn.from_lists(lists)
    return column.values, column.lengths


BATCHES = [([[4, 5], []], [[6], [7, 8]]), ([], []), ([[9], [10, 11, 12]], [[], [13]])]
SOURCES = [ids for source, _ in BATCHES for ids in source]
TARGETS = [ids for _, target in BATCHES for ids in target]


@pytest.fixture
def train(tmp_path):
    with write_split(tmp_path / "train", texts=False) as writer:
        for source, target in BATCHES:
            writer.write(flat(source), flat(target), np.full(len(source), 0.5))
    return tmp_path / "train"


@pytest.fixture
def valid(tmp_path):
    with write_split(tmp_path / "valid", texts=True) as writer:
        writer.write(flat([[4], [5, 6]]), flat([[7], []]), ["a\u2028b", "ß"], ["c", ""])
    return tmp_path / "valid"


def test_what_was_written_is_read(train):
    split = load_split(train)
    assert len(split) == 4
    assert split.source.to_lists() == SOURCES
    assert split.target.to_lists() == TARGETS
    assert split.source_lengths.tolist() == [2, 0, 1, 3]
    assert split.target_lengths.tolist() == [1, 2, 0, 1]
    assert split.weights.tolist() == [0.5] * 4


def test_token_columns_are_views_of_the_mapped_file(train):
    split = load_split(train)
    assert not split.source.values.flags.owndata
    assert np.shares_memory(split.source.values, split.target.values)
    assert np.shares_memory(split.source[3], split.source.values)


def test_take_gathers_across_record_batches(train):
    ids, lengths = load_split(train).source.take(np.array([3, 1, 0, 3]))
    assert ids.tolist() == [10, 11, 12, 4, 5, 10, 11, 12]
    assert lengths.tolist() == [3, 0, 2, 3]


def test_datasets_opens_a_split(train, valid):
    opened = datasets.load_from_disk(str(train))
    assert opened["source"][:] == SOURCES
    assert opened["target"][:] == TARGETS
    assert opened["weight"][:] == [0.5] * 4
    assert datasets.load_from_disk(str(valid))[0] == {
        "source": [4], "target": [7], "source_text": "a\u2028b", "target_text": "c",
    }  # fmt: skip


def test_texts_are_kept_where_asked_for(train, valid):
    split = load_split(valid)
    assert split.texts() == (["a\u2028b", "ß"], ["c", ""])
    assert split.weights.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="keeps no texts"):
        load_split(train).texts()


def test_the_fingerprint_tells_contents_apart(tmp_path):
    prints = []
    for i, token in enumerate((4, 5, 4)):
        with write_split(tmp_path / str(i), texts=False) as writer:
            writer.write(flat([[token]]), flat([[6]]), np.ones(1))
        prints.append(json.loads((tmp_path / str(i) / "state.json").read_text())["_fingerprint"])
    assert prints[0] == prints[2] != prints[1]


def test_a_dataset_has_its_tests_in_order(tmp_path, train, valid):
    for name in ("zebra", "apple"):
        (tmp_path / name).symlink_to(valid)
    write_metadata(tmp_path, tests=["zebra", "apple"], batch_tokens=512, train_corpora=[{"rows": 4, "weight": 0.5}])
    found = load_dataset(tmp_path)
    assert list(found.tests) == ["zebra", "apple"]
    assert found.batch_tokens == 512
    assert (len(found.train), len(found.valid)) == (4, 2)
    assert found.tokenizer_folder == tmp_path / "tokenizer"


def test_corpora_take_their_turns(tmp_path, train, valid):
    corpora = [{"rows": 1, "weight": 0.5}, {"rows": 3, "weight": 0.5, "epochs": [2, 2]}]
    write_metadata(tmp_path, tests=[], batch_tokens=512, train_corpora=corpora)
    found = load_dataset(tmp_path).train
    assert [found.weights_in_epoch(epoch).tolist() for epoch in range(3)] == [[0.5, 0, 0, 0], [0.5] * 4, [0.5, 0, 0, 0]]
    write_metadata(tmp_path, tests=[], batch_tokens=512, train_corpora=[{"rows": 4, "weight": 0.5}])
    assert load_dataset(tmp_path).train.weights_in_epoch(0).tolist() == [0.5] * 4
    corpora[0]["rows"] = 2
    write_metadata(tmp_path, tests=[], batch_tokens=512, train_corpora=corpora)
    with pytest.raises(DataError, match=r"dataset\.json: has no valid `train_corpora`"):
        load_dataset(tmp_path)


def test_what_is_no_dataset_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"not a dataset .*tfm preprocess"):
        load_dataset(tmp_path)
    with pytest.raises(DataError, match="no such split"):
        load_split(tmp_path / "train")


def test_a_column_in_memory_holds_its_lists():
    column = TokenIdColumn.from_lists([[1, 2], [], [3]])
    assert column.to_lists() == [[1, 2], [], [3]]
    assert column.to_lists([2, 0]) == [[3], [1, 2]]
    assert TokenIdColumn.from_lists([]).to_lists() == []


def test_pieces_of_words_are_kept_where_asked_for(tmp_path, train):
    with write_split(tmp_path / "tagged", texts=False, words=True) as writer:
        for source, target in BATCHES:
            sizes = [[len(ids)] if ids else [] for ids in source]
            writer.write(flat(source), flat(target), np.ones(len(source)), words=flat(sizes))
    split = load_split(tmp_path / "tagged", texts=False)
    assert split.words is not None
    assert split.words.to_lists() == [[2], [], [1], [3]]
    assert load_split(train).words is None
    assert datasets.load_from_disk(str(tmp_path / "tagged"))["words"][:] == split.words.to_lists()


@pytest.mark.parametrize("sizes", [[[1], []], [[2], [1]], [[2, 0], []], [[3, -1], []], [[], [2]], [[], []]])
def test_words_that_are_not_all_pieces_of_their_row_are_refused(tmp_path, sizes):
    with write_split(tmp_path / "bad", texts=False, words=True) as writer:
        writer.write(flat([[4, 5], []]), flat([[6], [7]]), np.ones(2), words=flat(sizes))
    with pytest.raises(DataError, match="words without pieces"):
        load_split(tmp_path / "bad")
