"""Pointwise mutual information of the two sides, by two translation models: whether a text says what its pair says.

A is the cross-entropy of the target given its source under a forward model, A' that given the source of another pair,
both in nats a piece; A' - A estimates (log p(t | s) - log p(t)) / pieces. B and B' are the same of a backward model.
The score is min(A' - A, B' - B): about 0 where a side says nothing of the other, however likely each is by itself.
"""

from collections.abc import Sequence

import numpy as np

from tfm.pipeline.cleaning.rules.pairs.config import MutualInformationConfig
from tfm.pipeline.cleaning.rules.pairs.cross_entropy import load_translation_models, measure_cross_entropies
from tfm.pipeline.cleaning.text_batch import Floats

Pair = tuple[str, str]


class MutualInformation:
    """Two models that score pairs.

    Args:
        config: names them.
        device: on which they compute.
    """

    def __init__(self, config: MutualInformationConfig, device: str) -> None:
        self.forward, self.backward = load_translation_models(config, device, "mutual_information")

    def score(self, pairs: Sequence[Pair]) -> Floats:
        """(n,) the score of each pair, beside another of them.

        0 where a text has no pieces or is longer than a model reads; NaN where there is no other pair.
        """
        entropies = self._measure_entropies(pairs, pairs)
        scores, readable_rows = np.zeros(len(pairs)), np.flatnonzero(np.isfinite(entropies).all(0)).tolist()
        readable_pairs = [pairs[row] for row in readable_rows]
        partners = [_choose_partner(readable_pairs, row) for row in range(len(readable_pairs))]
        contexts = [other or pair for pair, other in zip(readable_pairs, partners, strict=True)]
        gains = self._measure_entropies(readable_pairs, contexts) - entropies[:, readable_rows]
        has_partner = np.array([other is not None for other in partners], np.bool_)
        scores[readable_rows] = np.where(has_partner, gains.min(0), np.nan)
        return scores

    def _measure_entropies(self, pairs: Sequence[Pair], contexts: Sequence[Pair]) -> Floats:
        """(2, n) nats a piece of each target given the source of its context, and of each source given the target."""
        sources, targets, context_sources, context_targets = (
            [pair[side] for pair in rows] for rows in (pairs, contexts) for side in (0, 1)
        )
        forward = measure_cross_entropies(self.forward, context_sources, targets)
        return np.stack([forward, measure_cross_entropies(self.backward, context_targets, sources)])


def _choose_partner(pairs: Sequence[Pair], row: int) -> Pair | None:
    """The first pair, from half of them further on, of which both sides differ, if there is one."""
    source, target = pairs[row]
    for step in range(len(pairs)):
        other = pairs[(row + len(pairs) // 2 + step) % len(pairs)]
        if other[0] != source and other[1] != target:
            return other
    return None
