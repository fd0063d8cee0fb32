"""Which columns of a table are read, by what is in them, wherever they stand."""

from itertools import permutations

import pytest

from tfm.data.corpora.paths.column_choice import choose_column_indices

NUM_ROWS = 8
KINDS = {
    "one value": lambda n: "ted",
    "recording": lambda n: f"clips/{n}.mp3",
    "picture": lambda n: f"{n}.jpg#{n}",
    "file": lambda n: f"doc_{n}.html",
    "address": lambda n: f"https://a.org/{n}",
    "date": lambda n: f"2019-10-1{n}",
    "split": lambda n: "dev" if n % 4 == 3 else "train",
}
TEXTS = [lambda n: f"The dog saw {n} cats .", lambda n: f"Der Hund sah {n} Katzen ."]


@pytest.mark.parametrize("num_texts", [1, 2])
@pytest.mark.parametrize("kinds", [(kind,) for kind in KINDS] + [*permutations(KINDS, 2)])
def test_what_is_no_text_is_neither_side_beside_texts(kinds: tuple[str, ...], num_texts: int) -> None:
    """Files and splits were a side in tables of two columns, and none in those of three."""
    writers = [*TEXTS[:num_texts], *(KINDS[kind] for kind in kinds)]
    for order in permutations(range(len(writers))):
        rows = [[writers[index](number) for index in order] for number in range(NUM_ROWS)]
        places = sorted(order.index(index) for index in range(num_texts))
        assert choose_column_indices(rows, len(writers)) == tuple(places), rows[0]
