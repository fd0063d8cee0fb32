"""Pre-training helps where labels are few: accuracy of a classifier by number of labels (Devlin et al. 2019, on SST-2).

It begins from scratch, or from an encoder that learned to fill masks in the same sentences.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.runs import read_score, run_recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MASKED, RECIPE = "recipes/sst2-masked.toml", "recipes/sst2-tenth.toml"
LABELS = (173, 692, 2_768)
SEEDS = (1, 2, 3)
UPDATES = 200
PRETRAINED, SCRATCH = "pre-trained by masks", "from scratch"


def train_classifier(start: str, labels: int, seed: int) -> Path:
    """The run of a classifier that begins at a start with so many labels."""
    masked = run_recipe(MASKED, "masks", "training.max_epochs=30")
    init_from = masked / "model" if start == PRETRAINED else "none"
    variant = f"{start.replace(' ', '-')}-{labels}-{seed}"
    sets = (f"tokenizer.source_from={masked / 'tokenizer'}", f"training.init_from={init_from}", f"seed={seed}")
    updates = (f"training.max_steps={UPDATES}", "training.max_epochs=none", "training.validation.every_steps=20")
    return run_recipe(RECIPE, variant, *sets, *updates, f"data.train.0.size={labels}")


def measure(labels: Sequence[int] = LABELS, seeds: Sequence[int] = SEEDS) -> Found:
    """Test accuracy by start, number of labels and seed."""
    accuracy = {
        start: [[read_score(train_classifier(start, size, seed), "test.accuracy") for seed in seeds] for size in labels]
        for start in (SCRATCH, PRETRAINED)
    }
    return {"labels": list(labels), "accuracy": accuracy}


def figures(found: Found) -> dict[str, str]:
    """The figures that the text quotes: mean and deviation of the seeds."""
    return {
        f"{start}, {size:,} labels": f"{statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f} %"
        for start, of_sizes in found["accuracy"].items()
        for size, values in zip(found["labels"], of_sizes, strict=True)
    }


def draw(found: Found) -> "Figure":
    """Accuracy over the number of labels, on a log axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for start, of_sizes in found["accuracy"].items():
        means, deviations = zip(*((statistics.fmean(each), statistics.stdev(each)) for each in of_sizes), strict=True)
        axes.errorbar(found["labels"], means, deviations, marker=".", capsize=3, label=start)
    axes.set_xscale("log")
    axes.set_xticks(found["labels"], [f"{each:,}" for each in found["labels"]])
    axes.minorticks_off()
    axes.set_xlabel("labels")
    axes.set_title("test accuracy, %, mean ± deviation of seeds", loc="left")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure


CLAIM = Claim("pre-training helps where labels are few", measure, figures, draw)
