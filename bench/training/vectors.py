"""`python -m bench vectors`: words a second in training word vectors, beside gensim on the same ids."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from bench.options import Json, Predict, Rounds, add_predictions

if TYPE_CHECKING:
    from bench.compare import Figures

PEER = Path(__file__).parent.parent / "peers" / "training" / "vectors_gensim.py"


def vectors(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="What `tfm preprocess` made of texts.")],
    recipe: Annotated[
        Path, typer.Option("--recipe", metavar="FILE", help="Whose [model] and [training] are measured.")
    ] = Path("recipes/word2vec.toml"),
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value of these, as in model.embedding_dim=100."),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", metavar="N", min=1, help="Epochs that count.")] = 3,
    rounds: Rounds = 3,
    against: Annotated[
        str | None, typer.Option("--against", metavar="gensim=PYTHON", help="A Python that has gensim.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Threads of gensim.")] = 1,
    predict: Predict = None,
    json: Json = None,
) -> None:
    """Words a second of word2vec's steps, beside gensim.

    Both train vectors of one width on the same ids, with the same windows, noise words and subsampling, and count all
    words, those left out too. Only updates count: no start, no compilation, no validation, no checkpoint. Ours has one
    thread.
    """
    from bench.compare import Contestant, median_figure
    from bench.report import contest, write_json
    from bench.training.pieces import write_pieces
    from bench.training.workload import read_configs
    from tfm.data.dataset.store import load_dataset
    from tfm.pipeline.errors import RecipeError

    model, training = read_configs(recipe, sets or [])
    words = model.word_vectors
    if words.negatives is None or model.embedding_dim is None:
        raise RecipeError(f"{recipe}: give model.word_vectors.negatives and model.embedding_dim")
    request = {"dataset": str(dataset.resolve()), "model": model.model_dump(mode="json"), "epochs": epochs}
    request |= {"training": training.model_dump(mode="json"), "peak": training.schedule.peak}
    contestants = [Contestant("tfm", partial(train_ours, request))]
    with TemporaryDirectory() as folder:
        if against is not None:
            name, _, python = against.partition("=")
            if name != "gensim" or not Path(python).expanduser().exists():
                raise typer.BadParameter(f"{against}: write gensim=PYTHON, an interpreter", param_hint="--against")
            data = load_dataset(dataset)
            write_pieces(data.train, 0, Path(folder))
            contestants.append(
                Contestant("gensim", partial(train_gensim, request, Path(python), Path(folder), workers))
            )
        summaries = contest(
            f"word vectors on {dataset}: {model.architecture}, D {model.embedding_dim}, {epochs} epochs",
            add_predictions(contestants, predict),
            rounds=rounds,
            unit="words/s",
            extra=lambda all_: {
                "words/CPU s": {each: f"{median_figure(figures, 'cpu_rate'):,.0f}" for each, figures in all_.items()}
            },
        )
    write_json(json, "vectors", {**request, "workers": workers}, {"contestants": summaries})


def train_ours(request: dict[str, object]) -> "Figures":
    """Run only the training steps of `tfm train`."""
    from bench.processes import run_module

    process = run_module("bench.training.vectors_tfm", request)
    return {**process.answer(), "peak": process.peak}


def train_gensim(request: dict[str, object], python: Path, folder: Path, workers: int) -> "Figures":
    """Run gensim with another Python."""
    from json import dumps

    from bench.processes import run
    from bench.training.pieces import TARGET

    options = {**request, "text": str(folder / TARGET), "workers": workers}
    process = run([python.expanduser(), PEER], text=dumps(options))
    return {**process.answer(), "peak": process.peak}
