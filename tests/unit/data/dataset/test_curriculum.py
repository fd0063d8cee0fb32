"""A corpus's rows come up in its epochs and in no other, as often as their weight says."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.batching.buckets import make_batches
from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.data.dataset.curriculum import CorpusEpochs, epoch_weights, read_corpus_epochs
from tfm.data.errors import DataError

FILE = Path("dataset.json")
ranges = st.none() | st.tuples(st.integers(1, 6), st.integers(0, 4)).map(lambda pair: (pair[0], sum(pair)))
corpora = st.lists(st.tuples(st.integers(0, 12), ranges, st.sampled_from([1.0, 2.0, 3.0])), min_size=1, max_size=5)


@given(corpora, st.integers(0, 8))
def test_batches_hold_the_rows_of_the_corpora_that_take_part(
    given: list[tuple[int, tuple[int, int] | None, float]], epoch: int
) -> None:
    turns = [CorpusEpochs(rows, epochs) for rows, epochs, _ in given]
    weights = np.repeat([weight for _, _, weight in given], [rows for rows, _, _ in given])
    lengths = np.arange(len(weights)) % 7 + 1
    found = make_batches(lengths, lengths, budget=20, seed=1, epoch=epoch, weights=epoch_weights(weights, turns, epoch))
    times = np.bincount(np.concatenate([np.empty(0, np.int64), *found]), minlength=len(weights)).tolist()
    expected = []
    for rows, epochs, weight in given:
        there = epochs is None or epochs[0] <= epoch + 1 <= epochs[1]
        expected += [int(weight) if there else 0] * rows
    assert times == expected


@given(st.lists(ranges, min_size=1, max_size=4), st.integers(0, 12))
def test_the_first_epoch_in_which_no_corpus_takes_part_is_known(given: list[tuple[int, int] | None], last: int) -> None:
    corpora = tuple(CorpusConfig(epochs=epochs) for epochs in given)
    turns = [CorpusEpochs(1, epochs) for epochs in given]
    idle = [epoch + 1 for epoch in range(last) if not any(turn.is_active(epoch) for turn in turns)]
    assert DataConfig.model_construct(train=corpora).epoch_without_corpora(last) == (idle[0] if idle else None)


def test_epochs_are_counted_from_one_and_both_ends_take_part() -> None:
    assert [CorpusEpochs(1, (2, 3)).is_active(epoch) for epoch in range(4)] == [False, True, True, False]


def test_where_every_row_comes_up_once_there_are_no_weights() -> None:
    ones = np.ones(3)
    assert epoch_weights(ones, [], 0) is None
    assert epoch_weights(ones, [CorpusEpochs(2, (1, 1)), CorpusEpochs(1)], 0) is None
    found = epoch_weights(ones, [CorpusEpochs(2, (1, 1)), CorpusEpochs(1)], 1)
    assert found is not None
    assert found.tolist() == [0, 0, 1]
    assert ones.tolist() == [1, 1, 1]


def test_turns_are_read_as_they_are_written() -> None:
    written = [{"rows": 3, "weight": 1.0, "epochs": [1, 2]}, {"rows": 0, "weight": 2.0, "epochs": [3, 3]}, {"rows": 4}]
    assert read_corpus_epochs(written, 7, FILE) == (CorpusEpochs(3, (1, 2)), CorpusEpochs(0, (3, 3)), CorpusEpochs(4))


@pytest.mark.parametrize("written", [[], [{"rows": 3}, {"rows": 9}], [{}]])
def test_without_epochs_there_are_no_turns(written: list[dict[str, int]]) -> None:
    assert read_corpus_epochs(written, 5, FILE) == ()


@pytest.mark.parametrize(
    "other",
    [
        {"rows": 2},
        {"rows": "1"},
        {"rows": True},
        {"rows": -1},
        {"rows": 1, "epochs": [1]},
        {"rows": 1, "epochs": [1, "2"]},
        {"rows": 1, "epochs": 3},
        {"rows": 1, "epochs": {"0": 1}},
        {},
    ],
    ids=str,
)
def test_turns_of_other_rows_or_without_sense_are_refused(other: dict[str, object]) -> None:
    assert len(read_corpus_epochs([{"rows": 3, "epochs": [1, 2]}, {"rows": 1}], 4, FILE)) == 2
    with pytest.raises(DataError, match=r"dataset\.json: has no valid `train_corpora`"):
        read_corpus_epochs([{"rows": 3, "epochs": [1, 2]}, other], 4, FILE)
