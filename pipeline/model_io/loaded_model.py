"""A trained model on disk: written, verified and read."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.directions import Direction
from tfm.data.errors import DataError, validation_problem
from tfm.data.image_config import IMAGES_FILE
from tfm.data.images.preparation import ImageTransform, read_image_transform
from tfm.data.json_documents import read_json
from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.model.vision.image_shape import ImageShape
from tfm.pipeline.artifacts.manifest import Input, Manifest, read_artifact
from tfm.pipeline.config import GuidedAlignmentConfig
from tfm.pipeline.model_io.adapter import merge_adapter
from tfm.pipeline.model_io.language_selection import needs_languages, tokenizer_for_languages
from tfm.pipeline.model_io.model_folder import read_guided_alignment
from tfm.pipeline.model_io.model_weights import (
    SkipWeightInit,
    check_shapes_match,
    drop_shared_tensors,
    load_weights,
    model_weight_shapes,
)
from tfm.pipeline.model_io.weight_files import path_for_safetensors, read_shapes
from tfm.pipeline.runtime.devices import resolve_device
from tfm.tokenizer.foreign.original_ids import ORIGINAL_IDS_FILE
from tfm.tokenizer.tokenizer import SHARED, SOURCE, TARGET, Tokenizer

TOKENIZER_FILES = (SHARED, SOURCE, TARGET, ORIGINAL_IDS_FILE, IMAGES_FILE)
"""The files by which a model reads its input, as a dataset and a model keep them; each has some of them."""


@dataclass(frozen=True)
class LoadedModel:
    """A model with the tokenizers it was trained with; its abilities follow from `config.task`.

    Args:
        model: the network.
        source_tokenizer: of the source; of a model of images the target's, which has no use.
        target_tokenizer: of the target.
        config: of the model.
        folder: of the model.
        images: turns images into the network's input, where its sources are images.
        artifact: that it was read from, where it was from one.
        guided: how one of its heads was trained to align; None if none was.
    """

    model: Any
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    config: ModelConfig
    folder: Path
    images: ImageTransform | None = None
    artifact: Input | None = None
    guided: GuidedAlignmentConfig | None = None

    def check_reads_text(self, remedy: str) -> None:
        """Raise DataError, with a remedy, where the model reads images."""
        if self.images is not None:
            raise DataError(f"reads images, not text: {remedy}", file=self.folder)

    def check_has_one_direction(self) -> None:
        """Raise DataError if the model needs the languages of a text, which this caller cannot give."""
        if needs_languages(self.source_tokenizer, self.config.languages):
            problem = "translates between several languages, and has to be told which"
            raise DataError(f"{problem}: give a model of one direction", file=self.folder)

    def require_image_transform(self) -> ImageTransform:
        """The transform from images to the network's input. Raises DataError if it reads texts."""
        if self.images is None:
            raise DataError("reads text, not images: give it a text", file=self.folder)
        return self.images

    def for_languages(self, to: str | None, source_language: str | None = None) -> "LoadedModel":
        """Return the model that translates into a language.

        The sources begin with the tokens of languages that the model knows. source_language: that of the sources, for a
        model that is told it. A code is the model's own (deu_Latn), or that of ISO 639-3 (deu) where it means one of
        its languages. Raises DataError if the model has other languages, or none and one is given; or where a
        language is not given that the model has to be told.
        """
        tokenizer = tokenizer_for_languages(
            self.source_tokenizer, self.config.languages, to, source_language, self.folder
        )
        return replace(self, source_tokenizer=tokenizer)

    def for_direction(self, direction: Direction) -> "LoadedModel":
        """Return the model for texts whose languages a dataset names. Raises DataError as `for_languages`."""
        source_language = direction.source if self.source_tokenizer.has_source_language else None
        return self.for_languages(direction.target, source_language)


def save_model(folder: Path, config: ModelConfig, weights: dict[str, Tensor], tokenizer_folder: Path) -> None:
    """Write config.json, model.safetensors and the tokenizer into a folder, which then stands alone.

    Args:
        folder: to write into.
        config: of the model.
        weights: by name.
        tokenizer_folder: from which the tokenizer is copied.
    """
    save_config_and_weights(folder, config, weights)
    copy_tokenizer(tokenizer_folder, folder)


def save_config_and_weights(folder: Path, config: ModelConfig, weights: dict[str, Tensor]) -> None:
    """Write config.json and model.safetensors.

    Args:
        folder: to write into.
        config: of the model.
        weights: by name.
    """
    (folder / "config.json").write_text(config.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(
        save(drop_shared_tensors(weights))
    )  # save_file has errors of its own for a full disk


def copy_tokenizer(source: Path, target: Path) -> None:
    """Copy the files of the tokenizer, one shared or one a side, and of the preparation of images."""
    names = [name for name in TOKENIZER_FILES if (source / name).exists()]
    if not names:
        raise DataError("has no tokenizer", file=source)
    for name in names:
        shutil.copyfile(source / name, target / name)


def load_model(
    folder: Path, device: str = "auto", dtype: torch.dtype = torch.float32, *, must_match: Input | None = None
) -> LoadedModel:
    """Load the model that `tfm train` published in a folder, verified, in eval mode.

    Nothing is built before the weights in the file are known to fit the model.

    Args:
        folder: of the model.
        device: cpu, cuda, mps or auto.
        dtype: of the weights.
        must_match: the artifact as it was seen before, as `must_match` of `read_artifact`.

    Raises:
        DataError: the folder is no such model.
    """
    artifact, guided, parts = read_artifact(
        folder,
        lambda manifest: (manifest.as_input(), _read_alignment_config(manifest), _read_model_parts(manifest)),
        "train",
        must_match=must_match,
    )
    return replace(build_loaded_model(*parts, folder, device, dtype), artifact=artifact, guided=guided)


def build_loaded_model(
    config: ModelConfig,
    tokenizers: tuple[Tokenizer, Tokenizer],
    weights: dict[str, Tensor],
    images: ImageTransform | None,
    folder: Path,
    device: str = "auto",
    dtype: torch.dtype = torch.float32,
) -> LoadedModel:
    """Build a model in eval mode from its parts.

    Args:
        config: of the model.
        tokenizers: of source and target.
        weights: by name.
        images: turns images into the network's input; None: the model reads text.
        folder: from which the parts were read.
        device: cpu, cuda, mps or auto.
        dtype: of the weights.
    """
    source, target = tokenizers
    shape = image_shape(images)
    with SkipWeightInit():
        model = build(config, source_vocab=source.vocab_size, target_vocab=target.vocab_size, image=shape)
    load_weights(model, weights, folder)
    model.to(device=resolve_device(device), dtype=dtype).eval()
    return LoadedModel(model, source, target, config, folder, images)


def image_shape(images: ImageTransform | None) -> ImageShape | None:
    """The shape of images as a network knows it."""
    return None if images is None else ImageShape(images.shape.height, images.shape.width, images.shape.channels)


def load_image_transform(
    config: ModelConfig, folder: Path, displayed_folder: Path | None = None
) -> ImageTransform | None:
    """Read the transform of a model's images in the folder of its tokenizers.

    Args:
        config: of the model.
        folder: with the tokenizers.
        displayed_folder: the folder to name in messages, if another.

    Returns:
        The transform; None if the model reads text.
    """
    return None if config.vision is None else read_image_transform(folder, displayed_folder)


def _read_alignment_config(manifest: Manifest) -> GuidedAlignmentConfig | None:
    try:
        return read_guided_alignment(manifest.config)
    except ValidationError as error:
        file = manifest.path / "manifest.json"
        raise DataError(f"training.guided_alignment: {validation_problem(error)}", file=file) from error


def _read_model_parts(
    manifest: Manifest,
) -> tuple[ModelConfig, tuple[Tokenizer, Tokenizer], dict[str, Tensor], ImageTransform | None]:
    """The parts of a published model: config, tokenizers of source and target, weights, images."""
    folder, path = manifest.folder, manifest.path
    try:
        config = ModelConfig.model_validate(read_json(folder / "config.json", displayed_path=path / "config.json"))
        source, target = load_tokenizer_pair(folder)
        sizes = {"source_vocab": source.vocab_size, "target_vocab": target.vocab_size}
        images = load_image_transform(config, folder, path)
        expected_shapes = model_weight_shapes(config, **sizes, image=image_shape(images))
        check_shapes_match(expected_shapes, read_shapes(folder / "model.safetensors"), path)
        weights = merge_adapter(folder, load_file(path_for_safetensors(folder / "model.safetensors")), path)
        return config, (source, target), weights, images
    except ValidationError as error:
        raise DataError(f"not a model: {validation_problem(error)}", file=path / "config.json") from error
    except (OSError, ValueError, SafetensorError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise DataError(f"not a model: {reason}. Give a folder that `tfm train` published.", file=path) from error
