"""Length of the shorter and of the longer side, in words (between white space) or characters.

OpusFilter's LengthFilter is the same: every side has a length from min to max.
"""

import numpy as np

from tfm.pipeline.cleaning.rules.texts.config import LengthConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, text_lengths


def measure_lengths(pairs: TextPairBatch, config: LengthConfig) -> Floats:
    """(n, 2) the lengths of the shorter and of the longer side."""
    lengths = [text_lengths(side, config.unit) for side in pairs.sides]
    return np.stack([np.minimum.reduce(lengths), np.maximum.reduce(lengths)], 1).astype(np.float64)
