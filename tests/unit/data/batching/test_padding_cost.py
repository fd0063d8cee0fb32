import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.batching import padding_cost
from tfm.data.batching.buckets import make_batches, padding_share, split_by_budget
from tfm.data.batching.padding_cost import BatchingCost, LengthPairCounts, batching_cost, make_batch_counter

lengths = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=60)


def counted(pairs: np.ndarray, weights: np.ndarray) -> LengthPairCounts:
    found = LengthPairCounts()
    for begin in range(0, len(pairs), 9):
        for weight in set(weights):
            rows = np.arange(begin, min(begin + 9, len(pairs)))
            rows = rows[weights[rows] == weight]
            found.add(pairs[rows, 0], pairs[rows, 1], float(weight))
    return found


@pytest.mark.parametrize("block", [3, 1 << 18])
@given(lengths, st.integers(20, 90), st.integers(0, 9), st.sampled_from([1.0, 2.0]))
def test_it_is_what_the_batches_come_to(
    block: int, pairs: list[tuple[int, int]], budget: int, seed: int, weight: float
) -> None:
    rows, weights = np.array(pairs), np.where(np.arange(len(pairs)) % 3, 1.0, weight)
    epoch = make_batches(rows[:, 0], rows[:, 1], budget=budget, seed=seed, epoch=2, weights=weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(padding_cost, "PAIRS_PER_BLOCK", block)
        found = batching_cost(counted(rows, weights), budget=budget, seed=seed, epoch=2)
    assert found.batches == len(epoch)
    assert found.rows == sum(map(len, epoch))
    assert found.padding == pytest.approx(padding_share(epoch, rows[:, 0], rows[:, 1]))


def test_a_broken_weight_repeats_its_share_of_the_rows() -> None:
    rows = np.random.default_rng(0).integers(1, 9, (100, 2))
    found = batching_cost(counted(rows, np.full(100, 1.3)), budget=50, seed=1, epoch=0)
    assert found.rows == 130
    assert batching_cost(counted(rows, np.full(100, 0.25)), budget=50, seed=1, epoch=0).rows == 25


def test_an_epoch_of_nothing_costs_nothing() -> None:
    assert batching_cost(LengthPairCounts(), budget=50, seed=1, epoch=0) == BatchingCost(0, 0, 0.0)


@given(
    lengths,
    st.integers(20, 90),
    st.integers(0, 9),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.25]), min_size=1, max_size=3) | st.none(),
)
def test_epochs_are_counted_without_making_them(
    pairs: list[tuple[int, int]], budget: int, seed: int, some: list[float] | None
) -> None:
    rows = np.array(pairs)
    weights = None if some is None else np.resize(np.array(some), len(rows))
    size = make_batch_counter(rows.max(1), budget=budget, seed=seed, epoch_weights=lambda epoch: weights)
    for epoch in range(4):
        made = make_batches(rows[:, 0], rows[:, 1], budget=budget, seed=seed, epoch=epoch, weights=weights)
        assert size(epoch) == len(made)


@given(st.lists(st.integers(1, 60), max_size=80), st.integers(1, 60), st.integers(1, 60))
def test_pieces_are_counted_as_they_are_cut_whatever_the_first_may_hold(
    larger: list[int], budget: int, first: int
) -> None:
    ascending, share = np.array(sorted(larger), np.int64), min(first, budget)
    made = split_by_budget(ascending, ascending, budget, first_share=share / budget)
    found = padding_cost.num_batches_of_histogram(np.bincount(ascending), budget, max(int(share / budget * budget), 1))
    assert found == len(made)
