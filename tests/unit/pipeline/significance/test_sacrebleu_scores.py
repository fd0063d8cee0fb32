"""Scores of many sums at once: to the last bit those that sacrebleu makes of each, whatever the sums are."""

from typing import Any

import numpy as np
import pytest

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.registry import SACREBLEU_METRICS, sacrebleu_metric
from tfm.pipeline.scoring.metrics.tokenization import make_bleu
from tfm.pipeline.significance.sacrebleu_scores import score_sums

CONFIG = EvaluationConfig()
REFERENCES = [["ein Hund läuft über die Straße ."]]


def draw_sums(metric: Any, num: int) -> np.ndarray:
    """Sums as texts give them, small and large, with orders that are missing and orders that nothing matches."""
    draw = np.random.default_rng(num)
    size = 10 ** draw.uniform(0, 5, size=(num, 1))
    if metric == "ter":
        return np.floor(draw.uniform(0, 1, size=(num, 2)) * size) * draw.integers(0, 2, size=(num, 2)) / 2
    if metric.startswith("chrf"):
        order = 8 if metric == "chrf++" else 6
        sides = np.floor(draw.uniform(0, 1, size=(num, order, 2)) * size[..., None]) * (
            draw.random((num, order, 1)) > 0.1
        )
        matched = np.floor(sides.min(-1) * draw.uniform(0, 1, size=(num, order))) * (draw.random((num, order)) > 0.1)
        return np.concatenate([sides, matched[..., None]], axis=-1).reshape(num, -1)
    total = np.sort(np.floor(draw.uniform(0, 1, size=(num, 4)) * size), axis=-1)[:, ::-1]
    correct = np.floor(total * draw.uniform(0, 1, size=(num, 4))) * (draw.random((num, 4)) > 0.2)
    lengths = np.floor(total[:, :1] * draw.uniform(0.5, 1.5, size=(num, 2)))
    return np.concatenate([lengths, correct, total], axis=-1)


@pytest.mark.parametrize("precision", [np.float64, np.float32])
@pytest.mark.parametrize("name", SACREBLEU_METRICS)
def test_equal_sacrebleu_to_the_last_bit(name: str, precision: type[np.floating]) -> None:
    metric: Any = sacrebleu_metric(name, REFERENCES, CONFIG)
    sums = draw_sums(name, 2000).astype(precision)
    sums[0] = 0
    expected = [metric._compute_score_from_stats(row).score for row in sums]
    found = score_sums(metric, sums)
    assert found.tolist() == [float(score) for score in expected]
    assert len(set(found.tolist())) > 300
    assert (score_sums(metric, sums.reshape(20, 100, -1)) == found.reshape(20, 100)).all()
    assert float(score_sums(metric, sums[7])) == found[7]


def test_other_smoothing_is_refused() -> None:
    metric = make_bleu(CONFIG.model_copy(update={"bleu_tokenize": "13a"}), effective_order=True)
    with pytest.raises(ValueError, match="effective order True"):
        score_sums(metric, np.ones((1, 10)))
