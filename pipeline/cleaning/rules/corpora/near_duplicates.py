"""Near duplicates: pairs that share most sequences of characters, by MinHash (Broder 1997) in bands, as LSH has it.

A pair is the set of the sequences of `shingle` characters of its source and target, small letters and single spaces.
There are b bands of r minima each: two pairs of Jaccard likeness s share one with probability 1 - (1 - s^r)^b; b and r
are such that this is a half at `likeness`. A pair is dropped that shares a band with an earlier pair that passed all
rules before. Keys take 8 b bytes a pair. The minima are rensa's.
"""

import math
from collections.abc import Callable

import numpy as np

from tfm.data.arrays import splitmix64
from tfm.pipeline.cleaning.rules.corpora.config import NearDuplicatesConfig
from tfm.pipeline.cleaning.rules.corpora.text_keys import Keys, fold_spelling, separate_directions
from tfm.pipeline.cleaning.rules.packages import missing_package_error
from tfm.pipeline.cleaning.text_batch import TextBatch, TextPairBatch

MAX_BANDS = 10
SEED = 1


def choose_lsh_bands_and_rows(similarity: float) -> tuple[int, int]:
    """Return bands b and minima a band r whose probability is nearest to a half at a likeness, with the most minima."""
    rows = max(1, math.floor(math.log(1 - 0.5 ** (1 / MAX_BANDS)) / math.log(similarity)))
    bands = round(math.log(0.5) / math.log(1 - similarity**rows))
    return min(max(bands, 1), MAX_BANDS), rows


def make_near_duplicate_hasher(config: NearDuplicatesConfig) -> Callable[[TextPairBatch], Keys]:
    """Return the function that gives (n, b) the keys of the bands of each pair.

    Raises:
        RecipeError: rensa is not installed.
    """
    try:
        from rensa import RMinHash
    except ImportError:
        raise missing_package_error("near_duplicates", "rensa") from None
    bands, rows = choose_lsh_bands_and_rows(config.likeness)
    factors = splitmix64(np.arange(1, config.shingle + 1, dtype=np.uint64)) | np.uint64(1)
    band_factors = splitmix64(np.arange(1, rows + 1, dtype=np.uint64)) | np.uint64(1)

    def band_keys(pairs: TextPairBatch) -> Keys:
        text_pairs = zip(pairs.source.texts, pairs.target.texts, strict=True)
        # padded, so that the shortest has one sequence
        texts = TextBatch(
            [f"{fold_spelling(source)}\n{fold_spelling(target)}".ljust(config.shingle) for source, target in text_pairs]
        )
        hashes, offsets = _shingle_hashes_and_offsets(texts, factors)
        minima = RMinHash.digest_matrix_from_flat_token_hashes(hashes, offsets, bands * rows, SEED)
        digests = np.array(minima.to_rows(), np.uint64).reshape(len(pairs), bands, rows)
        keys = splitmix64((splitmix64(digests) * band_factors).sum(2, dtype=np.uint64))
        return separate_directions(keys, pairs.languages)

    return band_keys


def _shingle_hashes_and_offsets(texts: TextBatch, factors: Keys) -> tuple[Keys, Keys]:
    """The hashes of all sequences of characters, and where those of each text begin, with the end (n + 1,)."""
    width, characters = len(factors), texts.characters.astype(np.uint64)
    windows = len(characters) - width + 1
    sums = sum(characters[offset : offset + windows] * factors[offset] for offset in range(width))
    counts = texts.lengths - width + 1
    begins = np.cumsum(texts.lengths) - texts.lengths
    offsets = np.concatenate([[0], np.cumsum(counts)])
    positions = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], counts)
    return splitmix64(np.asarray(sums)[positions]), offsets.astype(np.uint64)
