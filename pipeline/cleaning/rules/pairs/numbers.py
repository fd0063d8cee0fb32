"""Digits of both sides, zeros left out: 2 M / T of the matching blocks of the two sequences (Ratcliff and Obershelp).

OpusFilter's NonZeroNumeralsFilter is the same (Vázquez et al. 2019), but knows the digits of ASCII alone; here "٥" and
"５" are 5. Two sides without digits are alike: 1. From 200 digits on it finds frequent digits in no block, so that one
digit makes half of two lists of numbers unlike; here it does not. With more than MAX_ORDERED_DIGITS, whose blocks take
seconds to find, M is the number of digits that both sides have, in any order.
"""

from difflib import SequenceMatcher
from unicodedata import decimal

import numpy as np
import regex

from tfm.pipeline.cleaning.rules.pairs.config import NumbersConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column

NO_DIGIT_PATTERN = regex.compile("[^1-9]+")
MAX_ORDERED_DIGITS = 2000
OTHER_DIGIT_PATTERN = regex.compile(r"[\p{Nd}--[0-9]]", flags=regex.V1)


def measure_digit_similarity(pairs: TextPairBatch, config: NumbersConfig) -> Floats:
    """(n, 1) the likeness of the digits of both sides."""
    source, target = (list(map(_nonzero_digits, side.texts)) for side in pairs.sides)
    return as_column(np.array([_likeness(*digits) for digits in zip(source, target, strict=True)]))


def _likeness(one: str, other: str) -> float:
    """2 M / T of two sequences of digits."""
    if one == other:
        return 1.0
    blocks = SequenceMatcher(None, one, other, autojunk=False)
    return blocks.ratio() if len(one) + len(other) <= MAX_ORDERED_DIGITS else blocks.quick_ratio()


def _nonzero_digits(text: str) -> str:
    if not text.isascii():
        text = OTHER_DIGIT_PATTERN.sub(lambda match: str(decimal(match[0], 0)), text)
    return str(NO_DIGIT_PATTERN.sub("", text))
