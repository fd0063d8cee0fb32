"""Label smoothing costs perplexity and wins BLEU: with and without, three seeds.

q = (1 - eps) onehot(y) + eps / V   (Szegedy et al. 2016; Vaswani et al. 2017, section 5.4)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.runs import map_runs, read_score, run_recipe
from bench.claims.seeds import format_seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/smoothing.toml"
RATES, SEEDS = (0.0, 0.1), (1, 2, 3)
SCORES = ("perplexity", "bleu")


def train_smoothed(rate: float, seed: int) -> Path:
    """The run of a rate and a seed."""
    return run_recipe(RECIPE, f"{rate}-{seed}", f"training.label_smoothing={rate}", f"seed={seed}")


def measure(seeds: Sequence[int] = SEEDS) -> Found:
    """Perplexity and BLEU of the test set by rate, one for each seed."""
    points = [(rate, seed) for rate in RATES for seed in seeds]
    trained = map_runs(train_smoothed, points)
    runs = {rate: [trained[rate, seed] for seed in seeds] for rate in RATES}
    scores = {
        name: {str(rate): [read_score(run, f"test.{name}") for run in some] for rate, some in runs.items()}
        for name in SCORES
    }
    return {"seeds": list(seeds), "scores": scores}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: means and deviations."""
    texts = {}
    for name, by_rate in data["scores"].items():
        for rate, values in by_rate.items():
            texts[f"{name}, eps = {rate}"] = format_seeds(values, 2)
    return texts


def draw(data: Found) -> "Figure":
    """A point for each seed, by rate."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 3.2), layout="constrained")
    for axes, (name, by_rate) in zip(figure.subplots(1, 2), data["scores"].items(), strict=True):
        for index, values in enumerate(by_rate.values()):
            axes.plot([index] * len(values), values, "o", markersize=4)
        axes.set_xticks(range(len(by_rate)), [f"eps = {rate}" for rate in by_rate])
        axes.set_xlim(-0.5, len(by_rate) - 0.5)
        axes.set_title({"perplexity": "test perplexity", "bleu": "test BLEU, beam 4"}[name], loc="left")
        axes.grid(alpha=0.25)
    return figure


CLAIM = Claim("label smoothing costs perplexity and wins BLEU", measure, figures, draw)
