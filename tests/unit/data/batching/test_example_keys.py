"""Keys of single examples: of a row by its place among its repetitions, of a text by its tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.batching.example_keys import (
    count_earlier_occurrences,
    example_rng_keys,
    rng_keys_to_uniform,
    text_rng_keys,
    token_positions,
    token_rng_keys,
)

TEXTS = st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=8)


def flat(texts: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([token for text in texts for token in text], np.int64), np.array([len(text) for text in texts])


@given(TEXTS)
def test_equal_texts_have_one_key_and_others_others_whatever_is_beside_them(texts: list[list[int]]) -> None:
    found = text_rng_keys(*flat(texts)).tolist()
    assert found == [text_rng_keys(*flat([text])).tolist()[0] for text in texts]
    assert len(set(found)) == len({*map(tuple, texts)})


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=4))
def test_occurrences_are_counted_over_all_batches_of_an_update(rows: list[list[int]]) -> None:
    batches = [np.array(each, np.int64) for each in rows]
    seen: dict[int, int] = {}
    expected = []
    for batch in rows:
        expected.append([])
        for row in batch:
            expected[-1].append(seen.get(row, 0))
            seen[row] = seen.get(row, 0) + 1
    assert [each.tolist() for each in count_earlier_occurrences(batches)][: len(rows)] == expected
    pairs = [
        key
        for batch, again in zip(batches, count_earlier_occurrences(batches), strict=False)
        for key in example_rng_keys(3, batch, again)
    ]
    assert len({*map(int, pairs)}) == len(pairs)


def test_keys_of_rows_follow_from_update_row_and_repetition() -> None:
    rows = np.array([4, 9, 4])
    once, again = example_rng_keys(7, rows, None), example_rng_keys(7, rows, np.array([0, 0, 1]))
    assert once.tolist() == [again[0], again[1], again[0]]
    assert again[2] not in again[:2]
    assert not {*example_rng_keys(8, rows, None).tolist()} & {*once.tolist()}


def test_tokens_have_random_bits_of_their_own_in_every_draw() -> None:
    lengths, keys = np.array([3, 0, 5000]), example_rng_keys(1, np.arange(3), None)
    first, second = (token_rng_keys(keys, lengths, draw) for draw in (0, 1))
    assert token_positions(lengths).tolist() == [0, 1, 2, *range(5000)]
    assert len({*first.tolist(), *second.tolist()}) == 2 * 5003
    assert token_rng_keys(keys[2:], lengths[2:], 1).tolist() == second[3:].tolist()
    numbers = rng_keys_to_uniform(np.concatenate([first, second]))
    assert numbers.mean() == pytest.approx(0.5, abs=0.01)
    assert (numbers.min() >= 0, numbers.max() < 1) == (True, True)
    assert np.histogram(numbers, 10, (0, 1))[0].std() < 60
