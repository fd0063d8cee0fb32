"""Dual conditional cross-entropy (Junczys-Dowmunt 2018): two models find a pair equally, and well, explained.

A is the cross-entropy of the target given the source under a forward model, B that of the source given the target under
a backward one, both in nats a piece with the end of the text. The score is exp(-(|A - B| + (A + B) / 2)), in (0, 1].
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tfm.pipeline.cleaning.rules.pairs.config import CrossEntropyConfig, TranslationModelsConfig
from tfm.pipeline.cleaning.text_batch import Floats
from tfm.pipeline.decoding.teacher_forcing import target_log_probs
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.tasks.abilities import TASK_SPECS

NUM_DIRECTION_PAIRS = 128
MIN_DIRECTION_NATS = 1.0
"""Nats a piece, of both models together, by which pairs are likelier the other way round where models are exchanged."""


class DualCrossEntropy:
    """Two models that score pairs.

    Args:
        config: names them.
        device: on which they compute.
    """

    def __init__(self, config: CrossEntropyConfig, device: str) -> None:
        self.forward, self.backward = load_translation_models(config, device, "cross_entropy")

    def score(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """(n,) the score of each pair; 0 where a text has no pieces or is longer than a model reads."""
        if not pairs:
            return np.zeros(0)
        sources, targets = map(list, zip(*pairs, strict=True))
        forward = measure_cross_entropies(self.forward, sources, targets)
        backward = measure_cross_entropies(self.backward, targets, sources)
        with np.errstate(invalid="ignore"):
            scores = np.exp(-(np.abs(forward - backward) + (forward + backward) / 2))
        return np.nan_to_num(scores, nan=0.0)


def load_translation_models(config: TranslationModelsConfig, device: str, rule: str) -> tuple[LoadedModel, LoadedModel]:
    """Load the forward and the backward model of a rule.

    Args:
        config: names them.
        device: on which they compute.
        rule: its name, for messages.

    Raises:
        DataError: one is no translation model of one direction.
    """
    return _load_translation_model(config.forward, device, rule), _load_translation_model(config.backward, device, rule)


def _load_translation_model(name: str, device: str, rule: str) -> LoadedModel:
    loaded = load_model(resolve_model_folder(Path(name)), device)
    if not TASK_SPECS[loaded.config.task].translates:
        raise DataError(f"clean.{rule} needs translation models, and this is one for {loaded.config.task}",
                        file=name)  # fmt: skip
    loaded.check_has_one_direction()
    return loaded


def exchanged_models_problem(
    forward: LoadedModel, backward: LoadedModel, pairs: Sequence[tuple[str, str]], rule: str
) -> str | None:
    """Return why the models are exchanged, as it seems: pairs are likelier with source and target exchanged; else None.

    Args:
        forward: the model from source to target.
        backward: the model from target to source.
        pairs: the first of the corpus, NUM_DIRECTION_PAIRS of which are read.
        rule: its name.
    """
    if not pairs:
        return None
    sources, targets = map(list, zip(*pairs[:NUM_DIRECTION_PAIRS], strict=True))
    entropies = np.stack(
        [
            measure_cross_entropies(forward, sources, targets) + measure_cross_entropies(backward, targets, sources),
            measure_cross_entropies(forward, targets, sources) + measure_cross_entropies(backward, sources, targets),
        ]
    )
    readable = entropies[:, np.isfinite(entropies).all(0)]
    if not readable.shape[1] or readable[0].mean() - readable[1].mean() < MIN_DIRECTION_NATS:
        return None
    return (
        f"clean.{rule}: the models find pairs likelier with source and target exchanged: is `forward` the model from "
        "source to target?"
    )


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
