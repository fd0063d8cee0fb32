"""A corpus of sentences with typing errors, and the sentences as they are spelled: English ones of the grammar."""

from collections.abc import Iterator

from tfm.data.synthetic import grammar
from tfm.data.typing_errors import add_typos

TYPO_RATE = 0.06
"""Share of the characters that are add_typos."""


def generate(split: str, size: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield pairs of a sentence with typing errors and the sentence without, of a split that the grammar has too.

    Args:
        split: one of SPLITS of the grammar.
        size: the number of pairs.
        seed: of the draws.
    """
    for english, _ in grammar.generate(split, size, seed):
        yield add_typos(english, TYPO_RATE, seed), english
