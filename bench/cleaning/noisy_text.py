"""A corpus with the five noises of Khayrallah and Koehn (2018), each pair marked with its own."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

Noise = Literal["clean", "misaligned", "wrong language", "untranslated", "short", "misordered"]
NOISES: tuple[Noise, ...] = ("misaligned", "wrong language", "untranslated", "short", "misordered")
MAX_SHORT_WORDS = 5
Pair = tuple[str, str]


def add_noise(
    pairs: Sequence[Pair], third_texts: Sequence[str], share: float, seed: int
) -> tuple[list[Pair], list[Noise]]:
    """Return pairs with noisy ones among them, in a random order, and the kind of each.

    misaligned: the target of another pair. wrong language: in place of source or target, the same text in a third
    language. untranslated: one side on both. short: the first words of both sides, at most five. misordered: the words
    of one side in a random order.

    Args:
        pairs: clean ones.
        third_texts: their texts in a third language.
        share: noisy pairs over clean ones; of each kind there are as many.
        seed: of all draws.
    """
    draw = random.Random(seed)
    marked: list[tuple[Pair, Noise]] = [(pair, "clean") for pair in pairs]
    for kind in NOISES:
        for _ in range(round(share * len(pairs) / len(NOISES))):
            row = draw.randrange(len(pairs))
            marked.append((_add_noise(kind, pairs, third_texts, row, draw), kind))
    draw.shuffle(marked)
    return [pair for pair, _ in marked], [kind for _, kind in marked]


def write_sides(folder: Path, name: str, pairs: Sequence[Pair]) -> None:
    """Write NAME.source and NAME.target, a text a line."""
    for number, side in enumerate(("source", "target")):
        text = "".join(f"{pair[number]}\n" for pair in pairs)
        (folder / f"{name}.{side}").write_text(text, "utf-8", newline="")


def _add_noise(kind: Noise, pairs: Sequence[Pair], third_texts: Sequence[str], row: int, draw: random.Random) -> Pair:
    source, target = pairs[row]
    on_source = draw.random() < 0.5
    if kind == "misaligned":
        return source, pairs[draw.randrange(len(pairs))][1]
    if kind == "wrong language":
        return (third_texts[row], target) if on_source else (source, third_texts[row])
    if kind == "untranslated":
        return (source, source) if on_source else (target, target)
    if kind == "short":
        count = draw.randint(1, MAX_SHORT_WORDS)
        return " ".join(source.split()[:count]), " ".join(target.split()[:count])
    words = (source if on_source else target).split()
    draw.shuffle(words)
    return (" ".join(words), target) if on_source else (source, " ".join(words))
