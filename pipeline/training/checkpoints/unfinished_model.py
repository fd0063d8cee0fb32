"""A checkpoint of a training, which may still be running, as a model that can translate."""

from dataclasses import replace
from pathlib import Path

import torch
from pydantic import ValidationError

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.store import TOKENIZER_FOLDER
from tfm.model.config import ModelConfig
from tfm.model.layers.lora import merge_adapters, split_adapters
from tfm.pipeline.artifacts.files import walk_tree
from tfm.pipeline.artifacts.manifest import Input, read_artifact
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.loaded_model import LoadedModel, build_loaded_model, image_shape, load_image_transform
from tfm.pipeline.model_io.model_folder import read_guided_alignment
from tfm.pipeline.model_io.model_weights import check_shapes_match, model_weight_shapes
from tfm.pipeline.training.checkpoints.checkpoint import Checkpoint
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints
from tfm.pipeline.training.checkpoints.train_state import Progress, published_weights, read_progress
from tfm.pipeline.training_config import LoraConfig
from tfm.tokenizer.tokenizer import Tokenizer

LAST_CHECKPOINT = "last"


def load_checkpoint(
    run: Path, step: int | None, device: str = "auto", dtype: torch.dtype = torch.float32
) -> LoadedModel:
    """Return the model that a training would publish of one step, or of its newest checkpoint.

    Files are read only, and verified; the training may go on, and remove the checkpoint meanwhile.

    Args:
        run: the folder of the run.
        step: the step of the checkpoint; None for the newest.
        device: name of the device of the model.
        dtype: type of the weights.

    Raises:
        DataError: there is no such checkpoint; the message lists those there are.
    """
    checkpoint, weights = _read_checkpoint(run, step)
    progress = read_progress(checkpoint)
    try:
        config = ModelConfig.model_validate(progress.plan["config"]["model"])
        if (lora := progress.plan["config"]["training"].get("lora")) is not None:
            lora_config = LoraConfig.model_validate(lora)
            weights = merge_adapters(*split_adapters(weights), lora_config.scale / lora_config.rank)
        tokenizers = _read_tokenizers(run, progress)
        guided = read_guided_alignment(progress.plan["config"])
        images = load_image_transform(config, run / "training" / TOKENIZER_FOLDER)
        sizes = [each.vocab_size for each in tokenizers]
        shapes = {name: tuple(each.shape) for name, each in weights.items()}
        expected_shapes = model_weight_shapes(
            config, source_vocab=sizes[0], target_vocab=sizes[1], image=image_shape(images)
        )
        check_shapes_match(expected_shapes, shapes, checkpoint.folder)
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        problem = f"this version of tfm cannot build the checkpoint's model: {str(error).splitlines()[0]:.200}"
        raise DataError(problem, file=checkpoint.folder) from error
    loaded = build_loaded_model(config, tokenizers, weights, images, checkpoint.folder, device, dtype)
    return replace(loaded, guided=guided)


def _read_checkpoint(run: Path, step: int | None) -> tuple[Checkpoint, dict[str, torch.Tensor]]:
    """A checkpoint and the weights that it would publish."""
    checkpoints = Checkpoints(run / "training" / "checkpoints")
    while True:
        steps = checkpoints.steps()
        if not steps:
            raise DataError("holds no checkpoint yet: `tfm train` writes them", file=checkpoints.folder)
        chosen_step = steps[-1] if step is None else step
        if chosen_step not in steps:
            available_steps = ", ".join(map(str, steps))
            raise DataError(
                f"there is no checkpoint of step {chosen_step}, only of {available_steps}", file=checkpoints.folder
            )
        try:
            checkpoint = checkpoints.read(chosen_step)
            return checkpoint, published_weights(checkpoint)
        except DataError:
            if chosen_step in checkpoints.steps():
                raise
            # The training has removed it while it was read: there is a newer one.


def _read_tokenizers(run: Path, progress: Progress) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of a training: those it keeps, or, of one that an earlier tfm began, the dataset's."""
    folder = run / "training" / TOKENIZER_FOLDER
    if folder.is_dir():
        walk_tree(folder)  # raises DataError at a link, or a pipe that nobody fills
        return load_tokenizer_pair(folder)
    dataset, dataset_input = run / "dataset", Input.from_value(progress.plan["inputs"]["dataset"])
    return read_artifact(
        dataset,
        lambda manifest: load_tokenizer_pair(manifest.folder / TOKENIZER_FOLDER),
        "preprocess",
        must_match=dataset_input,
    )
