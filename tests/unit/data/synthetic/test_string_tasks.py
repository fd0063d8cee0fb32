"""The toy corpora do what their names say, purely, over disjoint splits."""

from itertools import islice

import pytest

from tfm.data.errors import DataError
from tfm.data.synthetic.string_tasks import MAX_LENGTH, MIN_LENGTH, STRING_TASKS


@pytest.mark.parametrize(
    ("name", "answer"),
    [("copy", list), ("reverse", lambda symbols: list(reversed(symbols))), ("sort", sorted)],
)
def test_the_target_is_the_source_copied_reversed_or_sorted(name: str, answer) -> None:  # type: ignore[no-untyped-def]
    for source, target in STRING_TASKS[name]("train", 200, 1):
        assert target.split(" ") == answer(source.split(" "))
        assert MIN_LENGTH <= len(source.split(" ")) <= MAX_LENGTH


def test_toys_are_pure_and_a_longer_run_begins_alike() -> None:
    once = list(STRING_TASKS["sort"]("train", 200, 1))
    assert list(islice(STRING_TASKS["sort"]("train", 5000, 1), 200)) == once
    assert list(STRING_TASKS["sort"]("train", 200, 2)) != once


def test_splits_share_no_string_and_repeat_none() -> None:
    sources = {split: [s for s, _ in STRING_TASKS["copy"](split, 3000, 1)] for split in ("train", "valid", "test")}
    together = [source for split in sources.values() for source in split]
    assert len(set(together)) == len(together) == 9000


def test_refuses_a_split_it_does_not_have() -> None:
    with pytest.raises(DataError, match="no split 'combinations'; choose one of train, valid, test"):
        next(STRING_TASKS["copy"]("combinations", 1, 1))
