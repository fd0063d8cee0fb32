from collections import Counter
from collections.abc import Iterator
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.dataset import duplicate_keys
from tfm.data.dataset.duplicate_keys import DuplicateKeyFile

some = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=40)


@pytest.fixture(scope="module", autouse=True)
def _small_shares() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicate_keys, "KEYS_PER_BUCKET", 7)
        yield


def made(parts: list[list[int]]) -> DuplicateKeyFile:
    found = DuplicateKeyFile(BytesIO())
    for part in parts:
        found.add(np.array(part, np.int64))
    return found


@given(st.lists(some, max_size=3))
def test_repeated_are_all_but_the_first_of_each(parts: list[list[int]]) -> None:
    flat = [key for part in parts for key in part]
    assert made(parts).num_duplicates() == sum(times - 1 for times in Counter(flat).values())
    assert len(made(parts)) == len(flat)


@given(some, some)
def test_found_in_counts_each_that_is_there(wanted: list[int], there: list[int]) -> None:
    assert made([wanted]).count_common(made([there])) == sum(key in there for key in wanted)
