"""The arithmetic of a training: parameters, floating-point operations and memory, from shapes and lengths alone.

A product of a weight (out, in) with a token takes 2 · out · in operations forward, and twice that backward. Attention
takes 4 · T · D a token and layer forward, with T tokens to attend to (half of them where later ones are hidden).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tfm.model.config import ModelConfig
from tfm.model.layers.lora import DEFAULT_TARGETS
from tfm.pipeline.training_config import TrainingConfig

TRAINING_TO_FORWARD_FLOP = 3
"""Forward and backward together, in forwards."""
FLOAT_BYTES = 4
LOGIT_CHUNK_ROWS = 256
"""Rows of which logits are kept at a time."""
OPTIMIZER_COPIES = {"adam": 2, "adamw": 2, "adagrad": 1, "muon": 1, "sgd": 1}
"""Numbers that an optimizer keeps of each parameter."""
ACTIVATIONS_OF_SUBLAYER = {"attention": 6, "cross_attention": 5, "feed_forward": 4}
"""Rows of width D that a sublayer keeps for the backward pass: its input, its normalized input, projections, masks."""


@dataclass(frozen=True)
class UpdateSizes:
    """Quantities on which the cost of an update depends, beside the model.

    Args:
        source_tokens: real tokens of the sources in an update of all processes.
        target_tokens: of the targets.
        source_length: tokens that a source token attends to, on average.
        target_length: the same of a target token.
        batch_tokens: padded tokens of a batch on its larger side, on one device.
    """

    source_tokens: float
    target_tokens: float
    source_length: float
    target_length: float
    batch_tokens: int


def num_parameters(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """The number of weights."""
    return sum(math.prod(shape) for shape in shapes.values())


def num_trained_parameters(shapes: Mapping[str, tuple[int, ...]], config: TrainingConfig) -> int:
    """The number of weights that are trained: all, or those of adapters, A (r, in) and B (out, r) of each product."""
    if config.lora is None:
        return num_parameters(shapes)
    adapted = config.lora.products or DEFAULT_TARGETS
    endings = tuple(f".{name}.weight" for name in adapted)
    return sum(config.lora.rank * sum(shape) for name, shape in shapes.items() if name.endswith(endings))


def flop_of_update(
    shapes: Mapping[str, tuple[int, ...]], model: ModelConfig, sizes: UpdateSizes, target_vocab: int
) -> float:
    """Return the floating-point operations of an update, forward and backward.

    Args:
        shapes: of the weights by name.
        model: its config.
        sizes: of the update.
        target_vocab: the number of pieces of the target.
    """
    tokens = {"encoder": sizes.source_tokens, "decoder": sizes.target_tokens}
    products = 0.0
    for name, shape in shapes.items():
        part = name.split(".")[0]
        if len(shape) >= 2 and "embedding" not in part:
            reads_source = part == "encoder" or "cross_attention.key_value" in name
            side: str = model.only_stack or ("encoder" if reads_source else "decoder")
            products += math.prod(shape) * tokens[side]
    if not any(name.split(".")[0] == "output" for name in shapes) and model.only_stack != "encoder":
        products += target_vocab * model.width * sizes.target_tokens  # the output layer is the embedding's table
    attention = 0.0
    for side in stack_names(model):
        seen = sizes.source_length if side == "encoder" else sizes.target_length / 2
        seen += 0.0 if side == "encoder" or model.only_stack else sizes.source_length
        stack = getattr(model, side)
        attention += 4 * stack.layers * stack.dim * tokens[side] * seen
    return TRAINING_TO_FORWARD_FLOP * (2 * products + attention)


def stack_names(model: ModelConfig) -> tuple[str, ...]:
    """The stacks that a model has."""
    return ("encoder", "decoder") if model.only_stack is None else (model.only_stack,)


def memory_by_use(
    shapes: Mapping[str, tuple[int, ...]],
    model: ModelConfig,
    config: TrainingConfig,
    sizes: UpdateSizes,
    target_vocab: int,
    *,
    low_precision: bool,
    num_devices: int = 1,
) -> dict[str, float]:
    """Return the bytes on one device by what holds them.

    Args:
        shapes: of the weights by name.
        model: the [model] part of a recipe.
        config: the [training] part of a recipe.
        sizes: of the update.
        target_vocab: the number of pieces of the target.
        low_precision: whether products, and what is kept of them, are in 16 bits.
        num_devices: the number of devices, which share the weights where `training.shard` says so.
    """
    parameters, share = num_parameters(shapes), 1 if config.shard == "none" else num_devices
    own, trained = parameters / share, num_trained_parameters(shapes, config) / share
    return {
        "weights": FLOAT_BYTES * own,
        "gradients": FLOAT_BYTES * trained,
        "optimizer": FLOAT_BYTES * optimizer_copies(config) * trained,
        "moving average": FLOAT_BYTES * trained if config.ema is not None else 0.0,
        "gathered weights": 0.0 if own == parameters else FLOAT_BYTES * _num_gathered(shapes, config),
        "activations": (2 if low_precision else FLOAT_BYTES) * _numbers_kept(model, config) * sizes.batch_tokens,
        "logits": 2.0 * FLOAT_BYTES * LOGIT_CHUNK_ROWS * target_vocab,
    }


def optimizer_copies(config: TrainingConfig) -> int:
    """Return how many numbers the optimizer of a training keeps of each parameter."""
    if config.optimizer.name == "sgd" and not config.optimizer.momentum:
        return 0
    return OPTIMIZER_COPIES[config.optimizer.name]


def _num_gathered(shapes: Mapping[str, tuple[int, ...]], config: TrainingConfig) -> int:
    """Whole weights, and the gradients of a layer, that a device has beside its part of them.

    "optimizer": all weights, from the forward to the backward pass. "full": those of a layer, and those outside of
    layers, which are needed first and last.
    """
    of_layers: dict[str, int] = {}
    for name, shape in shapes.items():
        found = re.match(r"(?:encoder|decoder)\.\d+\.", name)
        if found is not None:
            of_layers[found[0]] = of_layers.get(found[0], 0) + math.prod(shape)
    whole = num_parameters(shapes)
    unit = max(of_layers.values(), default=0) + whole - sum(of_layers.values())
    return unit + (whole if config.shard == "optimizer" else unit)


def _numbers_kept(model: ModelConfig, config: TrainingConfig) -> float:
    """Numbers of a position that are kept for the backward pass; of layers that are computed again, their input, and
    all of one layer at a time.
    """
    total, largest = 0.0, 0.0
    for side in stack_names(model):
        stack = getattr(model, side)
        kept = ACTIVATIONS_OF_SUBLAYER["attention"] + ACTIVATIONS_OF_SUBLAYER["feed_forward"]
        kept += ACTIVATIONS_OF_SUBLAYER["cross_attention"] if side == "decoder" and model.only_stack is None else 0
        of_layer = kept * stack.dim + 2 * stack.feed_forward_dim
        largest = max(largest, of_layer)
        total += stack.layers * (stack.dim if config.recompute else of_layer)
    return total + (largest if config.recompute else 0.0)
