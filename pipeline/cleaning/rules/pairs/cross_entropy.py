"""Dual conditional cross-entropy (Junczys-Dowmunt 2018): two models find a pair equally, and well, explained.

A is the cross-entropy of the target given the source under a forward model, B that of the source given the target under
a backward one, both in nats a piece with the end of the text. The score is exp(-(|A - B| + (A + B) / 2)), in (0, 1].
"""

from collections.abc import Sequence

import numpy as np

from tfm.pipeline.cleaning.rules.pairs.translation_models import Pair, TranslationModels
from tfm.pipeline.cleaning.text_batch import Floats


def score_by_cross_entropy(pairs: Sequence[Pair], entropies: Floats, models: TranslationModels) -> Floats:
    """(n,) the score of each pair; 0 where a text has no pieces or is longer than a model reads.

    Args:
        pairs: (n,).
        entropies: (2, n), A and B of each.
        models: that gave them.
    """
    forward, backward = entropies
    with np.errstate(invalid="ignore"):
        scores = np.exp(-(np.abs(forward - backward) + (forward + backward) / 2))
    finite_scores: Floats = np.nan_to_num(scores, nan=0.0)
    return finite_scores
