"""Holm's correction: several comparisons with one baseline, and the chance of one false claim among them stays 5 %."""

from collections.abc import Sequence

SIGNIFICANCE_LEVEL = 0.05


def holm_correction(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number (Holm 1979): compare each with the level, as one would a single one.

    With p sorted upwards, p_(1) <= … <= p_(m), the corrected one is the largest of min(1, (m - j + 1) p_(j)) over j <=
    i. The chance that any of all claims below 0.05 is false is at most 5 %, however the tests depend on each other.
    Returns the p-values in the order given.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted_p_values, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted_p_values[index] = largest
    return adjusted_p_values


def format_p_value(p: float) -> str:
    """A p-value as tables show it: with four digits, and never as 0."""
    return f"{p:.4f}" if p >= 0.00005 else "<0.0001"
