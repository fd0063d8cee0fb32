"""`tfm train`: a dataset to a model."""

from pathlib import Path
from typing import Annotated

import typer

from tfm.cli.options import (
    Device,
    RecipeFile,
    Seed,
    Sets,
    command_line,
    config_section,
    reject_flags,
    require_flag,
    run_recipe_stage,
    seed_or_default,
)
from tfm.pipeline.model_io.model_folder import model_folder


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
    device: Device = None,
    seed: Seed = None,
    sets: Sets = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for training/ and model/; with --recipe: runs/NAME."),
    ] = None,
) -> None:
    """Train a model; the same command resumes a stopped training."""
    flags = {
        "training.max_steps": max_steps,
        "training.max_epochs": max_epochs,
        "training.device": device,
        "training.init_from": None if init_from is None else str(model_folder(init_from)),
    }
    if recipe is not None:
        reject_flags({"--data": data}, "not allowed with --recipe, which names it")
        run_recipe_stage("train", recipe, sets, {**flags, "seed": seed}, out)
        return
    dataset, folder = require_flag(data, "--data"), require_flag(out, "--out")
    from tfm.cli.console import make_reporter
    from tfm.model.config import ModelConfig
    from tfm.pipeline.config import DecodingConfig, EvaluationConfig
    from tfm.pipeline.stages.train import train as train_stage
    from tfm.pipeline.training_config import TrainingConfig

    parts = ("training", "model", "decoding", "evaluation")
    train_stage(
        config_section(TrainingConfig, sets, flags, beside=parts),
        config_section(ModelConfig, sets, {}, beside=parts),
        config_section(DecodingConfig, sets, {}, beside=parts),
        dataset,
        folder,
        seed=seed_or_default(seed),
        evaluation=config_section(EvaluationConfig, sets, {}, beside=parts),
        command=command_line(),
        reporter=make_reporter(),
    )
