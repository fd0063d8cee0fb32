"""How the models of claims are trained: side by side, and each by one thread."""

import threading
from typing import Any
from unittest.mock import Mock

import pytest

from bench.claims import runs


def test_results_are_by_point_whatever_ends_first() -> None:
    later = threading.Event()

    def function(name: str, number: int) -> str:
        if number == 1:
            later.wait(0.05)  # of another core; where there is none, in vain
        later.set()
        return f"{name}{number}"

    points = [("a", 1), ("a", 2), ("b", 3)]
    assert runs.map_runs(function, points) == {("a", 1): "a1", ("a", 2): "a2", ("b", 3): "b3"}


def test_a_failure_is_no_result() -> None:
    def function(number: int) -> int:
        raise ValueError(number)

    with pytest.raises(ValueError, match="1"):
        runs.map_runs(function, [(1,), (2,)])


def test_a_run_has_one_thread_and_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def run_tfm(*words: Any, **options: Any) -> Mock:
        seen.append((words, options))
        return Mock(seconds=1.0)

    monkeypatch.setattr(runs, "run_tfm", run_tfm)
    folder = runs.run_recipe("recipes/claims/data.toml", "wide-1", "seed=1")
    ((words, options),) = seen
    assert folder.name == "claim-data-wide-1"
    assert {"seed=1", "name=claim-data-wide-1"} <= {*words}
    assert options["variables"] == {"OMP_NUM_THREADS": "1"}
