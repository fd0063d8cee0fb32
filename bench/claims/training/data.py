"""A Transformer needs more data than an RNN or a CNN: BLEU by the number of pairs, after as many updates."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.plots import draw_deviations
from bench.claims.runs import map_runs, read_score, run_recipe
from bench.claims.seeds import format_seeds, mean_and_deviation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/data.toml"
SIZES = (1_000, 4_000, 16_000, 60_000)
SEEDS = (1, 2, 3)
FIGURES = {"bleu": "test.bleu", "loss": "valid.loss"}
TRANSFORMER, LSTM, CONVOLUTION = "Transformer", "LSTM with attention", "convolutions"
MODELS: Mapping[str, Sequence[str]] = {
    TRANSFORMER: (),
    LSTM: (
        *("model.architecture=recurrent", "model.embedding_dim=64", "model.score=additive", "model.decoder.heads=1"),
        *("model.recurrent.bidirectional=true", "model.recurrent.attention=bahdanau"),
        *(f"model.{side}.{key}" for side in ("encoder", "decoder") for key in ("layers=1", "dim=128")),
    ),
    CONVOLUTION: ("model.mixing=convolution",),
}


def read_pairs(name: str, sets: Sequence[str], size: int, seed: int) -> dict[str, float]:
    """The figures of a model trained on this many pairs, which is trained first if needed.

    Args:
        name: of the model.
        sets: its settings.
        size: the number of pairs.
        seed: of initial weights and order of batches.
    """
    variant = f"{name.replace(' ', '-')}-{size}-{seed}"
    run = run_recipe(RECIPE, variant, f"data.train.0.size={size}", f"seed={seed}", *sets)
    return {key: read_score(run, figure) for key, figure in FIGURES.items()}


def measure(sizes: Sequence[int] = SIZES, seeds: Sequence[int] = SEEDS) -> Found:
    """BLEU of the test set and the lowest validation loss, by model, number of pairs and seed."""
    points = [(name, size, seed) for name in MODELS for size in sizes for seed in seeds]
    trained = map_runs(lambda name, *rest: read_pairs(name, MODELS[name], *rest), points)
    scores = {name: [[trained[name, size, seed] for seed in seeds] for size in sizes] for name in MODELS}
    return {"sizes": list(sizes), "scores": scores}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    texts = {}
    for name, runs_by_size in data["scores"].items():
        for size, runs in zip(data["sizes"], runs_by_size, strict=True):
            for key, digits in (("bleu", 1), ("loss", 2)):
                texts[f"{key} of {name}, {size:,} pairs"] = format_seeds([each[key] for each in runs], digits)
    return texts


def draw(data: Found) -> "Figure":
    """BLEU over the number of pairs, on a log axis."""
    title = "test BLEU after as many updates, mean ± deviation of seeds"
    lines = {
        name: [mean_and_deviation([each["bleu"] for each in runs]) for runs in runs_by_size]
        for name, runs_by_size in data["scores"].items()
    }
    return draw_deviations(data["sizes"], lines, xlabel="pairs", title=title)


CLAIM = Claim("a Transformer needs more data than an RNN or a CNN", measure, figures, draw)
