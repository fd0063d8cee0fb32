"""What preprocessing and training count, counted again by plain loops. Nothing of `tfm` is imported here.

Only the draws are shared, as they are part of what a dataset means: an epoch's first batch gets a share of the budget,
drawn by numpy from (seed, epoch, 2), and one more draw says which way lengths turn.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Pair = tuple[int, int]


def num_batches(lengths: Sequence[Pair], budget: int, seed: int, epoch: int) -> int:
    """Batches of an epoch of pairs of lengths (end tokens counted): rows by their longer side, each batch filled while
    rows times the longest row stays within the budget."""
    first = max(int(np.random.default_rng([seed, epoch, 2]).random() * budget), 1)
    room, rows, found = first, 0, 0
    for longest in sorted(max(pair) for pair in lengths):
        if rows and (rows + 1) * longest > room:
            found, rows, room = found + 1, 0, budget
        rows += 1
    return found + (rows > 0)


def num_updates(lengths: Sequence[Pair], budget: int, seed: int, epochs: int, accumulate: int = 1) -> int:
    """Updates of a training of whole epochs: each ends with what is left of its batches."""
    batches = [num_batches(lengths, budget, seed, epoch) for epoch in range(epochs)]
    return sum(math.ceil(each / accumulate) for each in batches)


def kept(
    pairs: Sequence[tuple[str, str]], lengths: Sequence[Pair], limits: Mapping[str, Any]
) -> tuple[list[int], dict[str, int]]:
    """The rows of training data that stay, and how many are dropped, each for the first reason there is.

    lengths: of each pair, in pieces without end tokens.
    """
    rows, seen = [], set()
    dropped = {"empty": 0, "too long": 0, "length ratio": 0, "duplicate": 0}
    for row, (texts, (one, other)) in enumerate(zip(pairs, lengths, strict=True)):
        if not texts[0].strip() or not texts[1].strip():
            dropped["empty"] += 1
        elif max(one, other) > limits["max_length"]:
            dropped["too long"] += 1
        elif limits["max_ratio"] and max(one, other) > limits["max_ratio"] * min(one, other):
            dropped["length ratio"] += 1
        elif limits["duplicates"] == "drop" and texts in seen:
            dropped["duplicate"] += 1
        else:
            rows.append(row)
            seen.add(texts)
    return rows, dropped


def repeated(texts: Sequence[Any]) -> int:
    """How many came before."""
    return len(texts) - len(set(texts))


def found_in(texts: Sequence[Any], others: Sequence[Any]) -> int:
    """How many are among others."""
    return sum(text in set(others) for text in texts)


def rate(name: str, step: int, total: int, schedule: Mapping[str, Any], width: int) -> float:
    """The learning rate of update `step`, from 1, of `total`."""
    peak, warm, final = schedule["peak"], schedule["warmup_steps"], schedule["final"]
    if name == "noam":
        return peak * width**-0.5 * min(step**-0.5, step * warm**-1.5)
    rising = step / warm if step < warm else 1.0
    past = (step - warm) / (total - warm) if step > warm else 0.0
    if name == "inverse_sqrt":
        return peak * (rising if step < warm else (warm / step) ** 0.5)
    if name == "cosine":
        return rising * (final + (peak - final) * (1 + math.cos(math.pi * past)) / 2)
    if name == "linear":
        return rising * (peak - (peak - final) * past)
    if name == "step":
        return (
            rising
            * peak
            * schedule["factor"] ** (max(step - warm - schedule["hold_steps"], 0) // schedule["decay_steps"])
        )
    if name == "warmup_stable_decay":
        left = total - step
        if left >= schedule["decay_steps"]:
            return rising * peak
        return rising * (final + (peak - final) * left / schedule["decay_steps"])
    assert name == "constant"
    return rising * peak


def plateau_rate(step: int, losses: Sequence[float], schedule: Mapping[str, Any]) -> float:
    """The rate after so many validations: a cut whenever more than `patience` in a row brought no new lowest loss."""
    peak, best, waited = schedule["peak"], math.inf, 0
    for loss in losses:
        waited = 0 if loss < best else waited + 1
        best = min(best, loss)
        if waited > schedule["patience"]:
            peak, waited = max(peak * schedule["factor"], schedule["final"]), 0
    return peak * min(1.0, step / schedule["warmup_steps"])
