"""Paired bootstrap and approximate randomization over the statistics of segments.

Formulas, numbers of draws and random numbers are those of `sacrebleu.significance`: its metrics' statistics give its
p-values. Sums are matrix products, in blocks, so that memory does not grow with the number of draws.
"""

import os
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.significance.segment_statistics import Array, SegmentStatistics

RESAMPLES, TRIALS = 1_000, 10_000
"""Bootstrap resamples and trials of approximate randomization, sacrebleu's numbers."""
DEFAULT_RESAMPLING_SEED = 12345
_MAX_BLOCK_CELLS = 2**21  # cells of a block of draws, 16 MB as doubles
_ROUNDING_TOLERANCE = 1e-9  # of the scores: differences that are closer are equal


def resampling_seed() -> int | None:
    """The environment's SACREBLEU_SEED, 12345 if it is not set; None for "none": other draws each time.

    Raises RecipeError if it is no number.
    """
    text = os.environ.get("SACREBLEU_SEED", str(DEFAULT_RESAMPLING_SEED))
    if text.lower() == "none":
        return None
    if not text.isdecimal():
        raise RecipeError(f"SACREBLEU_SEED={text}: give a whole number from 0, or none for other draws each time")
    return int(text)


def bootstrap_scores(
    systems: Sequence[SegmentStatistics],
    *,
    resamples: int = RESAMPLES,
    seed: int | None = DEFAULT_RESAMPLING_SEED,
    precision: type[np.floating] = np.float64,
) -> Array:
    """Score test sets drawn with replacement, each the same for all systems.

    Efron 1979; for paired systems Koehn 2004. A resample has as many segments as the test set.

    Args:
        systems: the statistics of each system.
        resamples: the number of resamples.
        seed: of the draws; None: other ones each time.
        precision: of the sums; sacrebleu's is single.

    Returns:
        Scores (systems, resamples).
    """
    blocks: list[list[Array]] = [[] for _ in systems]
    for counts in _draw_counts(len(systems[0]), resamples, seed):
        for scores, system in zip(blocks, systems, strict=True):
            scores.append(system.score((counts @ system.rows).astype(precision)))
    return np.stack([np.concatenate(scores) for scores in blocks])


def bootstrap_p(baseline: SegmentStatistics, system: SegmentStatistics, differences: Array) -> float:
    """Compute sacrebleu's p-value of the difference d: the share of resamples with |d*| - mean |d*| > |d|.

    The test is in effect one-sided where the difference is clear: systems that are the same fall below 0.05 in about 11
    of 100 test sets, not in 5. The `interval` of the differences holds its level.

    Args:
        baseline: the statistics of one system.
        system: those of the other.
        differences: the differences d* of their scores in the resamples.
    """
    sizes = np.abs(differences)
    num_exceeding = int((sizes - sizes.mean() > abs(system.value - baseline.value)).sum())
    return (num_exceeding + 1) / (len(sizes) + 1)


def percentile_interval(scores: Array) -> tuple[float, float]:
    """The 2.5th and 97.5th percentile of bootstrap scores, the two whose half distance sacrebleu prints after ±."""
    sorted_scores = np.sort(scores)
    tail = len(sorted_scores) // 40
    return float(sorted_scores[tail]), float(sorted_scores[-tail - 1])


def mean_and_half_width(scores: Array) -> tuple[float, float]:
    """The numbers that sacrebleu prints in "μ = mean ± half width": of bootstrap scores, in their own precision."""
    sorted_scores = np.sort(scores)
    tail = len(sorted_scores) // 40
    return float(sorted_scores.mean()), float(0.5 * (sorted_scores[-tail - 1] - sorted_scores[tail]))


def randomisation_p_values(
    baseline: SegmentStatistics,
    systems: Sequence[SegmentStatistics],
    *,
    trials: int = TRIALS,
    seed: int | None = DEFAULT_RESAMPLING_SEED,
) -> list[tuple[float, float]]:
    """Test differences by approximate randomization, two-sided (Noreen 1989; Riezler and Maxwell 2005).

    Each trial swaps the two systems' rows of a segment or does not, by a coin. The p-value is the share of trials whose
    scores differ by at least the observed difference, (count + 1) / (trials + 1) (Phipson and Smyth 2010). Ties count,
    where sacrebleu counts only greater differences: ties are frequent where a score has few values, as exact match has,
    or where few segments differ. For two systems that differ in one segment sacrebleu says 0.0001, and this test 1.

    Args:
        baseline: the statistics of one system.
        systems: those of each other one, on the same segments; all have the same coins.
        trials: the number of trials.
        seed: of the coins; None: other ones each time.

    Returns:
        For each system its p-value, and the one that sacrebleu prints, without ties.
    """
    observed = [abs(system.value - baseline.value) for system in systems]
    rounding = [_ROUNDING_TOLERANCE * max(abs(baseline.value), abs(system.value)) for system in systems]
    rows = np.concatenate([baseline.rows, *(system.rows for system in systems)], axis=-1)  # one product for all
    at_least, greater = np.zeros(len(systems), dtype=np.int64), np.zeros(len(systems), dtype=np.int64)
    for is_swapped in _draw_swaps(len(baseline), trials, seed):
        in_place, exchanged = (
            np.split(each @ rows, len(systems) + 1, axis=-1) for each in (1 - is_swapped, is_swapped)
        )
        for index, system in enumerate(systems):
            system_sums, baseline_sums = exchanged[0] + in_place[index + 1], in_place[0] + exchanged[index + 1]
            with np.errstate(invalid="ignore"):  # two infinite perplexities
                differences = np.abs(system.score(system_sums) - system.score(baseline_sums))
            at_least[index] += (differences >= observed[index] - rounding[index]).sum()
            greater[index] += (differences > observed[index]).sum()
    return [
        ((ties + 1) / (trials + 1), (rest + 1) / (trials + 1))
        for ties, rest in zip(at_least.tolist(), greater.tolist(), strict=True)
    ]


def _draw_counts(num_segments: int, resamples: int, seed: int | None) -> Iterator[Array]:
    """Blocks (draws, segments) of the number of times that each segment was drawn."""
    rng = np.random.default_rng(seed)
    for size in _block_sizes(num_segments, resamples):
        indexes = rng.choice(num_segments, size=(size, num_segments), replace=True)
        indexes += num_segments * np.arange(size)[:, None]
        counts = np.bincount(indexes.ravel(), minlength=size * num_segments)
        yield counts.reshape(size, num_segments).astype(np.float64)


def _draw_swaps(num_segments: int, trials: int, seed: int | None) -> Iterator[Array]:
    """Blocks (trials, segments) with 1 where a segment is swapped, 0 elsewhere."""
    rng = np.random.default_rng(seed)
    for size in _block_sizes(num_segments, trials):
        swaps: NDArray[np.bool_] = rng.integers(2, size=(size, num_segments), dtype=bool)
        yield swaps.astype(np.float64)


def _block_sizes(num_segments: int, draws: int) -> Iterator[int]:
    """Sizes of blocks: multiples of 32, as numpy cuts 32 coins from a number, so that blocks change no draw."""
    size = 32 * max(1, _MAX_BLOCK_CELLS // (32 * num_segments))
    for start in range(0, draws, size):
        yield min(size, draws - start)
