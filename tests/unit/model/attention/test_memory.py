"""The memory: sentences are selected, and new ones take the places of others, without touching those that stay."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tfm.model.attention.memory import Memory
from tfm.model.layout import Layout
from tfm.model.masks import padding_mask

LAYERS, G, K, V = 2, 3, 4, 5


def memory(lengths: list[int], seed: int) -> Memory:
    """Of sentences of these lengths; no two numbers in it are the same."""
    layout, draw = Layout.from_lengths(torch.tensor(lengths)), torch.Generator().manual_seed(seed)
    keys_values = tuple(
        (
            torch.randn(layout.batch, G, layout.width, K, generator=draw),
            torch.randn(layout.batch, G, layout.width, V, generator=draw),
        )
        for _ in range(LAYERS)
    )
    return Memory(keys_values, padding_mask(layout))


def rows_of(given: Memory, sentence: int) -> list[Tensor]:
    """The real keys and values of one sentence, in all layers: copies."""
    allowed = given.mask.allowed
    both = [each[sentence] for pair in given.keys_values for each in pair]
    return [(each if allowed is None else each[:, allowed[sentence, 0, 0]]).clone() for each in both]


def assert_same(found: list[Tensor], expected: list[Tensor]) -> None:
    assert len(found) == len(expected) == 2 * LAYERS
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.equal(ours, theirs)


@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=5),
    changes=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), max_size=4),
    seed=st.integers(0, 99),
)
@settings(max_examples=80, deadline=None)
def test_new_sentences_take_the_places_of_others(lengths: list[int], changes: list[list[int]], seed: int) -> None:
    state = memory(lengths, seed)
    expected = [rows_of(state, sentence) for sentence in range(len(lengths))]
    draw = torch.Generator().manual_seed(seed)
    for number, new_lengths in enumerate(changes):
        places = torch.randperm(len(lengths), generator=draw)[: len(new_lengths)]
        other = memory(new_lengths[: len(places)], 1000 + 100 * number + seed)
        before = [rows_of(other, sentence) for sentence in range(len(places))]
        state = state.replace(places, other)
        for new, place in enumerate(places.tolist()):
            expected[place] = before[new]
            assert_same(rows_of(other, new), before[new])
        assert state.batch_size == len(lengths)
        for sentence, rows in enumerate(expected):
            assert_same(rows_of(state, sentence), rows)
        longest = max(rows[0].shape[1] for rows in expected)
        assert {each.shape[2] for pair in state.keys_values for each in pair} == {longest}
        assert state.mask.allowed is not None
        assert state.mask.allowed.shape == (len(lengths), 1, 1, longest)


def test_keys_that_are_the_values_may_be_replaced() -> None:
    """So they are in a recurrent decoder, unless its score projects the keys."""
    (rows, _), *_ = memory([3, 2], 1).keys_values
    (new, _), *_ = memory([3], 2).keys_values
    state = Memory(((rows, rows),)).replace(torch.tensor([1]), Memory(((new, new),)))
    ((keys, values),) = state.keys_values
    assert torch.equal(keys[1], new[0])
    assert torch.equal(values[1], new[0])


def test_sentences_are_selected_in_any_order() -> None:
    for lengths in ([4, 1, 3], [4, 4, 4]):
        state = memory(lengths, 1)
        selected = state.select(torch.tensor([2, 0]))
        assert selected.batch_size == 2
        for sentence, origin in enumerate([2, 0]):
            assert_same(rows_of(selected, sentence), rows_of(state, origin))
        (keys, _), *_ = selected.keys_values
        keys.zero_()
        assert state.keys_values[0][0].all(), "a copy"


def test_the_first_sentences() -> None:
    for lengths in ([4, 3, 1], [4, 4, 4]):
        state = memory(lengths, 1)
        for count in (1, 2, 3):
            first = state.first_sentences(count)
            assert first.batch_size == count
            for sentence in range(count):
                assert_same(rows_of(first, sentence), rows_of(state, sentence))


def test_an_empty_memory_stays_empty() -> None:
    empty, places = Memory(), torch.tensor([1])
    for each in (empty, empty.select(places), empty.replace(places, Memory())):
        assert each.batch_size == 0
        assert each.keys_values == ()
        assert each.mask.allowed is None
