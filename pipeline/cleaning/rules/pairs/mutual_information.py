"""Pointwise mutual information of the two sides, by two translation models: whether a text says what its pair says.

A is the cross-entropy of the target given its source under a forward model, A' that given the source of another pair,
both in nats a piece; A' - A estimates (log p(t | s) - log p(t)) / pieces. B and B' are the same of a backward model.
The score is min(A' - A, B' - B): about 0 where a side says nothing of the other, however likely each is by itself.
"""

from collections.abc import Sequence

import numpy as np

from tfm.pipeline.cleaning.rules.pairs.translation_models import Pair, TranslationModels
from tfm.pipeline.cleaning.text_batch import Floats


def score_by_mutual_information(pairs: Sequence[Pair], entropies: Floats, models: TranslationModels) -> Floats:
    """(n,) the score of each pair, beside another of them.

    0 where a text has no pieces or is longer than a model reads; NaN where there is no other pair.

    Args:
        pairs: (n,).
        entropies: (2, n), A and B of each.
        models: that gave them, and give A' and B'.
    """
    scores, readable_rows = np.zeros(len(pairs)), np.flatnonzero(np.isfinite(entropies).all(0)).tolist()
    readable_pairs = [pairs[row] for row in readable_rows]
    partners = [_choose_partner(readable_pairs, row) for row in range(len(readable_pairs))]
    contexts = [other or pair for pair, other in zip(readable_pairs, partners, strict=True)]
    gains = models.measure_entropies(readable_pairs, contexts) - entropies[:, readable_rows]
    has_partner = np.array([other is not None for other in partners], np.bool_)
    scores[readable_rows] = np.where(has_partner, gains.min(0), np.nan)
    return scores


def _choose_partner(pairs: Sequence[Pair], row: int) -> Pair | None:
    """The first pair, from half of them further on, of which both sides differ, if there is one."""
    source, target = pairs[row]
    for step in range(len(pairs)):
        other = pairs[(row + len(pairs) // 2 + step) % len(pairs)]
        if other[0] != source and other[1] != target:
            return other
    return None
