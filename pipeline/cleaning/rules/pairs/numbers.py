"""Digits of both sides, zeros left out: 2 M / T of the matching blocks of the two sequences (Ratcliff and Obershelp).

OpusFilter's NonZeroNumeralsFilter is the same (Vázquez et al. 2019), but knows the digits of ASCII alone; here "٥" and
"５" are 5. Two sides without digits are alike: 1.
"""

from difflib import SequenceMatcher
from unicodedata import decimal

import numpy as np
import regex

from tfm.pipeline.cleaning.rules.pairs.config import NumbersConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column

NO_DIGIT_PATTERN = regex.compile("[^1-9]+")
OTHER_DIGIT_PATTERN = regex.compile(r"[\p{Nd}--[0-9]]", flags=regex.V1)


def measure_digit_similarity(pairs: TextPairBatch, config: NumbersConfig) -> Floats:
    """(n, 1) the likeness of the digits of both sides."""
    source, target = (list(map(_nonzero_digits, side.texts)) for side in pairs.sides)
    likeness = [
        1.0 if one == other else SequenceMatcher(None, one, other).ratio()
        for one, other in zip(source, target, strict=True)
    ]
    return as_column(np.array(likeness))


def _nonzero_digits(text: str) -> str:
    if not text.isascii():
        text = OTHER_DIGIT_PATTERN.sub(lambda match: str(decimal(match[0], 0)), text)
    return str(NO_DIGIT_PATTERN.sub("", text))
