import numpy as np
import pytest

from tfm.data.batching.buckets import length_sorted_batches, make_batches, padding_share, repeat_rows_by_weight
from tfm.data.errors import DataError


def like_multi30k(num_rows=30_000, seed=0):
    """Lengths with the spread of Multi30k: about 14 tokens a side, the sides correlated."""
    rng = np.random.default_rng(seed)
    source = np.maximum(rng.gamma(9.0, 1.55, num_rows), 2).round().astype(np.int64) + 1
    target = np.maximum(source + rng.normal(0.3, 2.6, num_rows), 2).round().astype(np.int64)
    return source, target


def contents(found):
    return {frozenset(rows.tolist()) for rows in found}


def test_padding_stays_below_six_percent_at_4096_tokens():
    source, target = like_multi30k()
    for epoch in range(3):
        found = make_batches(source, target, budget=4096, seed=1, epoch=epoch)
        assert padding_share(found, source, target) <= 0.06


def test_batches_are_full():
    source, target = like_multi30k()
    found = make_batches(source, target, budget=4096, seed=1, epoch=0)
    assert len(found) <= 1.05 * np.maximum(source, target).sum() / 4096


def test_epochs_and_seeds_have_other_batches_in_another_order():
    source, target = like_multi30k(5_000)
    one = make_batches(source, target, budget=1024, seed=1, epoch=0)
    for other in (
        make_batches(source, target, budget=1024, seed=1, epoch=1),
        make_batches(source, target, budget=1024, seed=2, epoch=0),
    ):
        assert len(contents(one) & contents(other)) <= 0.1 * len(one)
        assert [rows.tolist() for rows in one] != [rows.tolist() for rows in other]


def test_batches_do_not_come_in_order_of_length():
    source, target = like_multi30k(5_000)
    longest = [
        max(source[rows].max(), target[rows].max())
        for rows in make_batches(source, target, budget=512, seed=1, epoch=0)
    ]
    rises = np.diff(np.array(longest)) > 0
    assert 0.3 < rises.mean() < 0.7


def test_ordered_batches_come_in_order_of_length():
    source, target = like_multi30k(500)
    larger = np.maximum(source, target)
    order = np.concatenate(length_sorted_batches(source, target, budget=512))
    assert (np.diff(larger[order]) >= 0).all()


def test_an_example_over_the_budget_is_an_error_that_names_it():
    with pytest.raises(DataError, match=r"row 1 has 17 tokens .* \(16\)"):
        make_batches(np.array([3, 4]), np.array([3, 17]), budget=16, seed=1, epoch=0)


def test_the_drawn_share_of_a_weight_is_new_each_epoch():
    weights = np.full(100, 0.5)
    one, other = (set(repeat_rows_by_weight(weights, seed=1, epoch=epoch).tolist()) for epoch in (0, 1))
    assert len(one) == len(other) == 50
    assert one != other
    assert set(repeat_rows_by_weight(weights, seed=1, epoch=0).tolist()) == one


def test_weighted_rows_come_in_batches_as_often_as_their_weight():
    found = make_batches(
        np.full(4, 3), np.full(4, 3), budget=6, seed=1, epoch=0, weights=np.array([2.0, 1.0, 1.0, 3.0])
    )
    assert np.bincount(np.concatenate(found)).tolist() == [2, 1, 1, 3]


def test_no_rows_give_no_batches():
    nothing = np.empty(0, np.int64)
    assert make_batches(nothing, nothing, budget=16, seed=1, epoch=0) == []
    assert length_sorted_batches(nothing, nothing, budget=16) == []
    assert padding_share([], nothing, nothing) == 0.0
