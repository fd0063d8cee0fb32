"""Toy corpora over short strings of symbols: copy, reverse, sort; a model that works learns them in a minute."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b

from tfm.data.errors import DataError

SPLITS = ("train", "valid", "test")
SYMBOLS = "abcdefghijklmnop"
MIN_LENGTH, MAX_LENGTH = 3, 10  # 16**3 strings of the shortest kind: enough for every split to be full


def split_of(source: str) -> str:
    """The one split that may hold `source`, by its hash: train 8, valid 1, test 1 of 10."""
    return ("valid", "test", *("train",) * 8)[blake2b(source.encode(), digest_size=8).digest()[0] % 10]


def _generate_pairs(
    task: Callable[[list[str]], list[str]], split: str, size: int, seed: int
) -> Iterator[tuple[str, str]]:
    """Yield `size` different pairs of `split`, a pure function of the arguments; symbols are separated by spaces."""
    if split not in SPLITS:
        raise DataError(f"the toy corpora have no split {split!r}; choose one of {', '.join(SPLITS)}")
    draw = random.Random(f"{split} {seed}").random
    seen: set[str] = set()
    while len(seen) < size:
        length = MIN_LENGTH + int(draw() * (MAX_LENGTH - MIN_LENGTH + 1))
        symbols = [SYMBOLS[int(draw() * len(SYMBOLS))] for _ in range(length)]
        source = " ".join(symbols)
        if source in seen or split_of(source) != split:
            continue
        seen.add(source)
        yield source, " ".join(task(symbols))


# (split, size, seed) -> pairs
STRING_TASKS: dict[str, Callable[[str, int, int], Iterator[tuple[str, str]]]] = {
    "copy": partial(_generate_pairs, list),
    "reverse": partial(_generate_pairs, lambda symbols: symbols[::-1]),
    "sort": partial(_generate_pairs, sorted),
}
