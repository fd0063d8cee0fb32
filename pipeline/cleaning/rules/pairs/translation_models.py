"""Two translation models of a rule, forward and backward, and the cross-entropies that they give to pairs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tfm.pipeline.alignment.direction import MIN_DIRECTION_NATS, NUM_DIRECTION_PAIRS, measure_cross_entropies
from tfm.pipeline.cleaning.rules.pairs.config import TranslationModelsConfig
from tfm.pipeline.cleaning.text_batch import Floats
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.model_io.model_folder import resolve_model_folder

Pair = tuple[str, str]


class TranslationModels:
    """A forward and a backward model that score pairs.

    Args:
        config: names them.
        device: on which they compute.
    """

    def __init__(self, config: TranslationModelsConfig, device: str) -> None:
        self.forward = load_model(resolve_model_folder(Path(config.forward)), device)
        self.backward = load_model(resolve_model_folder(Path(config.backward)), device)

    def measure_entropies(self, pairs: Sequence[Pair], contexts: Sequence[Pair]) -> Floats:
        """(2, n) nats a piece of each target given the source of its context, and of each source given the target."""
        sources, targets, context_sources, context_targets = (
            [pair[side] for pair in rows] for rows in (pairs, contexts) for side in (0, 1)
        )
        forward = measure_cross_entropies(self.forward, context_sources, targets)
        return np.stack([forward, measure_cross_entropies(self.backward, context_targets, sources)])

    def exchange_problem(self, pairs: Sequence[Pair], rule: str) -> str | None:
        """Return why the models are exchanged, as it seems: pairs are likelier with the sides exchanged; else None.

        Args:
            pairs: the first of the corpus, NUM_DIRECTION_PAIRS of which are read.
            rule: its name.
        """
        first = list(pairs[:NUM_DIRECTION_PAIRS])
        exchanged = [(target, source) for source, target in first]
        entropies = np.stack([self.measure_entropies(each, each).sum(0) for each in (first, exchanged)])
        readable = entropies[:, np.isfinite(entropies).all(0)]
        if not readable.shape[1] or readable[0].mean() - readable[1].mean() < MIN_DIRECTION_NATS:
            return None
        return (
            f"clean.{rule}: the models find pairs likelier with source and target exchanged: is `forward` the model "
            "from source to target?"
        )
