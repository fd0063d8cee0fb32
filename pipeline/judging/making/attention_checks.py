"""Attention checks: texts spoiled so that whoever reads them sees it.

Graham et al. 2013 ("Continuous measurement scales in human evaluation of machine translation") replace words of a
translation by another's and look at whether a judge rates it lower.
"""

import math
from collections.abc import Sequence
from random import Random

CORRUPTED_WORD_SHARE = 0.75  # of the words, so that little of the meaning is left


def corrupt_text(text: str, other_texts: Sequence[str], rng: Random) -> str | None:
    """The text with a run of three quarters of its words replaced by words of one of the other texts.

    A text without spaces goes by characters. None if that changes nothing, with whichever of them.
    """
    for other_text in rng.sample(list(other_texts), len(other_texts)):
        corrupted_text = _replace_words(text, other_text, rng)
        if corrupted_text.split() != text.split():
            return corrupted_text
    return None


def _replace_words(text: str, other_text: str, rng: Random) -> str:
    by_words = len(text.split()) > 1
    words, other_words = (text.split(), other_text.split()) if by_words else (list(text), list(other_text))
    count = math.ceil(CORRUPTED_WORD_SHARE * len(words))
    begin = rng.randint(0, len(words) - count)
    start = rng.randint(0, max(0, len(other_words) - count))
    replacement = other_words[start : start + count]
    return (" " if by_words else "").join([*words[:begin], *replacement, *words[begin + count :]])
