from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.dataset import row_keys as module
from tfm.data.dataset.row_keys import combine_duplicate_keys, text_duplicate_keys
from tfm.tokenizer.special import UNK_ID

rows = st.lists(st.lists(st.integers(2, 6) | st.integers(4000, 300_000), max_size=5), min_size=1, max_size=30)


def keys_of(lists, texts=None):
    flat = np.array([number for row in lists for number in row], np.int32)
    return text_duplicate_keys(texts or [""] * len(lists), flat, np.array([len(row) for row in lists], np.int64))


@given(rows)
def test_keys_are_the_same_just_where_the_ids_are(lists):
    keys = keys_of(lists).tolist()
    assert len(dict(zip(keys, map(tuple, lists), strict=True))) == len(set(keys)) == len(set(map(tuple, lists)))


@given(rows, st.data())
def test_a_key_does_not_depend_on_what_else_is_there(lists, data):
    cut = data.draw(st.integers(1, len(lists)))
    parts = [part for part in (lists[:cut], lists[cut:]) if part]
    assert np.concatenate([keys_of(part) for part in parts]).tolist() == keys_of(lists).tolist()


def test_many_rows_have_as_many_keys_and_every_bit_is_used():
    lists = [[4 + (i >> shift) % 8 for shift in (0, 3, 6, 9, 12)] for i in range(2**15)]
    keys = keys_of(lists)
    assert len(np.unique(keys)) == 2**15
    for bits in (keys % 1024, keys.view(np.uint64) >> np.uint64(54)):
        counts = np.bincount(bits.astype(np.int64), minlength=1024)
        assert counts.sum() == 2**15
        assert counts.max() < 4 * 32


def test_long_rows_are_told_apart(monkeypatch):
    monkeypatch.setattr(module, "POSITION_FACTOR_PERIOD", 4)
    monkeypatch.setattr(module, "_random_factors_of_positions", module._random_factors_of_positions.__wrapped__)
    lists = [[5, 6, 7, 8, 9, 10][:length] for length in range(7)] + [[6, 5, 7, 8, 9, 10]]
    assert all(one != other for one, other in pairwise(sorted(keys_of(lists).tolist())))


def test_unknown_pieces_are_told_by_their_text():
    lists = [[UNK_ID, 5]] * 4 + [[4, 5]] * 2
    keys = keys_of(lists, ["cat a", " cat \u00a0a", "dog a", "CAT a", "b", "c"]).tolist()
    assert keys[0] == keys[1]
    assert keys[4] == keys[5]
    assert len(set(keys)) == 4


def test_the_order_of_a_pair_counts():
    one, other = keys_of([[4], [5]]), keys_of([[5], [4]])
    assert combine_duplicate_keys(one, other)[0] != combine_duplicate_keys(other, one)[0]
    assert combine_duplicate_keys(one, other).tolist() == combine_duplicate_keys(one, other).tolist()
