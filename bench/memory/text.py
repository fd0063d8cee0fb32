"""Text with as many different words as real text, for `python -m bench memory`: `python -m bench.memory.text < JSON`.

The ranks of words are drawn by a law of Zipf and Mandelbrot without an end, so that the longer the text, the more
different words it has: 30,000 of 10^6 words. The built-in grammar has few, which would make too little of what grows.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from tfm.data.arrays import Ints

EXPONENT, OFFSET = 0.6, 20
MEAN_WORDS, MAX_WORDS = 10, 30
SYLLABLES = [consonant + vowel for consonant in "bdfghjklmnprstvwz" for vowel in "aeiou"]
NUM_LABELS, NUM_TAGS = 4, 16
CHUNK_LINES = 10_000
NUM_VALID_LINES = 200
FILES = ("source", "target", "labelled", "tags", "prompts")


def draw_lines(rng: np.random.Generator, count: int) -> list[Ints]:
    """Draw the ranks of the words of each line, beginning with 0, the most frequent one."""
    lengths = np.clip(rng.poisson(MEAN_WORDS, count), 1, MAX_WORDS)
    ranks = OFFSET * (rng.random(lengths.sum()) ** (-1 / EXPONENT) - 1)
    return np.split(ranks.astype(np.int64), np.cumsum(lengths)[:-1])


def make_word(rank: int) -> str:
    """The word of a rank: its digits as syllables."""
    syllables: list[str] = []
    while rank or not syllables:
        rank, digit = divmod(rank, len(SYLLABLES))
        syllables.append(SYLLABLES[digit])
    return "".join(syllables)


def rows_of(lines: list[Ints]) -> Iterator[tuple[str, ...]]:
    """Yield for each line what each of the files has of it."""
    for ranks in lines:
        words = [make_word(rank) for rank in ranks.tolist()]
        source, target = " ".join(words), " ".join(word[::-1] for word in words)
        tags = " ".join(f"T{rank % NUM_TAGS}" for rank in ranks)
        yield source, target, f"L{ranks[0] % NUM_LABELS} {source}", tags, words[0]


def write_text(folder: Path, split: str, count: int, seed: int) -> None:
    """Write a split's lines in each form that a task reads."""
    rng = np.random.default_rng(seed)
    with ExitStack() as stack:
        files = [stack.enter_context((folder / f"{split}.{name}").open("w", encoding="utf-8")) for name in FILES]
        for begin in range(0, count, CHUNK_LINES):
            for row in rows_of(draw_lines(rng, min(CHUNK_LINES, count - begin))):
                for file, text in zip(files, row, strict=True):
                    file.write(f"{text}\n")


if __name__ == "__main__":
    request = json.load(sys.stdin)
    write_text(Path(request["folder"]), "train", request["lines"], 1)
    write_text(Path(request["folder"]), "valid", NUM_VALID_LINES, 2)
