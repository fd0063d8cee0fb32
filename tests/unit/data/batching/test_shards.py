import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.batching.buckets import split_by_budget
from tfm.data.batching.shards import FixedSizeBatches, ShardedBatches, Shards


@given(st.integers(1, 3_000), st.integers(1, 1_000))
def test_every_row_is_in_one_shard(num_rows: int, shard_rows: int) -> None:
    shards = Shards(num_rows, shard_rows)
    parts = [shards.rows(number) for number in range(len(shards))]
    assert sorted(np.concatenate(parts).tolist()) == list(range(num_rows))
    assert [shards.size(number) for number in range(len(shards))] == [len(part) for part in parts]
    assert max(map(len, parts)) < shard_rows + shards.block_rows
    of_rows = shards.shard_of_each_row(0, num_rows)
    assert all((of_rows[part] == number).all() for number, part in enumerate(parts))


def test_each_shard_is_of_all_of_the_data():
    shards = Shards(1_000_000, 100_000)
    assert len(shards) == 10
    for number in range(10):
        tenths = np.bincount(shards.rows(number) // 100_000, minlength=10)
        assert tenths.min() > 8_000
        assert tenths.max() < 12_000


def test_epochs_have_the_shards_in_other_orders():
    shards = Shards(50, 1)
    orders = [shards.draw_shard_order(3, epoch) for epoch in range(4)]
    assert orders[0] == shards.draw_shard_order(3, 0)
    assert all(sorted(each) == list(range(50)) for each in orders)
    assert all(one != other for one, other in itertools.combinations([*orders, shards.draw_shard_order(4, 0)], 2))


def test_one_shard_is_in_memory_at_a_time():
    made: list[int] = []

    def make(place: int) -> list[np.ndarray]:
        made.append(place)
        return [np.array([10 * place + each]) for each in range(place)]

    batches = ShardedBatches([0, 1, 2, 3], make)
    assert len(batches) == 6
    assert not made
    assert [int(batch[0]) for batch in batches] == [10, 20, 21, 30, 31, 32]
    assert made == [1, 2, 3]
    assert [int(batch[0]) for batch in batches[2:4]] == [21, 30]
    assert made == [1, 2, 3, 2, 3]
    with pytest.raises(IndexError, match="no batch 6 of 6"):
        batches[6]


@given(st.integers(0, 100), st.integers(1, 30))
def test_equal_batches_are_those_of_rows_of_one_length(num_rows: int, size: int) -> None:
    rows = np.arange(num_rows)
    found = split_by_budget(rows, np.full(num_rows, 7), 7 * size, first_share=1.0)
    assert [each.tolist() for each in FixedSizeBatches(rows, size)] == [each.tolist() for each in found]
