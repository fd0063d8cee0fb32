"""Web addresses, e-mail addresses, tags and placeholders: those that both sides have over those that either has.

The Jaccard likeness of two multisets; 1 where no side has any. A translation keeps them as they are.
"""

from collections import Counter

import numpy as np
import regex

from tfm.pipeline.cleaning.rules.pairs.config import MarkupConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column

MAX_TAG_LENGTH = 200
SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
"""Letters of scripts without spaces, which stand beside an address as parts of the sentence."""
URL = rf"[^\s<>\"{SPACELESS}\u3000-\u303f\uff01-\uff5e]+"
WORD = rf"[\w--[{SPACELESS}]]"
MARKUP_PATTERN = regex.compile(
    rf"https?://{URL}|www\.{URL}|[{WORD}.+\-]{{1,64}}@[{WORD}\-]{{1,64}}\.[{WORD}.\-]{{1,64}}"
    rf"|</?[A-Za-z][^<>]{{0,{MAX_TAG_LENGTH}}}>|\{{\w{{0,40}}\}}|%\(\w{{1,40}}\)[a-z]|&\w{{1,10}};",
    flags=regex.V1,
)
SENTENCE_MARKS = ".,;:!?)]…”“’‘»«›‹'،؛؟۔।"
"""Marks that follow an address in its sentence."""
MARKUP_CHARACTERS = frozenset("@<{%&")
"""Characters of which each kind has one, but for web addresses, which have a full stop or a colon between letters."""


def measure_markup_similarity(pairs: TextPairBatch, config: MarkupConfig) -> Floats:
    """(n, 1) the likeness of the addresses and tags of both sides."""
    scores = np.ones(len(pairs))
    for row, texts in enumerate(zip(*(side.texts for side in pairs.sides), strict=True)):
        if any(map(_may_have_markup, texts)):
            source, target = (
                Counter(each.rstrip(SENTENCE_MARKS) for each in MARKUP_PATTERN.findall(text)) for text in texts
            )
            union = (source | target).total()
            scores[row] = (source & target).total() / union if union else 1.0
    return as_column(scores)


def _may_have_markup(text: str) -> bool:
    return "://" in text or "www." in text or not MARKUP_CHARACTERS.isdisjoint(text)
