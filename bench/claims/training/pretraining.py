"""Pre-training helps where labels are few: accuracy of a classifier by number of labels (Devlin et al. 2019, on SST-2).

It begins from scratch, or from an encoder that learned to fill masks in the same sentences.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.plots import draw_deviations
from bench.claims.runs import read_score, run_recipe
from bench.claims.seeds import format_seeds, mean_and_deviation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MASKED, RECIPE = "recipes/sst2-masked.toml", "recipes/sst2-tenth.toml"
LABELS = (173, 692, 2_768)
SEEDS = (1, 2, 3)
UPDATES = 200
PRETRAINED, SCRATCH = "pre-trained by masks", "from scratch"


def train_classifier(masked: Path, start: str, labels: int, seed: int) -> Path:
    """The run of a classifier with so many labels.

    Args:
        masked: the run that learned to fill masks, whose vocabulary every classifier has.
        start: whether it begins with the encoder of that, too.
        labels: their number.
        seed: of initial weights and order of batches.
    """
    init_from = masked / "model" if start == PRETRAINED else "none"
    variant = f"{start.replace(' ', '-')}-{labels}-{seed}"
    sets = (f"tokenizer.source_from={masked / 'tokenizer'}", f"training.init_from={init_from}", f"seed={seed}")
    updates = (f"training.max_steps={UPDATES}", "training.max_epochs=none", "training.validation.every_steps=20")
    return run_recipe(RECIPE, variant, *sets, *updates, f"data.train.0.size={labels}")


def measure(labels: Sequence[int] = LABELS, seeds: Sequence[int] = SEEDS) -> Found:
    """Test accuracy by start, number of labels and seed."""
    masked = run_recipe(MASKED, "masks", "training.max_epochs=30")
    accuracy = {
        start: [
            [read_score(train_classifier(masked, start, size, seed), "test.accuracy") for seed in seeds]
            for size in labels
        ]
        for start in (SCRATCH, PRETRAINED)
    }
    return {"labels": list(labels), "accuracy": accuracy}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: mean and deviation of the seeds."""
    return {
        f"{start}, {size:,} labels": format_seeds(values, unit=" %")
        for start, of_sizes in data["accuracy"].items()
        for size, values in zip(data["labels"], of_sizes, strict=True)
    }


def draw(data: Found) -> "Figure":
    """Accuracy over the number of labels, on a log axis."""
    title = "test accuracy, %, mean ± deviation of seeds"
    lines = {start: [mean_and_deviation(each) for each in of_sizes] for start, of_sizes in data["accuracy"].items()}
    return draw_deviations(data["labels"], lines, xlabel="labels", title=title)


CLAIM = Claim("pre-training helps where labels are few", measure, figures, draw)
