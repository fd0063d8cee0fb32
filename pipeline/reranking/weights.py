"""The weights of features: the score of a translation is their weighted sum. Tuned on validation by random search.

A draw has each weight uniform in its range, by a seed (Bergstra and Bengio 2012); the first has the direct model alone,
so that on validation no tuned weights are worse than none. Only the ratios of weights matter.

Legend: N translations · F features.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfm.data.json_documents import read_json
from tfm.pipeline.artifacts.files import write_text_atomically
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.errors import DataError
from tfm.pipeline.reranking.lists import NBestList
from tfm.pipeline.significance.segment_statistics import segment_statistics

FEATURE_NAMES = ("direct", "channel", "language_model", "length")
WEIGHT_RANGES = {"direct": (0.0, 1.0), "channel": (0.0, 1.0), "language_model": (0.0, 1.0), "length": (-1.0, 1.0)}
MIN_WEIGHT, MAX_WEIGHT = 1e-30, 1e6
"""Sizes of a weight that is not 0: weighted sums of features are finite numbers, and none of them is rounded away."""
DIRECT_MODEL_WEIGHTS = (1.0, 0.0, 0.0, 0.0)
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class FeatureWeights:
    """Weights of features, in the order of FEATURE_NAMES.

    Args:
        values: one a feature.
        models: fingerprints of the models that they were tuned for, by feature; empty if they were typed.
        tuning: metric, its value, trials and seed, as they were tuned.
    """

    values: tuple[float, ...]
    models: dict[str, str]
    tuning: dict[str, Any]

    def write(self, file: Path) -> None:
        """Write the weights as JSON."""
        weights = dict(zip(FEATURE_NAMES, self.values, strict=True))
        document = {"weights": weights, "models": self.models, "tuning": self.tuning}
        write_text_atomically(file, json.dumps(document, indent=2) + "\n")


def read_weights(file: Path) -> FeatureWeights:
    """Read what `FeatureWeights.write` wrote. Raises DataError if it is no such file."""
    try:
        document: Any = read_json(file)
    except FileNotFoundError:
        raise DataError("no such file: make it with `tfm rerank --tune`", file=file) from None
    weights = document.get("weights") if isinstance(document, dict) else None
    if not isinstance(weights, dict) or set(weights) != set(FEATURE_NAMES):
        raise DataError(f"has no weights of {', '.join(FEATURE_NAMES)}: make it with `tfm rerank --tune`", file=file)
    values = tuple(weights[name] for name in FEATURE_NAMES)
    for name, value in zip(FEATURE_NAMES, values, strict=True):
        if type(value) not in (int, float):
            raise DataError(f"has a weight of {name} that is no number", file=file)
        if value and not MIN_WEIGHT <= abs(value) <= MAX_WEIGHT:
            problem = f"has a weight of {name} that is not from {MIN_WEIGHT:g} to {MAX_WEIGHT:g} in size"
            raise DataError(f"{problem}: scale the weights, of which only the ratios matter", file=file)
    if not any(values):
        raise DataError(
            "has no weight but 0, by which no translation is better than another: tune the weights again", file=file
        )
    models, tuning = document.get("models", {}), document.get("tuning", {})
    if (
        not isinstance(models, dict)
        or not isinstance(tuning, dict)
        or not all(isinstance(x, str) for x in models.values())
    ):
        raise DataError("has no fingerprints of models: make it with `tfm rerank --tune`", file=file)
    return FeatureWeights(tuple(map(float, values)), models, tuning)


def check_weights_fit_models(weights: FeatureWeights, fingerprints: dict[str, str], file: Path) -> None:
    """Raise DataError if the weights are for models that are not given, or for others, or for fewer.

    Args:
        weights: the weights.
        fingerprints: fingerprints of the models, by feature.
        file: of the weights.
    """
    for name, weight in zip(FEATURE_NAMES, weights.values, strict=True):
        if name not in ("channel", "language_model"):
            continue
        flag = f"--{name.replace('_', '-')}"
        if weight and name not in fingerprints:
            raise DataError(f"has a weight of {name}: give the model by {flag}", file=file)
        if name in fingerprints and name in weights.models and weights.models[name] != fingerprints[name]:
            raise DataError(f"was tuned with another model as {flag}: tune the weights again", file=file)
        if name in fingerprints and not weight and weights.models and name not in weights.models:
            problem = f"was tuned without {flag}, which has no effect by these weights"
            raise DataError(f"{problem}: remove it, or tune the weights again", file=file)


def choose_best(scores: Floats, lists: Sequence[NBestList]) -> Ints:
    """(lists,) the row of the best translation of each list; of equals the first.

    Args:
        scores: (N,) of the translations of all lists, list after list.
        lists: the lists.
    """
    ends = np.cumsum([len(each.translations) for each in lists])
    begins = ends - [len(each.translations) for each in lists]
    best = [begin + int(np.argmax(scores[begin:end])) for begin, end in zip(begins, ends, strict=True)]
    return np.array(best, np.int64)


def tune_weights(
    features: Floats,
    lists: Sequence[NBestList],
    references: Sequence[str],
    names: Sequence[str],
    *,
    metric: str = "bleu",
    trials: int = 1000,
    seed: int = 1,
    models: dict[str, str] | None = None,
) -> FeatureWeights:
    """Return the weights by which the best translations have the best score of a corpus.

    Args:
        features: (N, F).
        lists: whose translations they are of.
        references: one a list.
        names: the features that have a weight; others have 0.
        metric: a metric whose statistics of segments add up: bleu, chrf, ter, ...
        trials: the number of draws.
        seed: of the draws.
        models: fingerprints of the models, by feature.

    Raises:
        DataError: there are not as many references as lists.
    """
    if len(references) != len(lists):
        raise DataError(f"{len(references):,} references of {len(lists):,} lists: give one for each line")
    counts = [len(each.translations) for each in lists]
    texts = [translation.text for each in lists for translation in each.translations]
    repeated_references = [reference for reference, count in zip(references, counts, strict=True) for _ in range(count)]
    (statistics,) = segment_statistics(metric, [texts], [repeated_references], EvaluationConfig())
    rng, best_value = np.random.default_rng(seed), -math.inf
    best: tuple[float, ...] = DIRECT_MODEL_WEIGHTS
    direct_alone = 0.0
    for number in range(trials + 1):
        draws = rng.uniform(
            [WEIGHT_RANGES[name][0] for name in FEATURE_NAMES], [WEIGHT_RANGES[name][1] for name in FEATURE_NAMES]
        )
        values = [float(value) if name in names else 0.0 for name, value in zip(FEATURE_NAMES, draws, strict=True)]
        weights = tuple(values) if number else DIRECT_MODEL_WEIGHTS
        rows = choose_best(features @ np.array(weights), lists)
        value = float(statistics.score(statistics.rows[rows].sum(0))) * (1 if statistics.higher_is_better else -1)
        if not number:
            direct_alone = value
        if value > best_value:
            best, best_value = weights, value
    sign = 1 if statistics.higher_is_better else -1
    first = float(statistics.score(statistics.rows[choose_best(np.zeros(len(texts)), lists)].sum(0)))
    tuning = {
        "metric": metric,
        "value": sign * best_value,
        "direct_alone": sign * direct_alone,
        "first": first,
        "trials": trials,
        "seed": seed,
    }
    return FeatureWeights(best, models or {}, tuning)
