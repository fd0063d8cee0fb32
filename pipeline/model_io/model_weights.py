"""The weights of a network: the shapes that it has, whether others fit, and their copy into it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from tfm.data.errors import DataError
from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.model.vision.image_shape import ImageShape
from tfm.pipeline.model_io.weight_files import Shapes

WEIGHT_INITIALIZERS = {torch.nn.init.normal_, torch.nn.init.uniform_, Tensor.normal_, Tensor.uniform_}
"""Functions that all draws of initial weights end in."""


def drop_shared_tensors(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights with each shared tensor once, under its first name; safetensors stores no sharing."""
    addresses: set[int] = set()
    tensors = {}
    for name, tensor in weights.items():
        if tensor.data_ptr() not in addresses:
            tensors[name] = tensor.detach().contiguous()
            addresses.add(tensor.data_ptr())
    return tensors


class SkipWeightInit(TorchFunctionMode):
    """Draw no initial weights while the body runs: for a network that is filled from a file, or that has no memory.

    To draw those of a large model takes half a second, and to begin to on the meta device loads a second of modules.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in WEIGHT_INITIALIZERS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def model_weight_shapes(
    config: ModelConfig, *, source_vocab: int, target_vocab: int, image: ImageShape | None = None
) -> Shapes:
    """Find the shapes of a model's weights, without memory for any of them.

    Args:
        config: of the model.
        source_vocab: the number of pieces of the source.
        target_vocab: the number of pieces of the target.
        image: the shape of an image; None: the model reads text.

    Raises:
        ValueError: a size is beyond that of a tensor.
    """
    # parameters, and what else a model is saved with
    return _shapes_once(_build_on_meta(config, source_vocab, target_vocab, image).state_dict(keep_vars=True))


def model_parameter_shapes(
    config: ModelConfig, *, source_vocab: int, target_vocab: int, image: ImageShape | None = None
) -> Shapes:
    """Find the shapes of a model's parameters, without memory for any of them.

    Args:
        config: of the model.
        source_vocab: the number of pieces of the source.
        target_vocab: the number of pieces of the target.
        image: the shape of an image; None: the model reads text.

    Raises:
        ValueError: a size is beyond that of a tensor.
    """
    return _shapes_once(dict(_build_on_meta(config, source_vocab, target_vocab, image).named_parameters()))


def _build_on_meta(
    config: ModelConfig, source_vocab: int, target_vocab: int, image: ImageShape | None
) -> torch.nn.Module:
    try:
        with torch.device("meta"), SkipWeightInit():
            return build(config, source_vocab=source_vocab, target_vocab=target_vocab, image=image)
    except RuntimeError as error:  # numbers beyond what a tensor's size may be
        raise ValueError(str(error)) from error


def _shapes_once(weights: Mapping[str, Tensor]) -> Shapes:
    """The shape of each tensor, under its first name."""
    first = {id(weight): name for name, weight in reversed(list(weights.items()))}
    return {name: tuple(weight.shape) for name, weight in weights.items() if first[id(weight)] == name}


def check_shapes_match(model_shapes: Shapes, file_shapes: Shapes, path: Path) -> None:
    """Check that the weights found are just those of the model, in names and shapes.

    Args:
        model_shapes: shapes of the model's weights.
        file_shapes: shapes of the weights in the file.
        path: for the message.

    Raises:
        DataError: the weights do not fit.
    """
    if missing := sorted(model_shapes.keys() ^ file_shapes.keys()):
        raise DataError(f"its weights do not match the model: {missing[0]:.80} is missing or unexpected", file=path)
    for name, shape in model_shapes.items():
        if shape != file_shapes[name]:
            problem = f"its weights do not match the model: {name} is {file_shapes[name]}, not {shape}"
            raise DataError(problem, file=path)


def load_weights(model: torch.nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    """Copy weights into the model's own tensors; names and shapes must fit exactly.

    Args:
        model: the network.
        weights: by name.
        path: for the message.

    Raises:
        DataError: the weights do not fit.
    """
    tensors = drop_shared_tensors(model.state_dict())
    shapes, file_shapes = ({name: tuple(each.shape) for name, each in group.items()} for group in (tensors, weights))
    check_shapes_match(shapes, file_shapes, path)
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(weights[name])
