"""The cost of an epoch: its batches and their padding, computed only from the counts of each pair of lengths."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tfm.data.arrays import Ints
from tfm.data.batching.buckets import (
    draw_bucket_jitter,
    length_sort_keys,
    num_extra_copies,
    repeat_rows_by_weight,
    split_by_budget,
)

PAIRS_PER_BLOCK = 1 << 18
BITS_PER_LENGTH = 32


@dataclass
class LengthPairCounts:
    """The number of rows with each pair of a source's and a target's length, end tokens counted; by weight."""

    counts: dict[float, Counter[int]] = field(default_factory=dict)

    def add(self, source: Ints, target: Ints, weight: float) -> None:
        """Count some rows.

        Args:
            source: (rows,) tokens of the sources.
            target: (rows,) tokens of the targets.
            weight: of all these rows.
        """
        pairs, times = np.unique((source << BITS_PER_LENGTH) + target, return_counts=True)
        self.counts.setdefault(weight, Counter()).update(dict(zip(pairs.tolist(), times.tolist(), strict=True)))


@dataclass(frozen=True)
class BatchingCost:
    """Cost of one epoch.

    Args:
        batches: their number.
        rows: their number.
        padding: the share of positions that are padding, over both sides.
    """

    batches: int
    rows: int
    padding: float


def batching_cost(lengths: LengthPairCounts, *, budget: int, seed: int, epoch: int) -> BatchingCost:
    """Compute the cost of the batches that `buckets.make_batches` makes of these lengths.

    The rows that a broken weight repeats are another draw.

    Args:
        lengths: the numbers of rows by length and weight.
        budget: of a batch, in tokens, padding counted.
        seed: of the draws of a training.
        epoch: counted from 0.
    """
    if not lengths.counts:
        return BatchingCost(0, 0, 0.0)
    first, flip = draw_bucket_jitter(seed, epoch)
    source, target, times = _draw_length_pair_counts(lengths, seed, epoch)
    larger = np.maximum(source, target)
    order = np.argsort(length_sort_keys(larger, source - target, flip=flip), kind="stable")
    num_batches = num_rows = real = padded = 0
    carry = np.empty((2, 0), np.int64)
    share = first
    for block, is_last in _iterate_pair_blocks(np.stack([source, target])[:, order], times[order]):
        carry = np.concatenate([carry, block], axis=1)
        pieces = split_by_budget(np.arange(carry.shape[1]), carry.max(0), budget, first_share=share)
        if not is_last:
            pieces = pieces[:-1]  # the next block may continue it
        for piece in pieces:
            lengths_of_piece, share = carry[:, piece], 1.0
            num_batches, num_rows = num_batches + 1, num_rows + len(piece)
            real += int(lengths_of_piece.sum())
            padded += len(piece) * int(lengths_of_piece.max(1).sum())
        carry = carry[:, pieces[-1][-1] + 1 :] if pieces else carry
    return BatchingCost(num_batches, num_rows, 1 - real / padded if padded else 0.0)


def make_batch_counter(
    larger: Ints, *, budget: int, seed: int, epoch_weights: Callable[[int], NDArray[np.float64] | None]
) -> Callable[[int], int]:
    """Return a function from an epoch's number to its number of batches in `buckets.make_batches`, without making them.

    Only lengths are counted, so that all epochs of a training of millions of rows take seconds.

    Args:
        larger: (rows,) tokens of each row's larger side.
        budget: of a batch, in tokens, padding counted.
        seed: of the draws of a training.
        epoch_weights: the weights of an epoch's rows, by its number; None if every row occurs once.
    """
    histogram = np.bincount(larger)

    @cache
    def num_unweighted_batches(first_budget: int) -> int:
        return num_batches_of_histogram(histogram, budget, first_budget)

    def num_batches_in_epoch(epoch: int) -> int:
        weights, share = epoch_weights(epoch), draw_bucket_jitter(seed, epoch)[0]
        first = max(int(share * budget), 1)
        if weights is None:
            return num_unweighted_batches(first)
        rows = repeat_rows_by_weight(weights, seed=seed, epoch=epoch)
        return num_batches_of_histogram(np.bincount(larger[rows]), budget, first)

    return num_batches_in_epoch


def num_batches_of_histogram(histogram: Ints, budget: int, first_budget: int) -> int:
    """Return the number of pieces that `buckets.split_by_budget` makes of rows.

    Args:
        histogram: (n,) the number of rows of each length.
        budget: the largest B * longest row of a piece of B rows.
        first_budget: the same limit of the first piece.
    """
    lengths = np.flatnonzero(histogram)
    times: list[int] = histogram[lengths].tolist()
    pieces = open_rows = 0  # open_rows: those of the piece that is open
    budget_left = first_budget
    for length, num_left in zip(lengths.tolist(), times, strict=True):
        while num_left:
            if not open_rows:
                pieces += 1
            num_added = min(num_left, max(budget_left // length, 0 if open_rows else 1) - open_rows)
            if num_added > 0:
                open_rows, num_left = open_rows + num_added, num_left - num_added
            if num_left:  # the piece is full; all following ones but the last have only rows of this length
                rows_per_piece = max(budget // length, 1)
                full_pieces = (num_left - 1) // rows_per_piece
                pieces, num_left = pieces + full_pieces, num_left - full_pieces * rows_per_piece
                open_rows, budget_left = 0, budget
    return pieces


def _draw_length_pair_counts(lengths: LengthPairCounts, seed: int, epoch: int) -> tuple[Ints, Ints, Ints]:
    """Source lengths, target lengths, and the number of rows of each pair in an epoch."""
    rng = np.random.default_rng([seed, epoch])
    total: Counter[int] = Counter()
    for weight, counts in lengths.counts.items():
        keys, times = list(counts), np.array(list(counts.values()))
        num_extra = num_extra_copies(weight, int(times.sum()), seed=seed, epoch=epoch) if weight % 1 else 0
        extra_counts = rng.multivariate_hypergeometric(times, num_extra) if num_extra else 0
        total.update(dict(zip(keys, (times * int(weight) + extra_counts).tolist(), strict=True)))
    pairs = np.array(list(total), np.int64)
    return pairs >> BITS_PER_LENGTH, pairs & ((1 << BITS_PER_LENGTH) - 1), np.array(list(total.values()), np.int64)


def _iterate_pair_blocks(pairs: Ints, counts: Ints) -> Iterator[tuple[Ints, bool]]:
    """The pairs (2, n), each as often as it is there, some at a time; and whether these are the last."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, PAIRS_PER_BLOCK):
        rows = np.arange(begin, min(begin + PAIRS_PER_BLOCK, total))
        yield pairs[:, np.searchsorted(ends, rows, side="right")], begin + PAIRS_PER_BLOCK >= total
