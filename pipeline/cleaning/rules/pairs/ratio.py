"""Length ratio: the longer side over the shorter one; infinite where one alone is empty, 0 where both are.

OpusFilter's LengthRatioFilter is the same, but drops a pair whose ratio is just the limit.
"""

import numpy as np

from tfm.pipeline.cleaning.rules.pairs.config import RatioConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column, text_lengths


def measure_length_ratio(pairs: TextPairBatch, config: RatioConfig) -> Floats:
    """(n, 1) the length of the longer side over that of the shorter one."""
    lengths = [text_lengths(side, config.unit) for side in pairs.sides]
    shorter, longer = np.minimum.reduce(lengths), np.maximum.reduce(lengths)
    ratios = np.where(longer > 0, np.inf, 0.0)
    np.divide(longer, shorter, out=ratios, where=shorter > 0)
    return as_column(ratios)
