"""`tfm train`: a dataset to a model."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tfm.cli.options import (
    ClusterAddress,
    Device,
    RecipeFile,
    RecipeOverrides,
    Seed,
    command_line,
    config_section,
    reject_flags,
    require_flag,
    seed_or_default,
)
from tfm.pipeline.model_io.model_folder import resolve_model_folder


def train(
    recipe: RecipeFile = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="The dataset that `tfm preprocess` made.")
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", metavar="N", help="Maximum number of updates.")
    ] = None,
    max_epochs: Annotated[
        int | None, typer.Option("--max-epochs", metavar="N", help="Maximum number of passes over the data.")
    ] = None,
    init_from: Annotated[
        Path | None, typer.Option("--init-from", metavar="MODEL", help="Start from the weights of this model.")
    ] = None,
    cluster: ClusterAddress = None,
    ranks: Annotated[
        int | None,
        typer.Option(
            "--ranks",
            metavar="N",
            min=1,
            max=100_000,
            help="With --cluster: processes that train together (Ray Train).",
        ),
    ] = None,
    device: Device = None,
    seed: Seed = None,
    sets: RecipeOverrides = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for training/ and model/; with --recipe: runs/NAME."),
    ] = None,
) -> None:
    """Train a model; the same command resumes a stopped training."""
    if (cluster is None) != (ranks is None):
        raise typer.BadParameter("give --cluster and --ranks together, or neither", param_hint="--ranks")
    flags = {
        "training.max_steps": max_steps,
        "training.max_epochs": max_epochs,
        "training.device": device,
        "training.init_from": None if init_from is None else str(resolve_model_folder(init_from)),
    }
    from tfm.cli.console import make_reporter
    from tfm.pipeline.training_config import TrainingConfig

    work: Callable[..., object]
    if recipe is not None:
        reject_flags({"--data": data}, "not allowed with --recipe, which names it")
        from tfm.pipeline.recipes.chain import run_stage
        from tfm.pipeline.recipes.recipe import load_recipe

        resolved = load_recipe(recipe, sets or (), {**flags, "seed": seed})
        work, config = partial(run_stage, resolved, "train", out=out, command=command_line()), resolved.training
    else:
        from tfm.model.config import ModelConfig
        from tfm.pipeline.config import DecodingConfig, EvaluationConfig
        from tfm.pipeline.stages.train import train as train_stage

        dataset, folder = require_flag(data, "--data"), require_flag(out, "--out")
        parts = ("training", "model", "decoding", "evaluation")
        config = config_section(TrainingConfig, sets, flags, other_sections=parts)
        work = partial(
            train_stage,
            config,
            config_section(ModelConfig, sets, {}, other_sections=parts),
            config_section(DecodingConfig, sets, {}, other_sections=parts),
            dataset,
            folder,
            seed=seed_or_default(seed),
            evaluation=config_section(EvaluationConfig, sets, {}, other_sections=parts, known_sections=[config]),
            command=command_line(),
        )
    if cluster is None or ranks is None:
        work(reporter=make_reporter())
        return
    from tfm.pipeline.cluster.ranks import train_on_ranks
    from tfm.pipeline.cluster.session import connect_to_cluster

    with connect_to_cluster(cluster) as session:
        train_on_ranks(session, work, ranks, config.device, config.restarts, make_reporter())
