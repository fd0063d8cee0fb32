"""Each part of a Transformer block has its share: a language model without one part at a time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.runs import map_runs, read_score, run_recipe
from bench.claims.seeds import format_seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/depth.toml"
SEEDS = (1, 2, 3)
WHOLE = "whole block"
MODELS: Mapping[str, Sequence[str]] = {
    WHOLE: (),
    "no feed-forward": ("model.feed_forward=none",),
    "no activation": ("model.activation=none",),
    "no W_o": ("model.output_projection=false",),
    "values are keys": ("model.values=keys",),
    "no W_q, W_k, W_v": ("model.attention_projections=false",),
    "one head": ("model.decoder.heads=1",),
    "no residuals": ("model.residual=none",),
    "no norm": ("model.normalization=none",),
}


def measure(seeds: Sequence[int] = SEEDS) -> Found:
    """Validation loss after the recipe's updates, by model and seed, and the parameters of each model."""
    points = [(name, seed) for name in MODELS for seed in seeds]
    trained = map_runs(train_model, points)
    runs = {name: [trained[name, seed] for seed in seeds] for name in MODELS}
    losses = {name: [read_score(each, "valid.loss") for each in of_model] for name, of_model in runs.items()}
    return {"losses": losses, "parameters": {name: count_parameters(runs[name][0]) for name in runs}}


def train_model(name: str, seed: int) -> Path:
    """The run of a model without a part, with one seed."""
    short = "".join(letter if letter.isalnum() else "-" for letter in name)
    return run_recipe(RECIPE, f"block-{short}-{seed}", f"seed={seed}", *MODELS[name])


def count_parameters(run: Path) -> int:
    """The parameters of a run's model."""
    from tfm.pipeline.model_io.loaded_model import load_model
    from tfm.pipeline.model_io.model_folder import resolve_model_folder

    return sum(each.numel() for each in load_model(resolve_model_folder(run)).model.parameters())


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: mean and deviation of each loss, and parameters in thousands."""
    texts = {name: format_seeds(losses, 2) for name, losses in data["losses"].items()}
    return texts | {f"parameters, {name}": f"{count:,}" for name, count in data["parameters"].items()}


def draw(data: Found) -> "Figure":
    """A bar for each model, a dot for each seed; the line is the whole block."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    names = list(data["losses"])[::-1]
    axes.barh(names, [fmean(data["losses"][name]) for name in names], color="#9ecae1")
    for index, name in enumerate(names):
        losses = data["losses"][name]
        axes.plot(losses, [index] * len(losses), ".", color="#08519c")
    axes.axvline(fmean(data["losses"][WHOLE]), color="#636363", linewidth=0.8)
    axes.set_xlim(min(map(min, data["losses"].values())) - 0.2)
    axes.set_title("validation loss a word after 200 updates, nats", loc="left")
    axes.grid(alpha=0.25, axis="x")
    return figure


CLAIM = Claim("each part of a block has its share", measure, figures, draw)
