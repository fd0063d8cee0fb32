"""A running text: all lines of a split end to end, joined in little memory."""

import tracemalloc

import numpy as np
import pytest

from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.pipeline.tasks import language_model
from tfm.pipeline.tasks.language_model import concatenate_targets
from tfm.tokenizer.special import EOS_ID


def split_of(column: TokenIdColumn) -> Split:
    return Split(column, column, weights=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [1, 2, 5, 100])
def test_parts_of_any_size_join_to_all_lines_with_their_ends(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_model, "JOINED_ROWS", rows)
    lines = [[4, 5], [], [], [6], [7, 8, 9], []]
    wanted = [token for line in lines for token in [*line, EOS_ID]]
    text = concatenate_targets(split_of(TokenIdColumn.from_lists(lines)))
    assert text.dtype == np.int32
    assert text.tolist() == wanted


def test_many_lines_are_joined_in_little_more_than_their_own_memory() -> None:
    lengths = np.full(200_000, 10)
    split = split_of(TokenIdColumn.from_flat(np.full(lengths.sum(), 7, np.int32), lengths))
    tracemalloc.start()
    text = concatenate_targets(split)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(text) == 11 * len(lengths)
    assert peak < 2 * text.nbytes
