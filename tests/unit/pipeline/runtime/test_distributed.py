"""Work that every process of a training does by itself: where it fails in some, all end with one error."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any

import pytest

from tfm.pipeline.errors import DataError, TfmError
from tfm.pipeline.runtime.distributed import World


class Table:
    """A store of the values of processes, which are threads here."""

    def __init__(self, size: int) -> None:
        self.values: list[Any] = [None] * size
        self.barrier = Barrier(size)


@dataclass(frozen=True)
class ThreadWorld(World):
    """A process that is a thread."""

    table: Table | None = None

    def all_gather_object(self, value: Any) -> list[Any]:
        assert self.table is not None
        self.table.values[self.rank] = value
        self.table.barrier.wait(10)
        return list(self.table.values)


def run_on_all(works: list[Callable[[], int]]) -> list[int | Exception]:
    """The value or error of each process."""
    table = Table(len(works))

    def run(rank: int) -> int | Exception:
        try:
            return ThreadWorld(rank, len(works), table=table).run_on_every_rank(works[rank])
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, range(len(works))))


def fail(error: Exception) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


def test_each_has_its_own_value_where_none_fails() -> None:
    assert run_on_all([lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]
    assert World().run_on_every_rank(lambda: 4) == 4


@pytest.mark.parametrize("places", [(0,), (1,), (2,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize(("kind", "code"), [(DataError, 65), (OSError, 74), (ValueError, 1)])
def test_all_have_the_error_of_the_first_that_fails(places: tuple[int, ...], kind: Any, code: int) -> None:
    own = {place: kind(f"is damaged in {place}") for place in places}
    found = run_on_all([fail(own[rank]) if rank in own else lambda: 1 for rank in range(3)])
    assert {str(each) for each in found} == {str(own[places[0]])}
    assert found[places[0]] is own[places[0]]
    assert [each.exit_code for each in found if isinstance(each, TfmError)] == [code] * (3 if kind is DataError else 2)


def test_one_alone_has_its_own_error() -> None:
    with pytest.raises(OSError, match="full"):
        World().run_on_every_rank(fail(OSError("full")))
