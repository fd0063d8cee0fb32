"""Figures of several seeds: their mean and standard deviation, and both as text."""

from collections.abc import Sequence
from statistics import fmean, stdev


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (n - 1) of the values of seeds; of one seed 0."""
    return fmean(values), stdev(values) if len(values) > 1 else 0.0


def format_seeds(values: Sequence[float], digits: int = 1, unit: str = "") -> str:
    """Mean ± deviation of the values of seeds, as texts quote them."""
    mean, deviation = mean_and_deviation(values)
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}{unit}"
