"""Copies of the source: 1 - Levenshtein distance / length of the longer side, in characters; 1 where both are the same.

OpusFilter's SimilarityFilter is the same (with `lowercase`), but drops a pair whose likeness is just the limit.
"""

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from tfm.pipeline.cleaning.rules.pairs.config import CopiesConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column


def measure_side_similarity(pairs: TextPairBatch, config: CopiesConfig) -> Floats:
    """(n, 1) the likeness of the two sides."""
    sides = [[text.lower() for text in side.texts] if config.fold_case else side.texts for side in pairs.sides]
    similarities = cpdist(*sides, scorer=Levenshtein.normalized_similarity, dtype=np.float64, workers=1)
    return as_column(similarities)
