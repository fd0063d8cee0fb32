"""Drawing configurations beats a grid where few hyperparameters matter (Bergstra and Bengio 2012).

A grid of k values for each of m hyperparameters tries k^m configurations, and only k values of the one that matters.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bench.claims.claim import Claim, Found

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_KEYS = 3
SIDES = (2, 3, 4, 5)
GRID, DRAWN = "grid", "drawn uniformly"


def measure(sides: Sequence[int] = SIDES, num_keys: int = NUM_KEYS, draws: int = 4000) -> Found:
    """Mean distance of the nearest configuration from the best, as a share of a range, by number of configurations.

    One hyperparameter of several matters, and its best value is drawn again each time.
    """
    generator = np.random.default_rng(1)
    distances_by_case: dict[str, dict[str, list[float]]] = {}
    for matter in (1, num_keys):
        lines = distances_by_case[f"{matter} of {num_keys} matter" if matter > 1 else f"1 of {num_keys} matters"] = {}
        for side in sides:
            values = (np.arange(side) + 0.5) / side
            grid = np.stack(np.meshgrid(*[values] * num_keys), -1).reshape(-1, num_keys)
            for name in (GRID, DRAWN):
                distances = []
                for _ in range(draws):
                    configurations = grid if name == GRID else generator.random(grid.shape)
                    differences = configurations[:, :matter] - generator.random(matter)
                    distances.append(np.abs(differences).max(1).min())
                lines.setdefault(name, []).append(float(np.mean(distances)))
    return {"trials": [side**num_keys for side in sides], "distances": distances_by_case}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    return {
        f"{case}, {name}, {trials} configurations": f"{distance:.3f}"
        for case, lines in data["distances"].items()
        for name, distances in lines.items()
        for trials, distance in zip(data["trials"], distances, strict=True)
    }


def draw(data: Found) -> "Figure":
    """Distances over the number of configurations, on log axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (case, lines) in zip(panels, data["distances"].items(), strict=True):
        for name, distances in lines.items():
            axes.plot(data["trials"], distances, marker=".", label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(data["trials"], [str(each) for each in data["trials"]])
        axes.set_xlabel("configurations")
        axes.set_title(f"distance from the best value: {case}", loc="left")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    return figure


CLAIM = Claim("drawing configurations beats a grid where few hyperparameters matter", measure, figures, draw)
