"""Holm's correction against a published example, and against the definition that it abbreviates."""

import random
from itertools import combinations

import pytest

from tfm.pipeline.significance.holm import format_p_value, holm_correction


def test_equals_a_table_worked_by_hand() -> None:
    """Four hypotheses with p 0.01, 0.04, 0.03, 0.005: the step-down compares 0.05/4, /3, /2, /1; two are rejected."""
    corrected = holm_correction([0.01, 0.04, 0.03, 0.005])
    assert corrected == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [p < 0.05 for p in corrected] == [True, False, False, True]


def test_equals_closed_testing_with_bonferroni() -> None:
    """A hypothesis is rejected where every intersection with others is, each by Bonferroni (Marcus et al. 1976)."""
    draw = random.Random(3)
    for size in (1, 2, 3, 5):
        for _ in range(30):
            p_values = [round(draw.random() ** 3, draw.choice([1, 4])) for _ in range(size)]
            closed = [
                max(
                    min(1.0, len(subset) * min(p_values[place] for place in subset))
                    for count in range(1, size + 1)
                    for subset in combinations(range(size), count)
                    if tested in subset
                )
                for tested in range(size)
            ]
            assert holm_correction(p_values) == pytest.approx(closed)


def test_of_nothing_and_of_one() -> None:
    assert holm_correction([]) == []
    assert holm_correction([0.2]) == [0.2]
    assert holm_correction([0.9, 0.9]) == [1.0, 1.0]


def test_no_p_value_is_shown_as_0() -> None:
    assert [format_p_value(p) for p in (1.0, 0.04996, 9.999e-05, 4.9e-05, 1e-300)] == [
        *("1.0000", "0.0500", "0.0001", "<0.0001", "<0.0001")
    ]
