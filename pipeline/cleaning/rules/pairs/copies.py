"""Copies of the source: 1 - Levenshtein distance / length of the longer side, in characters; 1 where both are the same.

OpusFilter's SimilarityFilter is the same (with `lowercase`), but drops a pair whose likeness is just the limit. A
comparison takes time in proportion to the product of the lengths. So sides of more than MAX_PIECE_CHARACTERS, without
the beginning and the end that both have, are cut into equally many pieces, which are compared in order: they have at
least as many edits as the whole sides, so that the likeness is at most that of the whole.
"""

import math
from itertools import pairwise

import numpy as np
from rapidfuzz.distance import Levenshtein, Postfix, Prefix
from rapidfuzz.process import cpdist

from tfm.pipeline.cleaning.rules.pairs.config import CopiesConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column

MAX_PIECE_CHARACTERS = 10_000


def measure_side_similarity(pairs: TextPairBatch, config: CopiesConfig) -> Floats:
    """(n, 1) the likeness of the two sides."""
    sides = [[text.lower() for text in side.texts] if config.fold_case else list(side.texts) for side in pairs.sides]
    long_similarities = {}
    for row, (source, target) in enumerate(zip(*sides, strict=True)):
        if min(len(source), len(target)) > MAX_PIECE_CHARACTERS:
            long_similarities[row] = _similarity_by_pieces(source, target)
            sides[0][row] = sides[1][row] = ""
    similarities = cpdist(*sides, scorer=Levenshtein.normalized_similarity, dtype=np.float64, workers=1)
    similarities[list(long_similarities)] = list(long_similarities.values())
    return as_column(similarities)


def _similarity_by_pieces(source: str, target: str) -> float:
    """1 - edits / length of the longer side, the edits those of pieces."""
    one, other = _without_common_ends(source, target)
    num_pieces = max(1, math.ceil(max(len(one), len(other)) / MAX_PIECE_CHARACTERS))
    num_edits = sum(map(Levenshtein.distance, _cut_into_pieces(one, num_pieces), _cut_into_pieces(other, num_pieces)))
    return 1 - num_edits / max(len(source), len(target))


def _without_common_ends(one: str, other: str) -> tuple[str, str]:
    prefix = Prefix.similarity(one, other)
    one, other = one[prefix:], other[prefix:]
    suffix = Postfix.similarity(one, other)
    return one[: len(one) - suffix], other[: len(other) - suffix]


def _cut_into_pieces(text: str, num_pieces: int) -> list[str]:
    """Some pieces of a text, of as many characters each or one less."""
    cuts = [len(text) * number // num_pieces for number in range(num_pieces + 1)]
    return [text[begin:end] for begin, end in pairwise(cuts)]
