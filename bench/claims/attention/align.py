"""Attention aligns words without being told to, and a head that is told to aligns them better: error rates of heads
against the gold alignments of the grammar.

AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)     (Och and Ney 2003), A: each target word with the source word that it
attends to most.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.claims.claim import Claim, Found
from bench.claims.runs import map_runs, read_score, run_recipe
from bench.claims.seeds import format_seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/align.toml"
MODELS: Mapping[str, tuple[str, ...]] = {
    "Transformer": (),
    "LSTM": (
        "model.architecture=recurrent",
        "model.score=additive",
        "model.recurrent.bidirectional=true",
        "model.recurrent.attention=bahdanau",
        "model.encoder.layers=1",
        "model.decoder.layers=1",
        "model.encoder.dim=128",
        "model.decoder.dim=128",
        "model.embedding_dim=64",
        "model.decoder.heads=1",
    ),
}
GUIDED = "Transformer, a head trained"
"""The Transformer whose head learns the alignments of the first one, `training.guided_alignment`."""
SEEDS = (1, 2, 3)
NUM_PAIRS = 1000
CHUNK_PAIRS = 512


def measure(seeds: Sequence[int] = SEEDS, num_pairs: int = NUM_PAIRS) -> Found:
    """BLEU of each model by seed, and the error rate, precision and recall of each of its heads, by both rows."""
    points = [(name, seed) for name in MODELS for seed in seeds]
    trained = map_runs(train_model, points)
    guided = map_runs(lambda seed: train_guided(trained["Transformer", seed], seed), [(seed,) for seed in seeds])
    trained |= {(GUIDED, seed): run for (seed,), run in guided.items()}
    return {name: [measure_model(trained[name, seed], num_pairs) for seed in seeds] for name in (*MODELS, GUIDED)}


def train_model(name: str, seed: int) -> Path:
    """The run of a model that is not told how to align."""
    return run_recipe(RECIPE, f"{name.lower()}-{seed}", f"seed={seed}", *MODELS[name])


def train_guided(teacher: Path, seed: int) -> Path:
    """The run of a Transformer with a head that learns the links of another."""
    return run_recipe(
        RECIPE, f"guided-{seed}", f"seed={seed}", f"training.guided_alignment.links={write_links(teacher)}"
    )


def write_links(run: Path) -> Path:
    """Write the alignments of a model's training pairs by the mean of the heads of its last layer; return the file."""
    from tfm.pipeline.alignment.extraction import WordAligner, align_chunks
    from tfm.pipeline.alignment.pharaoh import format_links
    from tfm.pipeline.artifacts.files import write_text_atomically
    from tfm.pipeline.model_io.loaded_model import load_model
    from tfm.pipeline.scoring.alignment.gold import read_dataset_pairs

    aligner, file = WordAligner(load_model(run / "model", "cpu")), run.with_name(f"{run.name}.links")
    links = align_chunks(aligner, read_dataset_pairs(run / "dataset"), aligner.choose_head(), CHUNK_PAIRS)
    write_text_atomically(file, "".join(f"{format_links(each)}\n" for each in links))
    return file


def measure_model(run: Path, num_pairs: int) -> dict[str, Any]:
    """The scores of a model's heads on sentences of the test split."""
    from tfm.pipeline.alignment.extraction import WordAligner
    from tfm.pipeline.model_io.loaded_model import load_model
    from tfm.pipeline.scoring.alignment.gold import read_built_in
    from tfm.pipeline.scoring.alignment.head_scores import score_heads

    pairs, gold = read_built_in("grammar")
    aligner = WordAligner(load_model(run / "model", "cpu"))
    scored = score_heads(aligner, pairs[:num_pairs], gold[:num_pairs], aligner.heads())
    found = {"bleu": read_score(run, "test.bleu"), "heads": [each.as_json() for each in scored]}
    if aligner.has_trained_head:
        (trained,) = score_heads(aligner, pairs[:num_pairs], gold[:num_pairs], [aligner.choose_head()])
        found["trained"] = trained.as_json()
    return found


def error_rates(model: Mapping[str, Any], layer: int | None = None, *, shifted: bool = False) -> list[float]:
    """The error rates of a model's heads, without the means of layers, in percent; the best first."""
    return [
        each["aer"]
        for each in model["heads"]
        if each["shifted"] == shifted and each["head"] is not None and layer in (None, each["layer"])
    ]


def figures(found: Found) -> dict[str, str]:
    """The figures that the text quotes: mean and deviation of seeds."""
    texts = {}
    for name, of_seeds in found.items():
        each_rates = [error_rates(model) for model in of_seeds]
        texts[f"BLEU, {name}"] = format_seeds([model["bleu"] for model in of_seeds])
        texts[f"AER of the best head, {name}"] = format_seeds([rates[0] for rates in each_rates], unit=" %")
        texts[f"AER of the worst head, {name}"] = format_seeds([rates[-1] for rates in each_rates], unit=" %")
        if "trained" in of_seeds[0]:
            trained = [model["trained"]["aer"] for model in of_seeds]
            texts[f"AER of the trained head, {name}"] = format_seeds(trained, unit=" %")
        shifted = [error_rates(model, shifted=True)[0] for model in of_seeds]
        texts[f"AER of the best head by the row that reads the word, {name}"] = format_seeds(shifted, unit=" %")
        for layer in sorted({each["layer"] for each in of_seeds[0]["heads"]}):
            means = [mean_error_rate(model, layer) for model in of_seeds]
            texts[f"AER of the mean of layer {layer}, {name}"] = format_seeds(means, unit=" %")
    return texts


def mean_error_rate(model: Mapping[str, Any], layer: int) -> float:
    """The error rate of the mean of a layer's heads, by the row that predicts a word, in percent."""
    return next(
        float(each["aer"])
        for each in model["heads"]
        if each["head"] is None and not each["shifted"] and each["layer"] == layer
    )


def draw(found: Found) -> "Figure":
    """The error rate of each head, by layer: the row that predicts a word, and the one that has read it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    columns = [
        (name, layer) for name, (model, *_) in found.items() for layer in sorted({x["layer"] for x in model["heads"]})
    ]
    axes = figure.subplots()
    for shifted, marker, label in ((False, "o", "row that predicts the word"), (True, "x", "row that has read it")):
        for place, (name, layer) in enumerate(columns):
            rates = [rate for model in found[name] for rate in error_rates(model, layer, shifted=shifted)]
            axes.plot([place] * len(rates), rates, marker, color="C0" if marker == "o" else "C3", markersize=6)
        axes.plot([], [], marker, color="C0" if marker == "o" else "C3", label=label)
    axes.set_xticks(range(len(columns)), [f"{name.replace(', ', chr(10))}\nlayer {layer}" for name, layer in columns])
    axes.set_ylim(0, 100)
    axes.set_title("alignment error rate of each head of three seeds, %", loc="left")
    axes.grid(axis="y", alpha=0.25)
    axes.legend(frameon=False)
    return figure


CLAIM = Claim("attention aligns words without being told to, and better if a head is", measure, figures, draw)
