"""The arithmetic of a training: parameters, floating-point operations and memory, from shapes and lengths alone.

A product of a weight (out, in) with a token takes 2 · out · in operations forward, and twice that backward: once for
the gradient of its input, and once for that of the weight, where that is trained. Attention takes 4 · T · D a token and
layer forward, with T tokens to attend to (half of them where later ones are hidden).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tfm.model.config import ModelConfig
from tfm.model.layers.lora import DEFAULT_TARGETS
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.training.optimizers import is_within_layers
from tfm.pipeline.training_config import LoraConfig, TrainingConfig

FORWARD_FLOP, INPUT_GRADIENT_FLOP, WEIGHT_GRADIENT_FLOP = 2, 2, 2
"""Operations by number of a weight and token."""
TRAINING_TO_FORWARD_FLOP = 3
"""Forward and backward of attention together, in forwards."""
FLOAT_BYTES = 4
LOGIT_CHUNK_ROWS = 256
"""Rows of which logits are kept at a time."""
OPTIMIZER_COPIES = {"adam": 2, "adamw": 2, "adagrad": 1, "sgd": 1}
"""Numbers that an optimizer keeps of each parameter; Muon, which has AdamW for a part of them, is counted by itself."""
ACTIVATIONS_OF_SUBLAYER = {"attention": 6, "cross_attention": 5, "feed_forward": 4}
"""Rows of width D that a sublayer keeps for the backward pass: its input, its normalized input, projections, masks."""


@dataclass(frozen=True)
class UpdateSizes:
    """Quantities on which the cost of an update depends, beside the model.

    Args:
        source_tokens: real tokens of the sources in an update of all processes.
        target_tokens: of the targets.
        predictions: of the loss in such an update, each of which takes a product with the output layer.
        source_length: tokens that a source token attends to, on average.
        target_length: the same of a target token.
        batch_tokens: padded tokens of a batch on its larger side, on one device.
    """

    source_tokens: float
    target_tokens: float
    predictions: float
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
    return sum(config.lora.rank * sum(shape) for name, shape in shapes.items() if _has_adapter(name, config.lora))


def _has_adapter(weight: str, lora: LoraConfig) -> bool:
    """Whether an adapter stands beside the weight of this name."""
    return weight.endswith(tuple(f".{name}.weight" for name in lora.products or DEFAULT_TARGETS))


def flop_of_update(
    shapes: Mapping[str, tuple[int, ...]],
    model: ModelConfig,
    config: TrainingConfig,
    sizes: UpdateSizes,
    target_vocab: int,
) -> float:
    """Return the floating-point operations of an update, forward and backward.

    Args:
        shapes: of the weights by name.
        model: the [model] part of a recipe.
        config: the [training] part of a recipe.
        sizes: of the update.
        target_vocab: the number of pieces of the target.
    """
    tokens, flop = _tokens_by_stack(model, sizes), 0.0
    frozen, trained = FORWARD_FLOP + INPUT_GRADIENT_FLOP, FORWARD_FLOP + INPUT_GRADIENT_FLOP + WEIGHT_GRADIENT_FLOP
    of_weight = trained if config.lora is None else frozen
    of_layer = of_weight + (FORWARD_FLOP if config.recompute else 0)
    for name, shape in shapes.items():
        if len(shape) < 2:
            continue
        if name.split(".")[0] == "output":
            flop += trained * math.prod(shape) * sizes.predictions  # losses.py computes its gradient in any case
            continue
        num_tokens = _num_tokens_read(name, model, sizes)
        flop += of_layer * math.prod(shape) * num_tokens
        if config.lora is not None and _has_adapter(name, config.lora):
            flop += trained * config.lora.rank * sum(shape) * num_tokens
    if not any(name.split(".")[0] == "output" for name in shapes):  # the output layer is the embedding's table
        flop += trained * target_vocab * model.width * sizes.predictions
    passes = TRAINING_TO_FORWARD_FLOP + (1 if config.recompute else 0)
    if model.canine is not None:
        num_layers = 2 if TASK_SPECS[model.task].predicts_per_word else 1
        flop += passes * 4 * num_layers * model.encoder.dim * sizes.source_tokens * sizes.source_length
    for side in stack_names(model):
        stack = getattr(model, side)
        flop += passes * 4 * stack.layers * stack.dim * tokens[side] * _attended_length(model, side, sizes)
    return flop * _num_passes(config)


def _tokens_by_stack(model: ModelConfig, sizes: UpdateSizes) -> dict[str, float]:
    """The tokens that each stack reads; a decoder that translates alone reads source and target as one text."""
    both = sizes.source_tokens + sizes.target_tokens if _reads_pair_as_one_text(model) else sizes.target_tokens
    return {"encoder": sizes.source_tokens / _characters_per_row(model), "decoder": both}


def _num_tokens_read(weight: str, model: ModelConfig, sizes: UpdateSizes) -> float:
    """The tokens of an update that a product with the weight of this name reads; 0 of a table that is looked up."""
    part, tokens = weight.split(".")[0], _tokens_by_stack(model, sizes)
    if "embedding" in part:  # only CANINE's has products
        of_rows = tokens["encoder"] if ".downsampling." in weight else 0.0
        return sizes.source_tokens if ".local." in weight else of_rows
    if part == "head":
        return sizes.source_tokens if TASK_SPECS[model.task].predicts_per_word else sizes.predictions
    reads_source = part == "encoder" or "cross_attention.key_value" in weight
    return tokens[model.only_stack or ("encoder" if reads_source else "decoder")]


def _characters_per_row(model: ModelConfig) -> int:
    """The characters that become one row of what the encoder's layers read; 1 where they read pieces."""
    return 1 if model.canine is None else model.canine.rate


def _attended_length(model: ModelConfig, side: str, sizes: UpdateSizes) -> float:
    """The tokens that a token of a stack attends to, on average and in a layer."""
    source_length = sizes.source_length / _characters_per_row(model)
    if model.architecture == "recurrent":
        return 0.0 if model.only_stack or side == "encoder" else source_length / model.decoder.layers
    if side == "encoder":
        return source_length
    if _reads_pair_as_one_text(model):
        return (sizes.source_length + sizes.target_length) / 2
    return sizes.target_length / 2 + (0.0 if model.only_stack else source_length)


def _reads_pair_as_one_text(model: ModelConfig) -> bool:
    return model.only_stack == "decoder" and TASK_SPECS[model.task].translates


def _num_passes(config: TrainingConfig) -> int:
    """How often an update reads a batch: R-Drop reads it twice."""
    return 1 if config.r_drop is None else 2


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
    positions = sizes.batch_tokens * _num_passes(config)
    if _reads_pair_as_one_text(model):  # the larger side of a batch has all its tokens
        sides = sizes.source_tokens, sizes.target_tokens
        positions = round(positions * sum(sides) / max(*sides, 1))
    return {
        "weights": FLOAT_BYTES * own,
        "gradients": FLOAT_BYTES * trained,
        "optimizer": FLOAT_BYTES * num_optimizer_numbers(shapes, config) / share,
        "moving average": FLOAT_BYTES * trained if config.ema is not None else 0.0,
        "gathered weights": 0.0 if own == parameters else FLOAT_BYTES * _num_gathered(shapes, config),
        "activations": (2 if low_precision else FLOAT_BYTES) * _numbers_kept(model, config) * positions,
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
