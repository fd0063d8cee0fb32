"""Stacked windows ignore what is far away, attention sees all: the gradient of an output by distance.

A layer that sees r rows back, L times: L r rows back. No row beyond has any influence, and its gradient is exactly 0.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from bench.claims.claim import Claim, Found
from bench.claims.recurrence.gradients import add_norms, gradient_norms, make_layers, read_attention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REACH = 4
MODELS: Mapping[str, Mapping[str, object]] = {
    f"convolution over {REACH} words before": {"mixing": "convolution", "window": REACH},
    f"attention, window of {REACH}": {"window": REACH},
    "attention": {},
}
DEPTHS = (2, 6)


def measure(dim: int = 64, length: int = 64, draws: int = 10) -> Found:
    """Norms of the gradient of the last output with respect to each input, by model, depth and distance."""
    norms = {name: {str(depth): [0.0] * length for depth in DEPTHS} for name in MODELS}
    for seed in range(draws):
        torch.manual_seed(seed)
        rows = torch.randn(length, dim)
        for name, model in MODELS.items():
            for depth in DEPTHS:
                network = read_attention(make_layers({**model, "positions": "none"}, dim, depth))
                add_norms(norms[name][str(depth)], gradient_norms(network, rows), draws)
    return {"reach": REACH, "norms": norms}


def farthest(norms: list[float]) -> int:
    """The largest distance at which a gradient is not 0."""
    return max(place for place, norm in enumerate(norms) if norm > 0)


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: how far each model sees."""
    return {
        f"{name}, {depth} layers: farthest row": str(farthest(norms))
        for name, by_depth in data["norms"].items()
        for depth, norms in by_depth.items()
    }


def draw(data: Found) -> "Figure":
    """Norms over distance, on a log axis; where a line ends, the gradient is 0."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 3.8), layout="constrained")
    axes = figure.subplots()
    for (name, by_depth), colour in zip(data["norms"].items(), ("#e6550d", "#31a354", "#3182bd"), strict=True):
        for (depth, norms), style in zip(by_depth.items(), ("-", "--"), strict=True):
            visible_norms = norms[: farthest(norms) + 1]
            axes.plot(visible_norms, style, color=colour, label=f"{name}, {depth} layers")
    axes.set_yscale("log")
    axes.set_xlabel("distance; a line ends where the gradient is 0")
    axes.set_title("norm of the gradient of the last output with respect to an input", loc="left")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure


CLAIM = Claim("stacked windows ignore what is far away; attention sees all", measure, figures, draw)
