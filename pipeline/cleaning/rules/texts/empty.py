"""Empty sides: texts of white space alone."""

import numpy as np

from tfm.pipeline.cleaning.rules.texts.config import EmptyConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column


def mark_pairs_with_words(pairs: TextPairBatch, config: EmptyConfig) -> Floats:
    """(n, 1) 1 where every side has a word, 0 where one has none."""
    has_words = np.ones(len(pairs), np.bool_)
    for side in pairs.sides:
        has_words &= side.num_words > 0
    return as_column(has_words)
