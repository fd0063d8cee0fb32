"""Whether pairs are in the direction in which a model translates: how likely each side is given the other."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tfm.data.errors import DataError
from tfm.pipeline.decoding.teacher_forcing import target_log_probs
from tfm.pipeline.model_io.language_selection import format_codes, needs_languages
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


def select_languages_both_ways(
    forward: LoadedModel, backward: LoadedModel, to: str | None, source_language: str | None
) -> tuple[LoadedModel, LoadedModel]:
    """Return the models of both directions, each told those of the languages of source and target that it is told.

    Args:
        forward: translates from source to target.
        backward: translates from target to source.
        to: the language of the target; None: not named.
        source_language: the language of the source; None: not named.

    Raises:
        DataError: a model needs a language that is not named, or does not have it, or neither is told a language that
            is named.
    """
    tokenizer, other = forward.source_tokenizer, backward.source_tokenizer
    forward = forward.for_languages(
        to if tokenizer.languages or not other.has_source_language else None,
        source_language if tokenizer.has_source_language or not other.languages else None,
    )
    asked = {"--from": source_language if other.languages else None}
    if other.has_source_language:
        asked["--to"] = to
    missing_option = next((option for option, language in asked.items() if language is None), None)
    if missing_option is None or not other.languages:
        return forward, backward.for_languages(asked["--from"], asked.get("--to"))
    if needs_languages(other, backward.config.languages):
        codes = format_codes([*other.languages], " or ")
        problem = f"is told languages, and translates from target to source here: say which, {missing_option} {codes}"
        raise DataError(problem, file=backward.folder)
    return forward, backward
