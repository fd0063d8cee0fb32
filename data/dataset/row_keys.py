"""Keys of the model's input: the same ids give the same key, however their text was spelled."""

import hashlib
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tfm.data.arrays import Ints, splitmix64
from tfm.data.dataset.split import Ids
from tfm.data.images.decoding import Pixels
from tfm.data.lines import normalize_whitespace
from tfm.tokenizer.special import UNK_ID

POSITION_FACTOR_PERIOD = 1 << 16  # a power of two, so that a remainder is a mask
_Uint64s = NDArray[np.uint64]


def text_duplicate_keys(texts: list[str], ids: Ids, lengths: Ints) -> Ints:
    """Return a 64-bit key of each row (rows,) of concatenated ids; only valid within a process.

    Unknown pieces are not all the same: for rows with unknown pieces the text counts too.

    Args:
        texts: of the rows.
        ids: of all rows, concatenated.
        lengths: (rows,) ids of each row.
    """
    rows = np.flatnonzero(lengths)
    keys = np.zeros(len(lengths), np.uint64)
    begins = (np.cumsum(lengths) - lengths)[rows]
    indices = np.arange(len(ids)) - np.repeat(begins, lengths[rows])
    if len(rows):  # a sum of products with random numbers: one for each id, one for each place
        id_factors = _random_factors_of_ids(1 << max(int(ids.max()).bit_length(), 12))
        keys[rows] = np.add.reduceat(
            id_factors[ids] * _random_factors_of_positions()[indices & (POSITION_FACTOR_PERIOD - 1)], begins
        )
    is_unknown = ids == UNK_ID
    if is_unknown.any():
        for row in np.unique(np.repeat(np.arange(len(lengths)), lengths)[is_unknown]).tolist():
            keys[row] ^= np.uint64(hash(normalize_whitespace(texts[row])) % 2**64)
    return splitmix64(keys + lengths.astype(np.uint64)).view(np.int64)


def image_duplicate_keys(rows: Sequence[Pixels]) -> Ints:
    """(rows,) a 64-bit key of the pixels of each row; rows of one image hold the same array."""
    pixels_by_id = {id(pixels): pixels for pixels in rows}
    digests = {
        image_id: hashlib.blake2b(np.ascontiguousarray(pixels).tobytes(), digest_size=8)
        for image_id, pixels in pixels_by_id.items()
    }
    keys = {image_id: int.from_bytes(digest.digest(), "little", signed=True) for image_id, digest in digests.items()}
    return np.array([keys[id(pixels)] for pixels in rows], np.int64)


def combine_duplicate_keys(keys: Ints, other_keys: Ints) -> Ints:
    """(rows,) keys of pairs; the order of the two matters."""
    return splitmix64(splitmix64(keys.view(np.uint64)) + other_keys.view(np.uint64)).view(np.int64)


@cache
def _random_factors_of_ids(count: int) -> _Uint64s:
    """A number for each id; of more ids the first have the same."""
    return splitmix64(np.arange(count, dtype=np.uint64))


@cache
def _random_factors_of_positions() -> _Uint64s:
    """A number for each place in a row; odd, so that none of a product's bits is lost."""
    return splitmix64(np.arange(POSITION_FACTOR_PERIOD, dtype=np.uint64) + np.uint64(2**40)) | np.uint64(1)
