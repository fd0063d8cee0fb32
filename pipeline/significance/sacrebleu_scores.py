"""sacrebleu's scores of many sums of statistics at once, each to the last bit what its metric makes of one sum.

A test needs 20,000 scores of a pair of systems, and sacrebleu makes them one by one. Quotients keep the precision of
the sums, single or double, as sacrebleu's do; logarithms and exponentials are those of `math`.
"""

import math

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.utils import my_log

from tfm.pipeline.scoring.metrics.sacrebleu_statistics import SacrebleuMetric

Sums = NDArray[np.floating]
Scores = NDArray[np.floating]


def score_sums(metric: SacrebleuMetric, sums: Sums) -> Scores:
    """Compute the scores (...) of sums (..., K) of a metric's statistics of segments."""
    rows = sums.reshape(-1, sums.shape[-1])
    if isinstance(metric, BLEU):
        scores = _bleu(metric, rows)
    elif isinstance(metric, CHRF):
        scores = _chrf(metric, rows)
    else:
        scores = _ter(rows)
    return scores.reshape(sums.shape[:-1])


def _bleu(metric: BLEU, sums: Sums) -> Scores:
    """BP exp(mean log p_n) (Papineni et al. 2002); of sums (N, 2 + 2 orders): both lengths, n-grams that match, all.

    "exp" smoothing takes 1/2 for the first order of which no n-gram matches, 1/4 for the second, …
    """
    if metric.effective_order or metric.smooth_method not in ("exp", "none"):
        raise ValueError(f"no sums by smoothing {metric.smooth_method}, effective order {metric.effective_order}")
    order = metric.max_ngram_order
    length, reference_length = sums[:, 0].astype(np.float64), sums[:, 1].astype(np.float64)
    correct, total = sums[:, 2 : 2 + order], sums[:, 2 + order :]
    exists = np.cumprod(total != 0, axis=-1, dtype=bool)
    unmatched = exists & (correct == 0)
    if metric.smooth_method == "exp":
        correct = np.where(unmatched, 0.5 ** unmatched.cumsum(-1, dtype=sums.dtype), correct)
    precisions = np.divide(100 * correct, total, out=np.zeros_like(correct), where=exists)
    shortness = 1 - np.divide(reference_length, length, out=np.full_like(length, np.inf), where=length > 0)
    brevity = [1.0 if short >= 0 else math.exp(short) for short in shortness.tolist()]
    logs = np.array(list(map(math.log, np.where(precisions == 0, 1, precisions).ravel().tolist())))
    rows = np.where(precisions == 0, my_log(0), logs.reshape(-1, order)).tolist()
    means = [sum(row) / order for row in rows]
    scores = np.array([penalty * math.exp(mean) for penalty, mean in zip(brevity, means, strict=True)])
    return np.where(sums[:, 2 : 2 + order].any(-1), scores, 0.0)


def _chrf(metric: CHRF, sums: Sums) -> Scores:
    """F_beta of the mean precision and recall (Popović 2015) over the orders that occur on both sides.

    Sums (N, 3 orders): n-grams of the hypothesis, of the reference, and those that match.
    """
    hypothesis_ngrams, reference_ngrams, matches = (sums[:, index::3] for index in range(3))
    counts = (hypothesis_ngrams > 0) & (reference_ngrams > 0)
    precisions, recalls = (
        np.divide(matches, totals, out=np.zeros_like(matches), where=counts)
        for totals in (hypothesis_ngrams, reference_ngrams)
    )
    precision, recall = np.zeros_like(sums[:, 0]), np.zeros_like(sums[:, 0])
    for index in range(metric.order):  # one by one, as the order of additions decides the last bit
        precision += precisions[:, index]
        recall += recalls[:, index]
    orders = np.maximum(counts.sum(-1), 1).astype(sums.dtype)
    precision, recall = precision / orders, recall / orders
    weight = metric.beta**2
    score, denominator = (1 + weight) * precision * recall, weight * precision + recall
    scores: Scores = 100 * np.divide(score, denominator, out=np.zeros_like(score), where=denominator > 0)
    return scores


def _ter(sums: Sums) -> Scores:
    """100 edits / words of the reference; 100 if the reference has no words but there are edits."""
    edits, words = sums[:, 0], sums[:, 1]
    scores: Scores = 100 * np.divide(edits, words, out=(edits > 0).astype(sums.dtype), where=words > 0)
    return scores
