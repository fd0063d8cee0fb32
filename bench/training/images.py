"""`python -m bench images`: images a second in training, beside a plain PyTorch loop of the same network."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.options import Json, Predict, Rounds, add_predictions

if TYPE_CHECKING:
    from bench.compare import Figures
    from bench.training.workload import Workload
    from tfm.model.config import ModelConfig


def images(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="What `tfm preprocess` made of images.")],
    recipe: Annotated[
        Path, typer.Option("--recipe", metavar="FILE", help="Whose [model] and [training] are measured.")
    ],
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value of these, as in model.encoder.dim=512."),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", metavar="N", min=1, help="Updates that count.")] = 60,
    warmup: Annotated[int, typer.Option("--warmup", metavar="N", min=1, help="Updates before them.")] = 15,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=0, help="Of the DataLoader.")] = 0,
    rounds: Rounds = 3,
    predict: Predict = None,
    json: Json = None,
) -> None:
    """Images a second of `tfm train`, beside a plain loop.

    Both train networks of the same parameters on the same images, as many a batch on average. Only updates count: no
    start, no validation, no checkpoint. The loop is torch's modules in fp32 with a DataLoader that shuffles single
    images; ours varies images as the dataset says, the loop does not. For captions by a Transformer, and for
    classification.
    """
    from bench.compare import Contestant
    from bench.report import contest, write_json
    from bench.training.workload import Workload, read_configs

    words = sets or []
    work = Workload(dataset.resolve(), *read_configs(recipe, words), warmup, steps)
    size = images_a_batch(work)
    check_model(work.model)
    contestants = [
        Contestant("tfm", partial(measure_tfm, work)),
        Contestant("plain", partial(measure_plain, work, size, workers)),
    ]
    title = f"training on {dataset}: {size} images a batch, {steps} updates"
    summaries = contest(title, add_predictions(contestants, predict), rounds=rounds, unit="images/s")
    options = {"model": work.model.model_dump(), "training": work.config.model_dump(), "steps": steps, "warmup": warmup}
    write_json(json, "images", {"dataset": dataset, **options, "workers": workers}, {"contestants": summaries})


def check_model(model: "ModelConfig") -> None:
    """Raise RecipeError for a model that the plain loop does not have."""
    from tfm.pipeline.errors import RecipeError

    has = {
        "architecture": ("transformer", "encoder_only"),
        "norm": ("pre",),
        "normalization": ("layer",),
        "activation": ("relu",),
        "positions": ("sinusoidal",),
        "mixing": ("attention",),
        "score": ("scaled_dot",),
        "pooling": ("mean",),
        "adaptive": (None,),
        "embedding_dim": (None,),
        "window": (None,),
        "qk_norm": (False,),
    }
    for name, values in has.items():
        if (actual := getattr(model, name)) not in values:
            raise RecipeError(f"model.{name} = {actual!r}: the plain loop does not have it")
    assert model.vision is not None
    if model.vision.positions != "learned":
        raise RecipeError("model.vision.positions: the plain loop has learned ones")
    if model.architecture == "transformer" and (model.tie != "output" or model.encoder.dim != model.decoder.dim):
        raise RecipeError('the plain loop writes captions with tie = "output", and stacks of one width')


def images_a_batch(work: "Workload") -> int:
    """The mean number of images in our batches. Raises RecipeError if sources are not images."""
    import numpy as np

    from tfm.data.batching.buckets import make_batches
    from tfm.model.vision.image_shape import ImageShape, num_tokens
    from tfm.pipeline.errors import RecipeError

    preparation, vision = work.data.preparation, work.model.vision
    if preparation is None or vision is None:
        raise RecipeError(f"{work.dataset}: give a dataset of images, and a recipe with [model.vision]")
    shape = preparation.shape
    tokens = num_tokens(vision, ImageShape(shape.height, shape.width, shape.channels))
    targets = work.data.train.target_lengths + 1
    batches = make_batches(np.full(len(targets), tokens), targets, budget=work.data.batch_tokens, seed=1, epoch=0)
    return max(1, round(len(targets) / len(batches)))


def measure_tfm(work: "Workload") -> "Figures":
    """`tfm train`: the rate of its updates after the warm-up."""
    from bench.training.baselines import train_tfm

    figures, peak = train_tfm(work, work.model, work.config)
    targets = work.data.train.target_lengths + 1
    labels_only = work.model.task == "classification"
    return {"rate": figures["rate"] / (1 if labels_only else float(targets.mean())), "peak": peak}


def measure_plain(work: "Workload", size: int, workers: int) -> "Figures":
    """The plain loop, run by our own Python."""
    from bench.processes import run_module

    request = {"dataset": str(work.dataset), "warmup": work.warmup, "steps": work.steps, "images": size}
    request |= {"model": work.model.model_dump(mode="json"), "vocab": work.vocab, "workers": workers}
    process = run_module("bench.peers.training.train_images", {**request, "smoothing": work.config.label_smoothing})
    return {**process.answer(), "peak": process.peak}
