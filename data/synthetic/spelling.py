"""A corpus of sentences with typing errors, and the sentences as they are spelled: English ones of the grammar."""

from collections.abc import Iterator

from tfm.data.synthetic import grammar
from tfm.data.typing_errors import add_typos

RATE = 0.06
"""Share of the characters that are add_typos."""


def generate(split: str, size: int, seed: int) -> Iterator[tuple[str, str]]:
    """`size` pairs of `split`, which the grammar has too: a sentence with typing errors, and without."""
    for english, _ in grammar.generate(split, size, seed):
        yield add_typos(english, RATE, seed), english
