"""Laws of bucketing: every example exactly once an epoch, within the budget, and nothing but (lengths, seed, epoch)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tfm.data.batching.buckets import (
    length_sorted_batches,
    make_batches,
    num_extra_copies,
    padding_share,
    repeat_rows_by_weight,
)
from tfm.data.batching.padding_cost import LengthPairCounts, batching_cost

BUDGET = 60
sizes = st.integers(0, 300)


def lengths(size: int) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.int64, size, elements=st.integers(1, BUDGET))


corpora = sizes.flatmap(lambda size: st.tuples(lengths(size), lengths(size)))
draws = st.integers(0, 2**31)


@given(corpora, st.integers(BUDGET, 300), draws, draws)
def test_every_example_comes_exactly_once_an_epoch(corpus, budget, seed, epoch):
    rows = [row for batch in make_batches(*corpus, budget=budget, seed=seed, epoch=epoch) for row in batch.tolist()]
    assert sorted(rows) == list(range(len(corpus[0])))


@given(corpora, st.integers(BUDGET, 300), draws)
def test_no_batch_exceeds_the_budget_or_is_empty(corpus, budget, seed):
    source, target = corpus
    for rows in make_batches(source, target, budget=budget, seed=seed, epoch=0):
        assert len(rows) > 0
        assert len(rows) * max(source[rows].max(), target[rows].max()) <= budget


@given(corpora, draws, draws)
def test_an_epoch_is_a_pure_function_of_lengths_seed_and_epoch(corpus, seed, epoch):
    one = make_batches(*corpus, budget=BUDGET, seed=seed, epoch=epoch)
    np.random.default_rng(0).random()
    other = make_batches(*(side.copy() for side in corpus), budget=BUDGET, seed=seed, epoch=epoch)
    assert [rows.tolist() for rows in one] == [rows.tolist() for rows in other]


@given(corpora, st.integers(1, 100))
def test_ordered_batches_hold_every_row_once_and_only_single_rows_exceed_the_budget(corpus, budget):
    source, target = corpus
    found = length_sorted_batches(source, target, budget=budget)
    assert sorted(row for rows in found for row in rows.tolist()) == list(range(len(source)))
    assert all(len(rows) == 1 or len(rows) * max(source[rows].max(), target[rows].max()) <= budget for rows in found)


@given(st.lists(st.sampled_from([0.25, 1.0, 1.5, 3.0]), max_size=200), draws, draws)
def test_weights_give_whole_copies_and_a_share_of_the_rest(weights, seed, epoch):
    rows = repeat_rows_by_weight(np.array(weights), seed=seed, epoch=epoch)
    times = np.bincount(rows, minlength=len(weights))
    for weight in set(weights):
        same = times[np.array(weights) == weight]
        assert set(same) <= {int(weight), int(weight) + 1}
        more, share = same.sum() - int(weight) * len(same), (weight - int(weight)) * len(same)
        assert more in (np.floor(share), np.ceil(share))


@given(st.floats(0.001, 3.7), st.integers(1, 10_000), draws, st.integers(1, 100_000))
def test_over_many_epochs_rows_come_as_often_as_their_weight_asks(weight, num_rows, seed, epochs):
    """However few the rows and however small the weight: the sum is right to one row, from the first epoch on."""
    at = range(epochs) if epochs < 50 else sorted(np.random.default_rng(seed).integers(0, epochs, 50).tolist())
    drawn = [num_extra_copies(weight, num_rows, seed=seed, epoch=epoch) for epoch in at]
    share = weight % 1 * num_rows
    assert all(max(np.floor(share - 1e-6), 0) <= each <= min(np.ceil(share + 1e-6), num_rows) for each in drawn)
    if epochs < 50:
        assert abs(sum(drawn) - epochs * share) <= 1 + 1e-6


@pytest.mark.few(1)
@pytest.mark.parametrize(("weight", "num_rows"), [(0.001, 400), (0.001, 1), (0.02, 7), (1.37, 3), (3.7, 1), (0.3, 10)])
def test_each_row_comes_as_often_as_another(weight, num_rows):
    """In the mean over 4,000 epochs, which is the weight; of a corpus beside others."""
    weights = np.concatenate([np.full(num_rows, weight), np.full(5, 0.5), np.ones(3)])
    times = sum(
        np.bincount(repeat_rows_by_weight(weights, seed=7, epoch=epoch), minlength=len(weights))
        for epoch in range(4000)
    )
    mean = times / 4000
    assert mean[:num_rows].mean() == pytest.approx(weight, abs=1 / 4000 / num_rows + 1e-9)
    rest = weight % 1
    spread = 6 * np.sqrt(rest * (1 - rest) / 4000) + 2 / 4000
    assert (np.abs(mean[:num_rows] - weight) < spread).all()
    assert (mean[-3:] == 1).all()


@given(st.integers(1, 300), st.floats(0.001, 3.7), draws, st.integers(0, 50))
def test_an_epoch_is_counted_to_cost_what_is_drawn_for_it(num_rows, weight, seed, epoch):
    found = LengthPairCounts()
    found.add(np.full(num_rows, 3), np.full(num_rows, 4), weight)
    rows = repeat_rows_by_weight(np.full(num_rows, weight), seed=seed, epoch=epoch)
    assert batching_cost(found, budget=64, seed=seed, epoch=epoch).rows == len(rows)


@given(corpora, draws)
def test_padding_is_what_counting_by_hand_gives(corpus, seed):
    source, target = corpus
    found = make_batches(source, target, budget=BUDGET, seed=seed, epoch=0)
    padded = sum(side[rows].max() for rows in found for side in corpus for _ in rows)
    assert padding_share(found, source, target) == pytest.approx(
        1 - (source.sum() + target.sum()) / padded if padded else 0
    )
