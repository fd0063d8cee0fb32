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
from torch.overrides import TorchFunctionMode

from tfm.data.artifact_tokenizers import load_pair
from tfm.data.dataset.directions import Direction
from tfm.data.errors import DataError
from tfm.data.image_config import IMAGES_FILE
from tfm.data.images.preparation import ImageTransform, read_preparation
from tfm.data.json_documents import read_json
from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.model.vision.image_shape import ImageShape
from tfm.pipeline.artifacts.manifest import Input, Manifest, read_artifact
from tfm.pipeline.model_io.adapter import with_adapter_in
from tfm.pipeline.model_io.language_selection import tokenizer_for_languages
from tfm.pipeline.model_io.weight_files import Shapes, shapes_in
from tfm.pipeline.runtime.devices import resolve_device
from tfm.tokenizer.tokenizer import ORIGINAL_IDS, SHARED, SOURCE, TARGET, Tokenizer

TOKENIZER_FILES = (SHARED, SOURCE, TARGET, ORIGINAL_IDS, IMAGES_FILE)
"""What a model reads its input by, as a dataset and a model keep it; each has some of them."""


@dataclass(frozen=True)
class LoadedModel:
    """A model with the tokenizers it was trained with. What the network can be asked follows from `config.task`.

    images: how images become what the network reads, where its sources are images; it then has no use for
    `source_tokenizer`, which is the target's. made: the artifact that it was read from, where it was from one.
    """

    model: Any
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    config: ModelConfig
    folder: Path
    images: ImageTransform | None = None
    made: Input | None = None

    def check_reads_text(self, instead: str) -> None:
        """Raise DataError where the model reads images; it says what to do instead."""
        if self.images is not None:
            raise DataError(f"reads images, not text: {instead}", file=self.folder)

    def preparation(self) -> ImageTransform:
        """How images become what the network reads. Raises DataError where it reads texts."""
        if self.images is None:
            raise DataError("reads text, not images: give it a text", file=self.folder)
        return self.images

    def for_languages(self, to: str | None, source_language: str | None = None) -> "LoadedModel":
        """The model that translates into a language: its sources begin with the tokens of languages that it knows.

        source_language: that of the sources, for a model that is told it. A code is the model's own (deu_Latn), or that
        of ISO 639-3 (deu) where it means one of its languages. Raises DataError where it has other languages, or none
        and one is given; or where one is not given that it has to be told.
        """
        asked = tokenizer_for_languages(self.source_tokenizer, self.config.languages, to, source_language, self.folder)
        return replace(self, source_tokenizer=asked)

    def for_direction(self, direction: Direction) -> "LoadedModel":
        """The model that translates what a dataset says the languages of. Raises DataError as `for_languages`."""
        own = direction.source if self.source_tokenizer.names_texts else None
        return self.for_languages(direction.target, own)


def save_model(folder: Path, config: ModelConfig, weights: dict[str, Tensor], tokenizer_folder: Path) -> None:
    """Write config.json, model.safetensors and the tokenizer into a folder, which then stands alone."""
    save_network(folder, config, weights)
    copy_tokenizer(tokenizer_folder, folder)


def save_network(folder: Path, config: ModelConfig, weights: dict[str, Tensor]) -> None:
    """Write config.json and model.safetensors."""
    (folder / "config.json").write_text(config.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(save(untied(weights)))  # save_file has errors of its own for a full disk


def copy_tokenizer(source: Path, target: Path) -> None:
    """Copy the tokenizer's files, one shared or one a side, and what images are read by."""
    names = [name for name in TOKENIZER_FILES if (source / name).exists()]
    if not names:
        raise DataError("has no tokenizer", file=source)
    for name in names:
        shutil.copyfile(source / name, target / name)


def load_model(
    folder: Path, device: str = "auto", dtype: torch.dtype = torch.float32, *, known: Input | None = None
) -> LoadedModel:
    """The model that `tfm train` published in a folder, verified, in eval mode; `known`: see read_artifact.

    Raises DataError where it is not one. Nothing is built before it is known that the weights in the file fill it.
    """
    made, parts = read_artifact(folder, lambda made: (made.as_input(), _parts(made)), "train", must_match=known)
    return replace(build_loaded_model(*parts, folder, device, dtype), made=made)


def build_loaded_model(
    config: ModelConfig,
    tokenizers: tuple[Tokenizer, Tokenizer],
    weights: dict[str, Tensor],
    images: ImageTransform | None,
    folder: Path,
    device: str = "auto",
    dtype: torch.dtype = torch.float32,
) -> LoadedModel:
    """A model in eval mode from its parts, which were read in `folder`."""
    source, target = tokenizers
    shape = image_shape(images)
    model = build(config, source_vocab=source.vocab_size, target_vocab=target.vocab_size, image=shape)
    load_weights(model, weights, folder)
    model.to(device=resolve_device(device), dtype=dtype).eval()
    return LoadedModel(model, source, target, config, folder, images)


def image_shape(images: ImageTransform | None) -> ImageShape | None:
    """The shape of images as a network knows it."""
    return None if images is None else ImageShape(images.shape.height, images.shape.width, images.shape.channels)


def read_images(config: ModelConfig, folder: Path, shown: Path | None = None) -> ImageTransform | None:
    """How a model reads images, in the folder of its tokenizers; None where it reads text."""
    return None if config.vision is None else read_preparation(folder, shown)


def _parts(
    manifest: Manifest,
) -> tuple[ModelConfig, tuple[Tokenizer, Tokenizer], dict[str, Tensor], ImageTransform | None]:
    """What a published model is put together from: config, tokenizers of source and target, weights, images."""
    folder, shown = manifest.folder, manifest.path
    try:
        config = ModelConfig.model_validate(read_json(folder / "config.json", shown=shown / "config.json"))
        source, target = load_pair(folder)
        sizes = {"source_vocab": source.vocab_size, "target_vocab": target.vocab_size}
        images = read_images(config, folder, shown)
        wanted = shapes_of(config, **sizes, image=image_shape(images))
        check_fit(wanted, shapes_in(folder / "model.safetensors"), shown)
        weights = with_adapter_in(folder, load_file(folder / "model.safetensors"), shown)
        return config, (source, target), weights, images
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise DataError(f"not a model: {where}: {problem['msg']}", file=shown / "config.json") from error
    except (OSError, ValueError, SafetensorError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise DataError(f"not a model: {reason}. Give a folder that `tfm train` published.", file=shown) from error


def untied(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same weights with each shared tensor once, under its first name; safetensors stores no sharing."""
    seen: set[int] = set()
    kept = {}
    for name, tensor in weights.items():
        if tensor.data_ptr() not in seen:
            kept[name] = tensor.detach().contiguous()
            seen.add(tensor.data_ptr())
    return kept


class _SkipInit(TorchFunctionMode):
    """Within, weights are not drawn; on the meta device drawing them would load a second of modules."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return kwargs["tensor"] if func is torch.nn.init.normal_ else func(*args, **(kwargs or {}))


def shapes_of(config: ModelConfig, *, source_vocab: int, target_vocab: int, image: ImageShape | None = None) -> Shapes:
    """The shapes of a model's weights, found without memory for any of them."""
    try:
        with torch.device("meta"), _SkipInit():
            model = build(config, source_vocab=source_vocab, target_vocab=target_vocab, image=image)
    except RuntimeError as error:  # numbers beyond what a tensor's size may be
        raise ValueError(str(error)) from error
    weights = model.state_dict(keep_vars=True)  # parameters, and what else a model is saved with
    first = {id(weight): name for name, weight in reversed(weights.items())}
    return {name: tuple(weight.shape) for name, weight in weights.items() if first[id(weight)] == name}


def check_fit(own: Shapes, found: Shapes, path: Path) -> None:
    """Raise DataError unless the weights found are just those of the model, in names and shapes."""
    if missing := sorted(own.keys() ^ found.keys()):
        raise DataError(f"its weights do not fit this model: {missing[0]:.80} is in one of them only", file=path)
    for name, wanted in own.items():
        if wanted != found[name]:
            problem = f"its weights do not fit this model: {name} is {found[name]}, not {wanted}"
            raise DataError(problem, file=path)


def load_weights(model: torch.nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    """Copy weights into the model's own tensors; names and shapes must fit exactly."""
    own = untied(model.state_dict())
    shapes, found = ({name: tuple(each.shape) for name, each in group.items()} for group in (own, weights))
    check_fit(shapes, found, path)
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(weights[name])
