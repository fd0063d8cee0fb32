"""Epochs of many rows: shard by shard, and with what epochs of few rows promise."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tfm.data.batching.buckets import make_batches, padding_share
from tfm.data.dataset.curriculum import CorpusEpochs
from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.data.errors import DataError
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.language_model import RunningText
from tfm.pipeline.tasks.translation import Translation

BUDGET = 400


def make_split(num_rows: int, shard_rows: int, *, weights: np.ndarray | None = None, seed: int = 0) -> Split:
    rng = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        lengths = rng.integers(1, 40, num_rows)
        sides.append(TokenIdColumn.from_flat(rng.integers(4, 30, lengths.sum()).astype(np.int32), lengths))
    return Split(*sides, np.ones(num_rows) if weights is None else weights, shard_rows=shard_rows)


TASK = Translation(CrossEntropy(0.0))


def rows_of(batches) -> Counter[int]:
    return Counter(row for rows in batches for row in rows.tolist())


@pytest.mark.parametrize("shard_rows", [1, 7, 300, 500, 999])
@pytest.mark.few(2)
def test_every_row_comes_once_in_every_epoch_and_batches_are_counted_without_making_them(shard_rows):
    epochs = TASK.epochs(make_split(1_000, shard_rows), BUDGET, seed=3)
    orders = []
    for number in range(3):
        made = epochs(number)
        assert epochs.num_batches(number) == len(made) == len(list(made))
        assert rows_of(made) == Counter(range(1_000))
        orders.append([rows.tolist() for rows in made])
    assert orders[0] != orders[1] != orders[2]
    again = TASK.epochs(make_split(1_000, shard_rows), BUDGET, seed=3)
    assert [rows.tolist() for rows in again(2)[:]] == orders[2]
    assert [rows.tolist() for rows in again(2)[5:9]] == orders[2][5:9]


def test_a_dataset_of_fewer_rows_has_the_batches_that_it_always_had():
    split = make_split(1_000, 1_000)
    wanted = make_batches(split.source_lengths + 1, split.target_lengths + 1, budget=BUDGET, seed=3, epoch=1)
    assert [rows.tolist() for rows in TASK.epochs(split, BUDGET, seed=3)(1)] == [rows.tolist() for rows in wanted]


def test_a_batch_keeps_to_the_budget_and_padding_is_that_of_a_whole_epoch_within_a_hundredth():
    rng = np.random.default_rng(0)
    source = np.maximum(rng.gamma(9.0, 1.55, 400_000), 2).round().astype(np.int64)
    target = np.maximum(source + rng.normal(0.3, 2.6, len(source)), 2).round().astype(np.int64)
    sides = [TokenIdColumn(np.empty(0, np.int32), np.zeros_like(each), each) for each in (source, target)]
    split = Split(*sides, np.ones(len(source)), shard_rows=200_000)
    lengths = TASK.lengths(split)
    found = list(TASK.epochs(split, 4096, seed=1)(0))
    assert max(len(rows) * max(side[rows].max() for side in lengths) for rows in found) <= 4096
    whole = make_batches(*lengths, budget=4096, seed=1, epoch=0)
    assert padding_share(found, *lengths) - padding_share(whole, *lengths) <= 0.01
    assert len(found) <= 1.01 * len(whole)


def test_weights_and_curricula_hold_in_every_shard():
    weights = np.repeat([1.0, 2.0, 0.25], [400, 300, 300])
    split = replace(
        make_split(1_000, 130, weights=weights),
        corpus_epochs=(CorpusEpochs(400, (2, 9)), CorpusEpochs(300), CorpusEpochs(300)),
    )
    epochs = TASK.epochs(split, BUDGET, seed=2)
    quarters = 0
    for number in range(8):
        found = rows_of(epochs(number))
        assert epochs.num_batches(number) == len(epochs(number))
        times = np.array([found[row] for row in range(1_000)])
        assert (times[:400] == (number > 0)).all()
        assert (times[400:700] == 2).all()
        assert set(times[700:].tolist()) == {0, 1}
        assert abs(times[700:].sum() - 75) <= 8
        quarters += int(times[700:].sum())
    assert abs(quarters - 600) <= 8
    idle = replace(split, corpus_epochs=(CorpusEpochs(1_000, (2, 9)),))
    with pytest.raises(DataError, match="no example is used in epoch 1"):
        TASK.epochs(idle, BUDGET, seed=2)(0)


def test_figures_of_all_rows_are_those_of_its_parts(monkeypatch):
    whole, parts = make_split(1_000, 10_000), make_split(1_000, 130)
    monkeypatch.setattr("tfm.data.dataset.split.PART_ROWS", 64)
    assert TASK.largest_batch(parts, BUDGET).tolist() == TASK.largest_batch(whole, BUDGET).tolist()
    rows = np.array([5, 1, 900])
    assert TASK.num_tokens(parts, rows) == TASK.num_tokens(whole, rows)
    assert TASK.describe_batch(parts, rows) == TASK.describe_batch(whole, rows)


@pytest.mark.parametrize("shard_rows", [5, 60, 199])
def test_windows_of_a_large_running_text_come_shard_by_shard(shard_rows):
    split = make_split(200, shard_rows)
    task, few = RunningText(16, CrossEntropy(0.0)), RunningText(16, CrossEntropy(0.0))
    whole = few.epochs(make_split(200, 10_000), 64, seed=4)
    epochs = task.epochs(split, 64, seed=4)
    for number in range(3):
        found = epochs(number)
        assert epochs.num_batches(number) == len(found) == len(list(found))
        assert rows_of(found) == rows_of(whole(number))
        assert max(map(len, found)) <= 4
        batch, other = (each.batch(some, found[3]) for each, some in ((task, split), (few, make_split(200, 10_000))))
        assert (batch.tokens_in == other.tokens_in).all()
        assert (batch.tokens_out == other.tokens_out).all()
