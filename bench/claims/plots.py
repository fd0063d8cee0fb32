"""Pictures of claims that have one form: lines over numbers, with a grid and a legend."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_lines(
    numbers: Sequence[float], lines: Mapping[str, Sequence[float]], *, xlabel: str, title: str
) -> tuple["Figure", "Axes"]:
    """Draw a line for each name over the same numbers.

    Args:
        numbers: n places on the horizontal axis.
        lines: by name, n values.
        xlabel: what the numbers are.
        title: what the values are.
    """
    figure, axes = _draw_frame(xlabel, title)
    for name, values in lines.items():
        axes.plot(numbers, values, marker=".", label=name)
    axes.legend(frameon=False)
    return figure, axes


def draw_deviations(
    numbers: Sequence[int], lines: Mapping[str, Sequence[tuple[float, float]]], *, xlabel: str, title: str
) -> "Figure":
    """Draw means and deviations for each name over the same numbers, on a log axis.

    Args:
        numbers: n places on the horizontal axis.
        lines: by name, n pairs of a mean and a standard deviation.
        xlabel: what the numbers are.
        title: what the values are.
    """
    figure, axes = _draw_frame(xlabel, title)
    for name, pairs in lines.items():
        means, deviations = zip(*pairs, strict=True)
        axes.errorbar(numbers, means, deviations, marker=".", capsize=3, label=name)
    mark_log_axis(axes, numbers)
    axes.legend(frameon=False)
    return figure


def mark_log_axis(axes: "Axes", numbers: Sequence[int]) -> None:
    """Give axes a horizontal log axis with marks at these numbers alone."""
    axes.set_xscale("log")
    axes.set_xticks(numbers, [f"{each:,}" for each in numbers])
    axes.minorticks_off()


def _draw_frame(xlabel: str, title: str) -> tuple["Figure", "Axes"]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(xlabel)
    axes.set_title(title, loc="left")
    axes.grid(alpha=0.25)
    return figure, axes
