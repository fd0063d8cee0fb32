"""Pre-norm trains faster, and without a warm-up; post-norm needs one (Xiong et al. 2020): 8 layers, few updates."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from bench.claims.block.depth import RECIPE
from bench.claims.claim import Claim, Found
from bench.claims.runs import map_runs, read_score, run_recipe
from bench.claims.seeds import format_seeds, mean_and_deviation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTH = 8
NORMS = ("pre", "post")
WARMUPS = (1, 50)
PEAKS = (0.001, 0.003, 0.01)
SEEDS = (1, 2, 3)


def measure(peaks: Sequence[float] = PEAKS, depth: int = DEPTH, seeds: Sequence[int] = SEEDS) -> Found:
    """Validation losses of seeds after the recipe's updates, by placement of the norm, warm-up and highest rate."""
    points = [(norm, warmup, peak, seed) for norm in NORMS for warmup in WARMUPS for peak in peaks for seed in seeds]
    trained = map_runs(partial(train_loss, depth), points)
    losses = {
        norm: {
            str(warmup): [[trained[norm, warmup, peak, seed] for seed in seeds] for peak in peaks] for warmup in WARMUPS
        }
        for norm in NORMS
    }
    return {"depth": depth, "peaks": list(peaks), "seeds": list(seeds), "losses": losses}


def train_loss(depth: int, norm: str, warmup: int, peak: float, seed: int) -> float:
    """The validation loss of one run."""
    schedule = {"warmup_steps": warmup, "peak": peak}
    sets = [f"model.norm={norm}", f"model.decoder.layers={depth}", f"seed={seed}"]
    sets += [f"training.schedule.{key}={value}" for key, value in schedule.items()]
    return read_score(run_recipe(RECIPE, f"{norm}-{warmup}-{peak}-{seed}", *sets), "valid.loss")


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: every loss, mean and deviation of seeds."""
    return {
        f"{norm}-norm, warm-up {warmup}, rate {peak}": format_seeds(of_seeds, 2)
        for norm, by_warmup in data["losses"].items()
        for warmup, losses in by_warmup.items()
        for peak, of_seeds in zip(data["peaks"], losses, strict=True)
    }


def draw(data: Found) -> "Figure":
    """Loss over the rate, on a log axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for (norm, by_warmup), colour in zip(data["losses"].items(), ("#3182bd", "#e6550d"), strict=True):
        for (warmup, losses), style in zip(by_warmup.items(), ("--", "-"), strict=True):
            label = f"{norm}-norm, warm-up of {warmup}"
            means, deviations = zip(*map(mean_and_deviation, losses), strict=True)
            axes.errorbar(data["peaks"], means, deviations, fmt=style, color=colour, marker=".", capsize=3, label=label)
    axes.set_xscale("log")
    axes.set_xticks(data["peaks"], [str(each) for each in data["peaks"]])
    axes.set_xlabel("highest learning rate")
    axes.set_title(f"validation loss a word after 200 updates, {data['depth']} layers, nats", loc="left")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure


CLAIM = Claim("pre-norm trains faster, and without a warm-up", measure, figures, draw)
