"""Dropout regularises: a model that could learn its 2,000 pairs by heart, with and without (Srivastava et al. 2014)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.runs import run_recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/dropout.toml"
RATES = (0.0, 0.1, 0.3)
CURVES = {"train": "train.nll", "validation": "valid.loss"}


def measure(rates: Sequence[float] = RATES) -> Found:
    """Losses of training and of validation by update, for each rate."""
    import tfm

    curves: dict[str, dict[str, list[list[float]]]] = {}
    for rate in rates:
        sets = [f"model.dropout.{place}={rate}" for place in ("residual", "embedding")]
        run = tfm.read_run(run_recipe(RECIPE, str(rate), *sets))
        curves[str(rate)] = {
            name: [list(map(float, run.curves[key].steps)), list(map(float, run.curves[key].values))]
            for name, key in CURVES.items()
        }
    return {"curves": curves}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: the lowest and the last validation loss, and the last loss of training."""
    texts = {}
    for rate, curves in data["curves"].items():
        steps, losses = curves["validation"]
        texts[f"dropout {rate}: lowest validation loss"] = f"{min(losses):.2f}"
        texts[f"dropout {rate}: at update"] = f"{steps[losses.index(min(losses))]:.0f}"
        texts[f"dropout {rate}: last validation loss"] = f"{losses[-1]:.2f}"
        texts[f"dropout {rate}: last training loss"] = f"{curves['train'][1][-1]:.2f}"
    return texts


def draw(data: Found) -> "Figure":
    """Both losses over updates."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 3.8), layout="constrained")
    axes = figure.subplots()
    for (rate, curves), colour in zip(data["curves"].items(), ("#e6550d", "#31a354", "#3182bd"), strict=True):
        axes.plot(*curves["validation"], color=colour, label=f"dropout {rate}, validation")
        axes.plot(*curves["train"], color=colour, linestyle="--", linewidth=0.9, label=f"dropout {rate}, training")
    axes.set_xlabel("updates")
    axes.set_title("loss a target piece, nats", loc="left")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure


CLAIM = Claim("dropout regularises", measure, figures, draw)
