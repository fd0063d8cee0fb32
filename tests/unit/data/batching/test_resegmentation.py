"""Texts with other pieces at each update: a pure function of (seed, step, row), within the limits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.batching.resegmentation import Resegmenter, split_within_budget
from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train

TEXTS = ["lower newest widest", "der Hund", "low", "", "newest newest lower low", "שלום widest"] * 2
TOKENIZER = train(TEXTS, TokenizerConfig(vocab_size=90, min_frequency=1))
SPLIT = Split(
    *(TokenIdColumn.from_flat(*TOKENIZER.encode_flat(each)) for each in (TEXTS, TEXTS[::-1])), np.ones(len(TEXTS))
)
BOTH = Resegmenter(*[TOKENIZER.sampler(bpe_dropout=0.5)] * 2, seed=3, max_tokens=99, budget=10**6)


def pieces(how: Resegmenter, rows: list[int], step: int) -> list[tuple[list[int], list[int]]]:
    return [
        pair
        for part, _ in how.iterate_resegmented_parts(SPLIT, np.array(rows), step)
        for pair in zip(*map(TokenIdColumn.to_lists, part_of(part)), strict=True)
    ]


def part_of(part: Split) -> tuple[TokenIdColumn, TokenIdColumn]:
    return part.source, part.target


def test_a_row_depends_on_seed_step_and_row_alone() -> None:
    rows = [4, 0, 11, 3, 5]
    together = pieces(BOTH, rows, 7)
    assert [pieces(BOTH, [row], 7)[0] for row in rows] == together == pieces(BOTH, rows, 7)
    assert pieces(BOTH, rows, 8) != together
    assert pieces(replace(BOTH, seed=4), rows, 7) != together
    assert together[0][0] != together[2][1]  # the same text on either side is drawn twice
    texts = [tuple(TOKENIZER.decode_batch(pair)) for pair in together]
    assert texts == [(TOKENIZER.normalize(TEXTS[row]), TOKENIZER.normalize(TEXTS[::-1][row])) for row in rows]


def test_a_side_without_a_sampler_and_a_text_that_would_be_too_long_keep_their_pieces() -> None:
    rows = list(range(len(TEXTS)))
    plain = list(zip(SPLIT.source.to_lists(), SPLIT.target.to_lists(), strict=True))
    assert pieces(replace(BOTH, target=None), rows, 1) != plain
    assert [target for _, target in pieces(replace(BOTH, target=None), rows, 1)] == SPLIT.target.to_lists()
    free, all_kept = pieces(BOTH, rows, 1), []
    for longest in range(int(SPLIT.source_lengths.max()) + 1, max(len(after) for pair in free for after in pair) + 1):
        limited, kept = pieces(replace(BOTH, max_tokens=longest), rows, 1), 0
        for pair, of_free, of_limited in zip(plain, free, limited, strict=True):
            for before, after, found in zip(pair, of_free, of_limited, strict=True):
                assert found == (before if len(after) + 1 > longest else after)
                kept += len(after) + 1 > longest
        all_kept.append(kept)
    assert 0 < all_kept[-1] < all_kept[0] < 2 * len(rows)


def test_a_text_that_is_on_both_sides_of_a_row_is_drawn_twice() -> None:
    same = Split(SPLIT.source, SPLIT.source, np.ones(len(TEXTS)))
    ((part, _),) = BOTH.iterate_resegmented_parts(same, np.arange(len(TEXTS)), 7)
    assert part.source.to_lists() != part.target.to_lists()


@pytest.mark.parametrize("budget", [*range(20, 60, 3), 100, 10**6])
def test_parts_hold_each_row_once_and_keep_to_the_budget(budget: int) -> None:
    how, rows = replace(BOTH, max_tokens=20, budget=budget), list(range(len(TEXTS)))
    parts = list(how.iterate_resegmented_parts(SPLIT, np.array(rows), 1))
    assert sorted(np.concatenate([places for _, places in parts]).tolist()) == rows
    for part, _ in parts:
        for lengths in (part.source_lengths, part.target_lengths):
            assert len(part) * (lengths.max() + 1) <= budget
    assert sorted(pieces(how, rows, 1)) == sorted(pieces(replace(BOTH, max_tokens=20), rows, 1))
    assert (len(parts) == 1) == (budget == 10**6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 300))
def test_parts_are_as_few_as_about_equal_numbers_allow(lengths: list[int], budget: int) -> None:
    larger = np.array(lengths, np.int64)
    found = split_within_budget(larger, budget)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(lengths)))
    for part in found:
        assert len(part) <= 1 or len(part) * larger[part].max() <= budget
    assert max(map(len, found)) - min(map(len, found)) <= 1
