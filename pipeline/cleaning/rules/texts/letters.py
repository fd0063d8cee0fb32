"""Share of letters: alphabetic characters (Unicode's property) over all characters, spaces too.

OpusFilter's AlphabetRatioFilter is the same. An empty side has the share 1: the rule `empty` is for it.
"""

import numpy as np

from tfm.pipeline.cleaning.rules.character_sets import letters
from tfm.pipeline.cleaning.rules.texts.config import LettersConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column


def measure_letter_share(pairs: TextPairBatch, config: LettersConfig) -> Floats:
    """(n, 1) the share of letters of the side that has fewer."""
    shares = np.ones(len(pairs))
    for side in pairs.sides:
        counts = side.count_flagged(letters()[side.characters])
        shares = np.minimum(shares, np.where(side.lengths > 0, counts / np.maximum(side.lengths, 1), 1.0))
    return as_column(shares)
