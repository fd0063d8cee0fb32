"""What an epoch comes to: its batches and their padding, from nothing but how often each pair of lengths is there."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from data.buckets import cut, cut_and_flip, sort_key

Ints = NDArray[np.int64]
BLOCK = 1 << 18
SHIFT = 32


@dataclass
class Lengths:
    """How often each pair of a source's and a target's length, end tokens counted, is there; by weight."""

    counts: dict[float, Counter[int]] = field(default_factory=dict)

    def add(self, source: Ints, target: Ints, weight: float) -> None:
        """Count some rows."""
        pairs, times = np.unique((source << SHIFT) + target, return_counts=True)
        self.counts.setdefault(weight, Counter()).update(dict(zip(pairs.tolist(), times.tolist(), strict=True)))


@dataclass(frozen=True)
class Cost:
    """Of one epoch: batches, rows, and the share of padded positions that hold no token, over both sides."""

    batches: int
    rows: int
    padding: float


def cost(lengths: Lengths, *, budget: int, seed: int, epoch: int) -> Cost:
    """What `buckets.batches` comes to with these lengths. Which rows a broken weight repeats is another draw."""
    if not lengths.counts:
        return Cost(0, 0, 0.0)
    first, flip = cut_and_flip(seed, epoch)
    source, target, times = _rows_of(lengths, seed, epoch)
    larger = np.maximum(source, target)
    order = np.argsort(sort_key(larger, source - target, flip=flip), kind="stable")
    num_batches = num_rows = real = padded = 0
    waiting = np.empty((2, 0), np.int64)
    share = first
    for block, is_last in _blocks(np.stack([source, target])[:, order], times[order]):
        waiting = np.concatenate([waiting, block], axis=1)
        pieces = cut(np.arange(waiting.shape[1]), waiting.max(0), budget, first=share)
        if not is_last:
            pieces = pieces[:-1]  # the next block may go on with it
        for piece in pieces:
            of_piece, share = waiting[:, piece], 1.0
            num_batches, num_rows = num_batches + 1, num_rows + len(piece)
            real += int(of_piece.sum())
            padded += len(piece) * int(of_piece.max(1).sum())
        waiting = waiting[:, pieces[-1][-1] + 1 :] if pieces else waiting
    return Cost(num_batches, num_rows, 1 - real / padded if padded else 0.0)


def _rows_of(lengths: Lengths, seed: int, epoch: int) -> tuple[Ints, Ints, Ints]:
    """Source lengths, target lengths, and how often an epoch has a row of them."""
    rng = np.random.default_rng([seed, epoch])
    total: Counter[int] = Counter()
    for weight, counts in lengths.counts.items():
        rest, keys = weight - np.floor(weight), list(counts)
        times = np.array([counts[key] for key in keys])
        drawn = rng.multivariate_hypergeometric(times, round(rest * int(times.sum()))) if rest else 0
        total.update(dict(zip(keys, (times * int(weight) + drawn).tolist(), strict=True)))
    pairs = np.array(list(total), np.int64)
    return pairs >> SHIFT, pairs & ((1 << SHIFT) - 1), np.array(list(total.values()), np.int64)


def _blocks(pairs: Ints, times: Ints) -> Iterator[tuple[Ints, bool]]:
    """The pairs (2, n), each as often as it is there, some at a time; and whether these are the last."""
    ends = np.cumsum(times)
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, BLOCK):
        rows = np.arange(begin, min(begin + BLOCK, total))
        yield pairs[:, np.searchsorted(ends, rows, side="right")], begin + BLOCK >= total
