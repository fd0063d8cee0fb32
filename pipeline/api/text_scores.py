"""Probabilities of texts under a model: `tfm.load(...).score(...)`."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfm.pipeline.scoring.metrics.score import Score
from tfm.pipeline.scoring.segment_scores import Likelihoods


@dataclass(frozen=True)
class TextScores:
    """Probabilities of n texts under a model, as `tfm evaluate` computes them.

    Args:
        log_probs: (n,) of each text with its end, in nats; NaN for one that has no probability, with a warning.
        num_tokens: (n,) predictions in each text.
        figures: perplexity, word_perplexity and bits_per_character of all texts together, each with its signature.
    """

    log_probs: NDArray[np.float64]
    num_tokens: NDArray[np.int64]
    figures: Mapping[str, Score]

    @property
    def perplexity(self) -> float:
        """exp(-log p / tokens), from the sums over all texts."""
        return self.figures["perplexity"].score

    @classmethod
    def from_likelihoods(cls, figures: Mapping[str, Score], found: Likelihoods) -> "TextScores":
        wanted = ("perplexity", "word_perplexity", "bits_per_character")
        return cls(found.log_probs, found.pieces, {name: figures[name] for name in wanted})
