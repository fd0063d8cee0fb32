"""A Transformer needs more data than an RNN or a CNN: BLEU by the number of pairs, after as many updates."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.runs import read_score, run_recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/data.toml"
SIZES = (1_000, 4_000, 30_000)
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


def measure(sizes: Sequence[int] = SIZES) -> Found:
    """BLEU of the test set and the lowest validation loss, by model and number of pairs."""
    scores: dict[str, list[dict[str, float]]] = {}
    for name, sets in MODELS.items():
        runs = [
            run_recipe(RECIPE, f"{name.replace(' ', '-')}-{size}", f"data.train.0.size={size}", *sets) for size in sizes
        ]
        scores[name] = [{key: read_score(run, figure) for key, figure in FIGURES.items()} for run in runs]
    return {"sizes": list(sizes), "scores": scores}


def figures(found: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    texts = {}
    for name, of_sizes in found["scores"].items():
        for size, each in zip(found["sizes"], of_sizes, strict=True):
            texts[f"BLEU of {name}, {size:,} pairs"] = f"{each['bleu']:.1f}"
    return texts


def draw(found: Found) -> "Figure":
    """BLEU over the number of pairs, on a log axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for name, of_sizes in found["scores"].items():
        axes.plot(found["sizes"], [each["bleu"] for each in of_sizes], marker=".", label=name)
    axes.set_xscale("log")
    axes.set_xticks(found["sizes"], [f"{each:,}" for each in found["sizes"]])
    axes.set_xlabel("pairs")
    axes.set_title("test BLEU after as many updates", loc="left")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure


CLAIM = Claim("a Transformer needs more data than an RNN or a CNN", measure, figures, draw)
