"""Residual connections and layer norm make depth trainable: a language model of 2 to 24 layers, few updates."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.plots import draw_deviations
from bench.claims.runs import map_runs, read_score, run_recipe
from bench.claims.seeds import format_seeds, mean_and_deviation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/depth.toml"
DEPTHS, SEEDS = (2, 8, 24), (1, 2, 3)
MAX_DRAWN = 6.9  # log of the vocabulary
PRE, POST, NO_NORM, NO_RESIDUAL, NEITHER = "pre-norm", "post-norm", "no norm", "no residuals", "neither"
MODELS: Mapping[str, Sequence[str]] = {
    PRE: (),
    POST: ("model.norm=post",),
    NO_NORM: ("model.normalization=none",),
    NO_RESIDUAL: ("model.residual=none",),
    NEITHER: ("model.normalization=none", "model.residual=none"),
}


def measure(depths: Sequence[int] = DEPTHS, seeds: Sequence[int] = SEEDS) -> Found:
    """Validation losses of seeds after the recipe's updates, by model and depth."""
    points = [(name, depth, seed) for name in MODELS for depth in depths for seed in seeds]
    trained = map_runs(train_model, points)
    losses = {
        name: [[read_score(trained[name, depth, seed], "valid.loss") for seed in seeds] for depth in depths]
        for name in MODELS
    }
    return {"depths": list(depths), "seeds": list(seeds), "losses": losses}


def train_model(name: str, depth: int, seed: int = 1) -> Path:
    """The run of a model of so many layers."""
    variant = f"{name.replace(' ', '-')}-{depth}-{seed}"
    return run_recipe(RECIPE, variant, f"model.decoder.layers={depth}", f"seed={seed}", *MODELS[name])


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: mean and deviation of seeds; of those that diverged, each loss."""
    return {
        f"{name}, {depth} layers": format_losses(losses)
        for name, losses_by_depth in data["losses"].items()
        for depth, losses in zip(data["depths"], losses_by_depth, strict=True)
    }


def format_losses(losses: Sequence[float]) -> str:
    """Mean and deviation, or each of the losses where one is worse than a network that has learned nothing."""
    if max(losses) > MAX_DRAWN or not all(map(math.isfinite, losses)):
        return ", ".join(f"{loss:,.2f}" for loss in losses)
    return format_seeds(losses, 2)


def draw(data: Found) -> "Figure":
    """Loss over depth, on a log axis, as far as it is below that of a network that has learned nothing."""
    lines = {
        name: [mean_and_deviation(losses if max(losses) <= MAX_DRAWN else [max(losses)]) for losses in losses_by_depth]
        for name, losses_by_depth in data["losses"].items()
    }
    title = "validation loss a word after 200 updates, nats"
    figure = draw_deviations(data["depths"], lines, xlabel="layers", title=title)
    lowest = min(loss for losses_by_depth in data["losses"].values() for losses in losses_by_depth for loss in losses)
    figure.axes[0].set_ylim(lowest - 0.2, MAX_DRAWN)
    return figure


CLAIM = Claim("residual connections and norms make depth trainable", measure, figures, draw)
