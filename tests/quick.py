"""Cases of a parameter of which the quick suite runs a few: `make test-slow` runs the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def mostly_slow(cases: Iterable[Any], *quick: Any) -> list[Any]:
    """The cases for `pytest.mark.parametrize`, all but `quick` marked slow."""
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]
