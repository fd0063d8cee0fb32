"""Batches of rows of similar length within a token budget: a pure function of (lengths, seed, epoch).

Rows are sorted by their larger side and, within one length of it, by how much longer the source is than the target,
ascending and descending alternately, so that neighbors are similar on both sides. The sorted rows are cut where the
budget is full. Ties, both directions, the first cut and the order of the batches are drawn again each epoch.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tfm.data.arrays import Ints
from tfm.data.errors import DataError

_COPIES_STREAM, _ORDER_STREAM, _JITTER_STREAM = 0, 1, 2


def make_batches(
    source_lengths: Ints,
    target_lengths: Ints,
    *,
    budget: int,
    seed: int,
    epoch: int,
    weights: NDArray[np.float64] | None = None,
    shard: int = 0,
) -> list[Ints]:
    """Return the batches of one epoch, in the order to train on them, as arrays of row numbers.

    Args:
        source_lengths: (rows,) tokens of each row, the end token included.
        target_lengths: (rows,) the same of the targets.
        budget: the largest B * longest source and B * longest target of a batch of B rows.
        seed: of the draws of a training.
        epoch: counted from 0.
        weights: (rows,) a row of weight w occurs floor(w) times, and once more for a random share w - floor(w) of the
            rows of that weight (`num_extra_copies`); None: every row occurs exactly once.
        shard: the number of the part of an epoch that is made by itself.

    Raises:
        DataError: one row alone exceeds the budget.
    """
    rows = (
        repeat_rows_by_weight(weights, seed=seed, epoch=epoch, shard=shard)
        if weights is not None
        else np.arange(len(source_lengths))
    )
    if not len(rows):
        return []
    first, flip = draw_bucket_jitter(seed, epoch, shard)
    rng = _epoch_rng(seed, epoch, _ORDER_STREAM, shard)
    rows = rng.permutation(rows)
    max_lengths = np.maximum(source_lengths, target_lengths)[rows]
    difference = (source_lengths - target_lengths)[rows]
    rows = rows[np.argsort(length_sort_keys(max_lengths, difference, flip=flip), kind="stable")]
    max_lengths = np.sort(max_lengths)
    if max_lengths[-1] > budget:
        problem = f"row {rows[-1]} has {max_lengths[-1]} tokens on one side, more than a batch may hold ({budget})"
        raise DataError(f"{problem}; raise batch_tokens")
    batches = split_by_budget(rows, max_lengths, budget, first_share=first)
    return [batches[i] for i in rng.permutation(len(batches))]


def length_sorted_batches(source_lengths: Ints, target_lengths: Ints, *, budget: int) -> list[Ints]:
    """Batch every row once, as in training but sorted by length and without randomness: for validation and tests.

    A row that exceeds the budget gets its own batch.

    Args:
        source_lengths: (rows,) tokens of each row, the end token included.
        target_lengths: (rows,) the same of the targets.
        budget: the largest B * longest source and B * longest target of a batch of B rows.
    """
    if not len(source_lengths):
        return []
    max_lengths = np.maximum(source_lengths, target_lengths)
    order = np.argsort(length_sort_keys(max_lengths, source_lengths - target_lengths, flip=False), kind="stable")
    return split_by_budget(order, np.sort(max_lengths), budget, first_share=1.0)


def padding_share(batches: Sequence[Ints], source_lengths: Ints, target_lengths: Ints) -> float:
    """Compute the share of positions that are padding, over both sides of all batches: 1 - real / padded.

    Args:
        batches: the row numbers of each batch.
        source_lengths: (rows,) tokens of each row.
        target_lengths: (rows,) tokens of each row.
    """
    num_tokens = num_slots = 0
    for rows in batches:
        for lengths in (source_lengths[rows], target_lengths[rows]):
            num_tokens += int(lengths.sum())
            num_slots += len(rows) * int(lengths.max())
    return 1 - num_tokens / num_slots if num_slots else 0.0


def repeat_rows_by_weight(weights: NDArray[np.float64], *, seed: int, epoch: int, shard: int = 0) -> Ints:
    """Return the row numbers of one epoch, each as often as its weight says; fractions are drawn from (seed, epoch).

    Args:
        weights: (rows,) the weight of each row.
        seed: of the draws of a training.
        epoch: counted from 0.
        shard: the number of the part of an epoch that these rows are.
    """
    rng = _epoch_rng(seed, epoch, _COPIES_STREAM, shard)
    times = np.floor(weights).astype(np.int64)
    for weight in np.unique(weights):
        if weight % 1:
            weight_rows = np.flatnonzero(weights == weight)
            count = num_extra_copies(float(weight), len(weight_rows), seed=seed, epoch=epoch, shard=shard)
            times[rng.permutation(weight_rows)[:count]] += 1
    return np.repeat(np.arange(len(weights)), times)


def num_extra_copies(weight: float, num_rows: int, *, seed: int, epoch: int, shard: int = 0) -> int:
    """The number of a weight's rows that occur once more in an epoch, for the fraction of the weight.

    On average fraction times rows, even for few rows: the first n epochs have n times as many, to within one row; the
    phase is drawn from the seed.

    Args:
        weight: of the rows.
        num_rows: rows with this weight.
        seed: of the draws of a training.
        epoch: counted from 0.
        shard: the number of the part of an epoch that these rows are in.
    """
    share = round(weight % 1 * num_rows, 9)  # 0.3 of 100 rows are 30, not 30.000000000000004
    words = [seed, _COPIES_STREAM, *weight.as_integer_ratio(), *([shard] if shard else [])]
    begin = epoch + np.random.default_rng(words).random()
    return int((begin + 1) * share) - int(begin * share)


def draw_bucket_jitter(seed: int, epoch: int, shard: int = 0) -> tuple[float, bool]:
    """Draw the share of the budget that the first batch gets, and the direction in which lengths turn.

    Args:
        seed: of the draws of a training.
        epoch: counted from 0.
        shard: the number of the part of an epoch that is made by itself.
    """
    rng = _epoch_rng(seed, epoch, _JITTER_STREAM, shard)
    return rng.random(), bool(rng.integers(2))


def _epoch_rng(seed: int, epoch: int, stream: int, shard: int) -> np.random.Generator:
    """The generator of an epoch's draws of one kind; shard 0 has those of an epoch that is made whole."""
    return np.random.default_rng([seed, epoch, stream, *([shard] if shard else [])])


def length_sort_keys(max_lengths: Ints, difference: Ints, *, flip: bool) -> Ints:
    """Return a key to sort by (larger, +-difference), the sign alternating from one length to the next.

    Args:
        max_lengths: (rows,) tokens of each row's larger side.
        difference: (rows,) tokens of the source less those of the target.
        flip: whether the alternation begins with the other sign.
    """
    turn = np.where((max_lengths % 2 == 0) != flip, difference, -difference)
    # |difference| < larger, so one integer holds both keys and one sort does.
    return max_lengths * (2 * int(max_lengths.max()) + 1) + turn


def split_by_budget(rows: Ints, max_lengths: Ints, budget: int, *, first_share: float) -> list[Ints]:
    """Split rows into consecutive pieces, each as long as the budget allows. A row over the budget is a piece alone.

    Args:
        rows: (rows,) row numbers, ascending in `max_lengths`.
        max_lengths: (rows,) tokens of each row's larger side.
        budget: the largest B * longest row of a piece of B rows.
        first_share: the share of the budget that the first piece gets, which moves every later cut.
    """
    pieces = []
    begin, share = 0, max(int(first_share * budget), 1)
    while begin < len(rows):
        window = max_lengths[begin : begin + max(share // int(max_lengths[begin]), 1)]
        slots = window * np.arange(1, len(window) + 1)
        size = max(int(np.searchsorted(slots, share, side="right")), 1)
        pieces.append(rows[begin : begin + size])
        begin, share = begin + size, budget
    return pieces
