"""Cases of which the quick suite runs a few: `make test-slow` runs the others. See the mark `few` too."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import pytest

NUM_THIRDS = 3
T = TypeVar("T")


def mostly_slow(cases: Iterable[Any], *quick: Any) -> list[Any]:
    """The cases for `pytest.mark.parametrize`, all but `quick` marked slow."""
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]


def third(cases: Mapping[str, T], number: int) -> dict[str, T]:
    """Every third of the cases, from the one with this number on."""
    return dict(list(cases.items())[number::NUM_THIRDS])


thirds = pytest.mark.parametrize(
    "number", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, NUM_THIRDS))]
)
"""For a test of many cases in one: the quick suite runs its first third."""
