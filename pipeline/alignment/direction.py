"""Whether pairs are in the direction in which a model translates: how likely each side is given the other."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tfm.pipeline.decoding.teacher_forcing import target_log_probs
from tfm.pipeline.model_io.loaded_model import LoadedModel

Floats = NDArray[np.float64]
NUM_DIRECTION_PAIRS = 128
"""Pairs by which a direction is judged."""
MIN_DIRECTION_NATS = 1.0
"""Nats a piece by which pairs are likelier with their sides exchanged where a model is of the other direction."""


def measure_cross_entropies(loaded: LoadedModel, sources: Sequence[str], targets: Sequence[str]) -> Floats:
    """(n,) nats a piece of each target, infinite where it has no probability."""
    limit = loaded.model.max_length - 1
    source_ids = loaded.source_tokenizer.encode_batch(sources)
    target_ids = loaded.target_tokenizer.encode_batch(targets)
    rows = [
        row for row, (source, target) in enumerate(zip(source_ids, target_ids, strict=True))
        if source and target and len(source) <= limit and len(target) <= limit
    ]  # fmt: skip
    entropies = np.full(len(sources), np.inf)
    if rows:
        device = next(loaded.model.parameters()).device
        chosen_ids = [source_ids[row] for row in rows], [target_ids[row] for row in rows]
        log_probs = target_log_probs(loaded.model, *chosen_ids, device=device)
        entropies[rows] = -log_probs / (np.array([len(each) for each in chosen_ids[1]]) + 1)
    return entropies


def is_of_other_direction(loaded: LoadedModel, pairs: Sequence[tuple[str, str]]) -> bool:
    """Return whether a model finds sources likelier given their targets than targets given their sources.

    A model of several languages is never judged, as its direction is said.

    Args:
        loaded: the model.
        pairs: sources and targets, NUM_DIRECTION_PAIRS of which are read.
    """
    if not pairs or loaded.source_tokenizer.has_language_prefix:
        return False
    sources, targets = map(list, zip(*pairs[:NUM_DIRECTION_PAIRS], strict=True))
    entropies = np.stack(
        [measure_cross_entropies(loaded, sources, targets), measure_cross_entropies(loaded, targets, sources)]
    )
    entropies = entropies[:, np.isfinite(entropies).all(0)]
    return bool(entropies.shape[1] and entropies[0].mean() - entropies[1].mean() >= MIN_DIRECTION_NATS)
