"""Laws of bucketing: every example exactly once an epoch, within the budget, and nothing but (lengths, seed, epoch)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from data.buckets import batches, copies, ordered_batches, padding

BUDGET = 60
sizes = st.integers(0, 300)


def lengths(size: int) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.int64, size, elements=st.integers(1, BUDGET))


corpora = sizes.flatmap(lambda size: st.tuples(lengths(size), lengths(size)))
draws = st.integers(0, 2**31)


@given(corpora, st.integers(BUDGET, 300), draws, draws)
def test_every_example_comes_exactly_once_an_epoch(corpus, budget, seed, epoch):
    rows = [row for batch in batches(*corpus, budget=budget, seed=seed, epoch=epoch) for row in batch.tolist()]
    assert sorted(rows) == list(range(len(corpus[0])))


@given(corpora, st.integers(BUDGET, 300), draws)
def test_no_batch_exceeds_the_budget_or_is_empty(corpus, budget, seed):
    source, target = corpus
    for rows in batches(source, target, budget=budget, seed=seed, epoch=0):
        assert len(rows) > 0
        assert len(rows) * max(source[rows].max(), target[rows].max()) <= budget


@given(corpora, draws, draws)
def test_an_epoch_is_a_pure_function_of_lengths_seed_and_epoch(corpus, seed, epoch):
    one = batches(*corpus, budget=BUDGET, seed=seed, epoch=epoch)
    np.random.default_rng(0).random()
    other = batches(*(side.copy() for side in corpus), budget=BUDGET, seed=seed, epoch=epoch)
    assert [rows.tolist() for rows in one] == [rows.tolist() for rows in other]


@given(corpora, st.integers(1, 100))
def test_ordered_batches_hold_every_row_once_and_only_single_rows_exceed_the_budget(corpus, budget):
    source, target = corpus
    found = ordered_batches(source, target, budget=budget)
    assert sorted(row for rows in found for row in rows.tolist()) == list(range(len(source)))
    assert all(len(rows) == 1 or len(rows) * max(source[rows].max(), target[rows].max()) <= budget for rows in found)


@given(st.lists(st.sampled_from([0.25, 1.0, 1.5, 3.0]), max_size=200), draws, draws)
def test_weights_give_whole_copies_and_a_share_of_the_rest(weights, seed, epoch):
    rows = copies(np.array(weights), seed=seed, epoch=epoch)
    times = np.bincount(rows, minlength=len(weights))
    for weight in set(weights):
        same = times[np.array(weights) == weight]
        assert set(same) <= {int(weight), int(weight) + 1}
        assert same.sum() - int(weight) * len(same) == round((weight - int(weight)) * len(same))


@given(corpora, draws)
def test_padding_is_what_counting_by_hand_gives(corpus, seed):
    source, target = corpus
    found = batches(source, target, budget=BUDGET, seed=seed, epoch=0)
    padded = sum(side[rows].max() for rows in found for side in corpus for _ in rows)
    assert padding(found, source, target) == pytest.approx(1 - (source.sum() + target.sum()) / padded if padded else 0)
