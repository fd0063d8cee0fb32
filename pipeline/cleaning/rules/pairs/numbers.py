"""Digits of both sides, zeros left out: 2 M / T of the matching blocks of the two sequences (Ratcliff and Obershelp).

OpusFilter's NonZeroNumeralsFilter is the same (Vázquez et al. 2019). Two sides without digits are alike: 1.
"""

from difflib import SequenceMatcher

import numpy as np
import regex

from tfm.pipeline.cleaning.rules.pairs.config import NumbersConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column

NO_DIGIT_PATTERN = regex.compile("[^1-9]+")


def measure_digit_similarity(pairs: TextPairBatch, config: NumbersConfig) -> Floats:
    """(n, 1) the likeness of the digits of both sides."""
    source, target = ([NO_DIGIT_PATTERN.sub("", text) for text in side.texts] for side in pairs.sides)
    likeness = [
        1.0 if one == other else SequenceMatcher(None, one, other).ratio()
        for one, other in zip(source, target, strict=True)
    ]
    return as_column(np.array(likeness))
