"""Residual connections and layer norm make depth trainable: a language model of 2 to 24 layers, few updates."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.runs import map_runs, read_score, run_recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/depth.toml"
DEPTHS = (2, 8, 24)
MAX_DRAWN = 6.9  # log of the vocabulary
PRE, POST, NO_NORM, NO_RESIDUAL, NEITHER = "pre-norm", "post-norm", "no norm", "no residuals", "neither"
MODELS: Mapping[str, Sequence[str]] = {
    PRE: (),
    POST: ("model.norm=post",),
    NO_NORM: ("model.normalization=none",),
    NO_RESIDUAL: ("model.residual=none",),
    NEITHER: ("model.normalization=none", "model.residual=none"),
}


def measure(depths: Sequence[int] = DEPTHS) -> Found:
    """Validation loss after the recipe's updates, by model and depth; none where it is no number."""
    points = [(name, depth) for name in MODELS for depth in depths]
    trained = map_runs(train_model, points)
    losses = {name: [read_score(trained[name, depth], "valid.loss") for depth in depths] for name in MODELS}
    return {"depths": list(depths), "losses": losses}


def train_model(name: str, depth: int) -> Path:
    """The run of a model of so many layers."""
    short = name.replace(" ", "-")
    return run_recipe(RECIPE, f"{short}-{depth}", f"model.decoder.layers={depth}", *MODELS[name])


def figures(found: Found) -> dict[str, str]:
    """The figures that the text quotes: every loss."""
    return {
        f"{name}, {depth} layers": f"{loss:,.2f}"
        for name, losses in found["losses"].items()
        for depth, loss in zip(found["depths"], losses, strict=True)
    }


def draw(found: Found) -> "Figure":
    """Loss over depth, as far as a loss is below that of a network that has learned nothing."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for name, losses in found["losses"].items():
        axes.plot(found["depths"], losses, marker=".", label=name)
    axes.set_ylim(min(map(min, found["losses"].values())) - 0.2, MAX_DRAWN)
    axes.set_xticks(found["depths"])
    axes.set_xlabel("layers")
    axes.set_title("validation loss a word after 200 updates, nats", loc="left")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure


CLAIM = Claim("residual connections and norms make depth trainable", measure, figures, draw)
