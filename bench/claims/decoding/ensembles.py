"""Ensembles and reversed sources help LSTMs (Sutskever et al. 2014): BLEU by number of models, and by direction.

log p(y) of an ensemble = log mean over models of p(y), at each position
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.runs import map_runs, read_score, run_recipe
from bench.claims.seeds import format_seeds
from bench.claims.training.data import RECIPE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS = (1, 2, 3)
NUMBERS = (1, 2, 3)
NUM_TESTED = 500
FORWARD, REVERSED = "source as it stands", "source reversed"
SETTINGS = (
    *("model.architecture=recurrent", "model.embedding_dim=64", "data.train.0.size=16000", "training.max_steps=800"),
    *(f"model.{side}.{key}" for side in ("encoder", "decoder") for key in ("layers=1", "dim=256")),
)
DIRECTIONS = {FORWARD: (), REVERSED: ("model.recurrent.reverse_source=true",)}


def train_model(direction: str, seed: int) -> Path:
    """The run of an LSTM without attention that reads its source in a direction."""
    sets = (*SETTINGS, *DIRECTIONS[direction])
    return run_recipe(RECIPE, f"lstm-{direction.split()[-1]}-{seed}", f"seed={seed}", *sets)


def measure(seeds: Sequence[int] = SEEDS, numbers: Sequence[int] = NUMBERS, num_tested: int = NUM_TESTED) -> Found:
    """BLEU of each model by direction, and of ensembles of the first models, by a greedy search each."""
    import sacrebleu

    from tfm.data.synthetic.grammar import generate
    from tfm.pipeline.api.logged import LoggingReporter
    from tfm.pipeline.api.model import Model
    from tfm.pipeline.model_io.ensemble import load_ensemble

    points = [(direction, seed) for direction in DIRECTIONS for seed in seeds]
    trained = map_runs(train_model, points)
    runs = {direction: [trained[direction, seed] for seed in seeds] for direction in DIRECTIONS}
    single = {
        direction: [read_score(run, "test.bleu") for run in runs_of_direction]
        for direction, runs_of_direction in runs.items()
    }
    sources, references = map(list, zip(*generate("test", num_tested, 1), strict=True))
    ensemble_scores: dict[str, list[float]] = {}
    for direction, runs_of_direction in runs.items():
        ensemble_scores[direction] = []
        for number in numbers:
            model = Model(
                load_ensemble([run / "model" for run in runs_of_direction[:number]], "cpu"), LoggingReporter()
            )
            texts = model.translate(sources, beam=4)
            ensemble_scores[direction].append(sacrebleu.corpus_bleu(texts, [references]).score)
    return {"seeds": list(seeds), "single": single, "numbers": list(numbers), "together": ensemble_scores}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    texts = {}
    for direction, values in data["single"].items():
        texts[f"BLEU, {direction}, one model"] = format_seeds(values)
    for direction, values in data["together"].items():
        for number, value in zip(data["numbers"], values, strict=True):
            texts[f"BLEU, {direction}, ensemble of {number}"] = f"{value:.1f}"
    return texts


def draw(data: Found) -> "Figure":
    """BLEU over the number of models, the single ones as points."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for (direction, values), colour in zip(data["together"].items(), ("#e6550d", "#3182bd"), strict=True):
        axes.plot(data["numbers"], values, marker=".", color=colour, label=direction)
        single = data["single"][direction]
        axes.plot([1] * len(single), single, "x", color=colour, markersize=5)
    axes.set_xticks(data["numbers"])
    axes.set_xlabel("models; crosses: each of them alone")
    axes.set_title("test BLEU, beam 4", loc="left")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure


CLAIM = Claim("LSTMs gain by ensembles and by reversed sources", measure, figures, draw)
