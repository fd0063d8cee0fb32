"""Keys of the draws that concern single examples: spans hidden in a text, noise words drawn for its words.

In training an example's key follows from the update, its row, and the number of times the row occurred before in the
update; in evaluation from its tokens. A draw for a text therefore depends neither on its batch nor on its process.

Shapes: B texts · N tokens of all texts.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tfm.data.arrays import Ints
from tfm.tokenizer.sampled import RandomKeys, hash_numbers

_TEXT_HASH_SEED = np.array([0], np.uint64)


def count_earlier_occurrences(batches: Sequence[Ints]) -> list[Ints]:
    """Count the earlier occurrences of each row of an update's batches, in its batch and those in front of it."""
    rows = np.concatenate([*batches, np.empty(0, np.int64)])
    order = np.argsort(rows, kind="stable")
    sorted_rows = rows[order]
    counts = np.empty(len(rows), np.int64)
    counts[order] = np.arange(len(rows)) - np.searchsorted(sorted_rows, sorted_rows)
    return np.split(counts, np.cumsum([len(batch) for batch in batches])[:-1])


def example_rng_keys(update: int, rows: Ints, repeats: Ints | None) -> RandomKeys:
    """(B,) the keys of examples in training.

    Args:
        update: The key of the update.
        rows: (B,) row numbers.
        repeats: (B,) how often each row occurred before in the update; none: never.
    """
    keys = hash_numbers(np.array([update], np.uint64), rows)
    return hash_numbers(keys, np.zeros_like(rows) if repeats is None else repeats)


def text_rng_keys(ids: NDArray[np.int64], lengths: Ints) -> RandomKeys:
    """Return the keys of texts in evaluation (B,), from concatenated ids (N,) and the number of ids of each (B,)."""
    ends = np.cumsum(lengths)
    tokens = hash_numbers(hash_numbers(_TEXT_HASH_SEED, token_positions(lengths)), ids)
    sums = np.concatenate(
        [_TEXT_HASH_SEED, np.cumsum(tokens, dtype=np.uint64)]
    )  # they wrap around, and so do differences
    return hash_numbers(sums[ends] - sums[ends - lengths], lengths)


def token_rng_keys(keys: RandomKeys, lengths: Ints, draw: int) -> RandomKeys:
    """Return 64 random bits for each token of some texts (N,).

    Args:
        keys: (B,) of the texts.
        lengths: (B,) tokens of each text.
        draw: the number of one draw of many.
    """
    return hash_numbers(np.repeat(hash_numbers(keys, np.array([draw])), lengths), token_positions(lengths))


def rng_keys_to_uniform(keys: RandomKeys) -> NDArray[np.float64]:
    """Numbers in [0, 1): the 53 highest bits of each key."""
    return (keys >> np.uint64(11)).astype(np.float64) * 2.0**-53


def token_positions(lengths: Ints) -> Ints:
    """(N,) the place of each token in its text, for texts of these lengths (B,) that lie end to end."""
    ends = np.cumsum(lengths)
    positions: Ints = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
    return positions
