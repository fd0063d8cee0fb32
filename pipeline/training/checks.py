"""Checks for errors of a training before its first step."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from tfm.model.config import ModelConfig, VisionConfig
from tfm.model.vision.image_shape import ImageShape, num_tokens, shape_problem
from tfm.pipeline.errors import RecipeError, WriteError
from tfm.pipeline.guided_alignment import guided_alignment_problem
from tfm.pipeline.sharded_training import recompute_problem, sharding_problem
from tfm.pipeline.training_config import KeepConfig, LoraConfig, TrainingConfig
from tfm.tokenizer.code_points import CodePoints
from tfm.tokenizer.tokenizer import Tokenizer


def check_batch_norm(key: str | None, config: TrainingConfig, num_processes: int) -> None:
    """Raise RecipeError if a model with batch norm cannot be trained with these settings.

    Args:
        key: the key by which the model has batch norm; None if it has none.
        config: the [training] part of a recipe.
        num_processes: number of processes of the training.
    """
    if key is not None and (reason := config.batch_norm_problem(key, num_processes)) is not None:
        raise RecipeError(reason)


def check_lora(lora: LoraConfig | None, model: ModelConfig) -> None:
    """Raise RecipeError if training adapters would change the base model too."""
    if lora is not None and model.batch_norm_key is not None:
        raise RecipeError(
            f'training.lora leaves the model as it is, and {model.batch_norm_key} = "batch" has statistics that '
            "change: train it without adapters"
        )


def num_source_image_tokens(image: ImageShape | None, vision: VisionConfig | None, config: TrainingConfig) -> int:
    """Return the number of tokens that a model makes of an image of a dataset; 1 where both are of texts.

    Args:
        image: the shape of the dataset's images; None if its sources are texts.
        vision: the [model.vision] part of a recipe; None if the model reads texts.
        config: the [training] part of a recipe.

    Raises:
        RecipeError: the model reads images and the sources are texts, or the other way round, or it cannot read images
            of this shape.
    """
    if image is None and vision is None:
        return 1
    if image is None or vision is None:
        has, needs = ("texts", "without") if image is None else ("images", "with")
        raise RecipeError(f"the sources of the dataset are {has}: it needs a model {needs} model.vision")
    if (reason := shape_problem(vision, image)) is not None:
        raise RecipeError(reason)
    if config.layout == "flat":
        raise RecipeError('training.layout = "flat" is for texts, and the sources of the dataset are images')
    return num_tokens(vision, image)


def check_adaptive_softmax(has_adaptive_tails: bool, config: TrainingConfig) -> None:
    """Raise RecipeError if a model with an adaptive softmax cannot be trained so."""
    if has_adaptive_tails and (reason := config.adaptive_softmax_problem()) is not None:
        raise RecipeError(reason)


def check_sharding(config: TrainingConfig, model: ModelConfig, num_processes: int) -> None:
    """Raise RecipeError if weights cannot be sharded, or layers not be computed again.

    Args:
        config: the [training] part of a recipe.
        model: the [model] part of a recipe.
        num_processes: number of processes of the training.
    """
    for reason in (sharding_problem(config, model), recompute_problem(config, model)):
        if reason is not None:
            raise RecipeError(reason)
    if config.shard != "none" and num_processes == 1:
        raise RecipeError(
            f'training.shard = "{config.shard}" is for several processes, and there is one: start them with torchrun '
            '--nproc-per-node N, or set training.shard = "none"'
        )


def check_guided_alignment(config: TrainingConfig, model: ModelConfig) -> None:
    """Raise RecipeError if no head of the model can be trained to align."""
    if (reason := guided_alignment_problem(config, model)) is not None:
        raise RecipeError(reason)


def check_one_vocabulary(model: ModelConfig, *, shared: bool) -> None:
    """Raise RecipeError if a model needs one vocabulary and a dataset has one per side, even of equal size."""
    setting = model.shared_vocabulary_reason
    if setting is None or shared:
        return
    if len(model.embedded_sides) == 1:
        raise RecipeError(
            f"model.{setting} reads source and target by one vocabulary, and the dataset has one a side: "
            "tokenizer.shared = true"
        )
    raise RecipeError(
        f'model.{setting} needs one vocabulary, and the dataset has one a side: set model.tie to "output" or "none", '
        "or tokenizer.shared = true"
    )


def check_character_tokenizers(model: ModelConfig, source: Tokenizer, target: Tokenizer, *, flat: bool) -> None:
    """Raise RecipeError if a model reads characters and the source is not encoded so, or the other way round.

    Args:
        model: the [model] part of a recipe.
        source: the tokenizer of the source.
        target: the tokenizer of the target.
        flat: whether batches are laid out flat.
    """
    if isinstance(target, CodePoints):
        raise RecipeError(
            "the target of the dataset is encoded by code point, and no model writes one of all characters of the "
            "world: give it a tokenizer of another kind (tokenizer.target_kind)"
        )
    if model.canine is None and isinstance(source, CodePoints):
        raise RecipeError("the source of the dataset is encoded by code point: it is for models with [model.canine]")
    if model.canine is not None and not isinstance(source, CodePoints):
        raise RecipeError('model.canine reads characters: make the dataset with tokenizer.kind = "codepoint"')
    if model.canine is not None and flat:
        raise RecipeError('training.layout = "flat": the shorter sequences of model.canine have no one length')


def check_languages(model: ModelConfig, source: Tokenizer, directions: Iterable[object], *, flat: bool) -> None:
    """Raise RecipeError if a model is told languages, and the sources of a dataset do not begin with them.

    Args:
        model: the [model] part of a recipe.
        source: the tokenizer of the source.
        directions: of each split, the languages of its corpora.
        flat: whether batches are laid out flat.
    """
    if model.languages == "source":
        return
    setting = f'model.languages = "{model.languages}"'
    if flat:
        raise RecipeError(f'training.layout = "flat": {setting} moves tokens, and filler has no language')
    if not source.has_source_language:
        raise RecipeError(
            f"{setting} needs a tokenizer with tokens for the languages of texts, such as deu_Latn: that of a model "
            "which `tfm import` took over"
        )
    if not all(directions):
        raise RecipeError(f"{setting}: say which languages each corpus has, by source_language and target_language")


def check_disk_space(folder: Path, num_parameters: int, keep: KeepConfig, *, ema: bool) -> None:
    """Raise WriteError if the disk has no room for the checkpoints and the model.

    Args:
        folder: the folder of the training.
        num_parameters: number of the model's parameters.
        keep: the [training.keep] part of a recipe.
        ema: whether averaged weights are saved too.
    """
    weights = 4 * num_parameters
    checkpoints = keep.last + keep.best + 2  # the newest, and one in the making
    num_bytes = weights * ((4 if ema else 3) * checkpoints + 2)
    existing_folder = folder
    while not existing_folder.exists():
        existing_folder = existing_folder.parent
    existing_bytes = sum(file.stat().st_size for file in folder.rglob("*.safetensors"))  # of a training that goes on
    free = shutil.disk_usage(existing_folder).free + existing_bytes
    if free < num_bytes:
        raise WriteError(
            f"{folder}: training needs up to {num_bytes / 1e6:,.0f} MB for checkpoints and {free / 1e6:,.0f} MB are "
            "free; make room, or keep fewer (training.keep)"
        )
