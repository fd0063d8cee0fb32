"""Parameters and memory of a training, from shapes and lengths alone."""

import math
import re
from collections.abc import Mapping

from tfm.model.config import ModelConfig
from tfm.model.vision.image_shape import ImageShape
from tfm.pipeline.planning.operations import (
    UpdateSizes,
    has_adapter,
    is_image_embedding,
    num_passes,
    size_of_map,
    stack_names,
    tokens_by_stack,
)
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.training.optimizers import is_within_layers
from tfm.pipeline.training_config import TrainingConfig

FLOAT_BYTES = 4
LOGIT_CHUNK_ROWS = 256
"""Rows of which logits are kept at a time."""
OPTIMIZER_COPIES = {"adam": 2, "adamw": 2, "adagrad": 1, "sgd": 1}
"""Numbers that an optimizer keeps of each parameter; Muon, which has AdamW for a part of them, is counted by itself."""
ACTIVATIONS_OF_SUBLAYER = {"attention": 6, "cross_attention": 5, "feed_forward": 4}
"""Rows of width D that a sublayer keeps for the backward pass: its input, its normalized input, projections, masks."""


def num_parameters(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """The number of weights."""
    return sum(math.prod(shape) for shape in shapes.values())


def num_trained_parameters(shapes: Mapping[str, tuple[int, ...]], config: TrainingConfig) -> int:
    """The number of weights that are trained: all, or those of adapters, A (r, in) and B (out, r) of each product."""
    if config.lora is None:
        return num_parameters(shapes)
    return sum(config.lora.rank * sum(shape) for name, shape in shapes.items() if has_adapter(name, config.lora))


def memory_by_use(
    shapes: Mapping[str, tuple[int, ...]],
    model: ModelConfig,
    config: TrainingConfig,
    sizes: UpdateSizes,
    target_vocab: int,
    *,
    low_precision: bool,
    num_devices: int = 1,
    image: ImageShape | None = None,
) -> dict[str, float]:
    """Return the bytes on one device by their use.

    Args:
        shapes: of the weights by name.
        model: the [model] part of a recipe.
        config: the [training] part of a recipe.
        sizes: of the update.
        target_vocab: the number of pieces of the target.
        low_precision: whether products, and what is kept of them, are in 16 bits.
        num_devices: the number of devices, which share the weights where `training.shard` says so.
        image: the shape of an image; None: the model reads text.
    """
    parameters, share = num_parameters(shapes), 1 if config.shard == "none" else num_devices
    held_parameters, trained_parameters = parameters / share, num_trained_parameters(shapes, config) / share
    activations = _numbers_kept(model, config, sizes) + _numbers_of_words_kept(model, sizes)
    if image is not None:
        activations += _numbers_of_maps_kept(shapes, model, image) * _batch_share(sizes) * sizes.rows
    if TASK_SPECS[model.task].within_window and model.word_vectors.negatives is not None:
        target_vocab = 0  # without logits
    return {
        "weights": FLOAT_BYTES * held_parameters,
        "gradients": FLOAT_BYTES * trained_parameters,
        "optimizer": FLOAT_BYTES * num_optimizer_numbers(shapes, config) / share,
        "moving average": FLOAT_BYTES * trained_parameters if config.ema is not None else 0.0,
        "gathered weights": 0.0 if held_parameters == parameters else FLOAT_BYTES * _num_gathered(shapes, config),
        "activations": (2 if low_precision else FLOAT_BYTES) * activations * num_passes(config),
        "logits": 2.0 * FLOAT_BYTES * LOGIT_CHUNK_ROWS * target_vocab,
    }


def num_optimizer_numbers(shapes: Mapping[str, tuple[int, ...]], config: TrainingConfig) -> int:
    """Return how many numbers the optimizer of a training keeps: Muon one of each number of a matrix within layers, and
    AdamW's two of the others.

    Args:
        shapes: of the weights by name.
        config: the [training] part of a recipe.
    """
    trained, name = num_trained_parameters(shapes, config), config.optimizer.name
    if name == "sgd" and not config.optimizer.momentum:
        return 0
    if name != "muon":
        return OPTIMIZER_COPIES[name] * trained
    if config.lora is not None:  # adapters are matrices within layers
        return trained
    hidden = sum(math.prod(shape) for name, shape in shapes.items() if len(shape) == 2 and is_within_layers(name))
    return hidden + OPTIMIZER_COPIES["adamw"] * (trained - hidden)


def _num_gathered(shapes: Mapping[str, tuple[int, ...]], config: TrainingConfig) -> int:
    """Whole weights, and the gradients of a layer, that a device has beside its part of them.

    "optimizer": all weights, from the forward to the backward pass. "full": those of a layer, and those outside of
    layers, which are needed first and last.
    """
    layer_sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        match = re.match(r"(?:encoder|decoder)\.\d+\.", name)
        if match is not None:
            layer_sizes[match[0]] = layer_sizes.get(match[0], 0) + math.prod(shape)
    total = num_parameters(shapes)
    unit = max(layer_sizes.values(), default=0) + total - sum(layer_sizes.values())
    return unit + (total if config.shard == "optimizer" else unit)


def _batch_share(sizes: UpdateSizes) -> float:
    """The batch of one device, whose larger side has all its tokens, by the update of all devices."""
    return sizes.batch_tokens / max(sizes.source_tokens, sizes.target_tokens, 1)


def _numbers_kept(model: ModelConfig, config: TrainingConfig, sizes: UpdateSizes) -> float:
    """Numbers of a batch that stacks keep for the backward pass; of layers that are computed again, their input, and
    all of one layer at a time.
    """
    total, largest, tokens = 0.0, 0.0, tokens_by_stack(model, sizes)
    for side in stack_names(model):
        stack, positions = getattr(model, side), tokens[side] * _batch_share(sizes)
        num_activations = ACTIVATIONS_OF_SUBLAYER["attention"] + ACTIVATIONS_OF_SUBLAYER["feed_forward"]
        num_activations += (
            ACTIVATIONS_OF_SUBLAYER["cross_attention"] if side == "decoder" and model.only_stack is None else 0
        )
        layer_activations = (num_activations * stack.dim + 2 * stack.feed_forward_dim) * positions
        largest = max(largest, layer_activations)
        total += stack.layers * (stack.dim * positions if config.recompute else layer_activations)
    return total + (largest if config.recompute else 0.0)


def _numbers_of_words_kept(model: ModelConfig, sizes: UpdateSizes) -> float:
    """Numbers of a batch that word vectors keep: of each prediction its input, and the vectors that it is scored with,
    each with its gradient."""
    if not TASK_SPECS[model.task].within_window:
        return 0.0
    vectors = 1 if model.word_vectors.negatives is None else 2 + model.word_vectors.negatives
    return 2.0 * vectors * model.width * sizes.predictions * _batch_share(sizes)


def _numbers_of_maps_kept(shapes: Mapping[str, tuple[int, ...]], model: ModelConfig, image: ImageShape) -> float:
    """Numbers of an image that are kept for the backward pass: the output of each product, and that of its norm."""
    products = (name for name, shape in shapes.items() if is_image_embedding(name) and len(shape) > 1)
    maps = (name for name in products if ".positions." not in name and ".table." not in name)
    return sum(2.0 * shapes[name][0] * math.prod(size_of_map(name, model, image)) for name in maps)
