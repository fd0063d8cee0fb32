"""The floating-point operations of an update, from shapes and lengths alone: those of products, as torch counts them.

A product of a weight (out, in) with a row takes 2 · out · in operations forward, and twice that backward: once for
the gradient of its input, where that is made by weights, and once for that of the weight, where that is trained.
Attention takes 4 · T · D a token and layer forward, with T tokens to attend to, hidden ones too.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tfm.model.attention.inner_attention import MIN_BLOCK_SIZE, MIN_BLOCKS_FOR_BLOCKED_ATTENTION
from tfm.model.config import ModelConfig
from tfm.model.layers.lora import DEFAULT_TARGETS
from tfm.model.vision.image_shape import ImageShape, map_size
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.training_config import LoraConfig, TrainingConfig

FORWARD_FLOP, INPUT_GRADIENT_FLOP, WEIGHT_GRADIENT_FLOP = 2, 2, 2
"""Operations by number of a weight and row."""
TRAINING_FLOP = FORWARD_FLOP + INPUT_GRADIENT_FLOP + WEIGHT_GRADIENT_FLOP
TRAINING_TO_FORWARD_FLOP = 3
"""Forward and backward of attention together, in forwards."""


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
        rows: pairs, texts or images in such an update.
    """

    source_tokens: float
    target_tokens: float
    predictions: float
    source_length: float
    target_length: float
    batch_tokens: int
    rows: float


def flop_of_update(
    shapes: Mapping[str, tuple[int, ...]],
    model: ModelConfig,
    config: TrainingConfig,
    sizes: UpdateSizes,
    target_vocab: int,
    image: ImageShape | None = None,
) -> float:
    """Return the floating-point operations of an update, forward and backward.

    Args:
        shapes: of the weights by name.
        model: the [model] part of a recipe.
        config: the [training] part of a recipe.
        sizes: of the update.
        target_vocab: the number of pieces of the target.
        image: the shape of an image; None: the model reads text.
    """
    if TASK_SPECS[model.task].within_window:
        words = target_vocab if model.word_vectors.negatives is None else 1 + model.word_vectors.negatives
        return TRAINING_FLOP * words * model.width * sizes.predictions  # of loops without torch as well
    flop = _attention_flop(model, config, sizes)
    for name, shape in shapes.items():
        if name.split(".")[0] == "output":  # losses.py computes its gradient in any case
            flop += TRAINING_FLOP * _product_size(shape) * sizes.predictions
        elif image is not None and is_image_embedding(name):
            flop += _image_flop(name, shape, model, config, image) * sizes.rows
        else:
            layer = re.match(r"(encoder|decoder)\.(\d+)\.", name)
            share = 1.0 if layer is None else _share_of_updates(model, layer[1], int(layer[2]))
            flop += _product_flop(name, shape, config) * _num_rows_read(name, model, sizes) * share
    if not any(name.split(".")[0] == "output" for name in shapes):  # the output layer is the embedding's table
        flop += TRAINING_FLOP * target_vocab * (model.embedding_dim or model.width) * sizes.predictions
    return flop * num_passes(config)


def _product_size(shape: tuple[int, ...]) -> int:
    """The numbers of a weight that takes part in products; 0 of a vector, which is added or scales."""
    return math.prod(shape) if len(shape) > 1 else 0


def _product_flop(name: str, shape: tuple[int, ...], config: TrainingConfig) -> float:
    """Operations of a product with one row, and with the adapter beside its weight."""
    of_weight = TRAINING_FLOP if config.lora is None else FORWARD_FLOP + INPUT_GRADIENT_FLOP
    flop = (of_weight + (FORWARD_FLOP if config.recompute else 0)) * _product_size(shape)
    if config.lora is not None and has_adapter(name, config.lora):
        flop += TRAINING_FLOP * config.lora.rank * sum(shape)
    return flop


def has_adapter(weight: str, lora: LoraConfig) -> bool:
    """Return whether an adapter stands beside the weight of this name."""
    return weight.endswith(tuple(f".{name}.weight" for name in lora.products or DEFAULT_TARGETS))


def _attention_flop(model: ModelConfig, config: TrainingConfig, sizes: UpdateSizes) -> float:
    """Operations of the products of queries with keys, and of weights with values."""
    passes, tokens = TRAINING_TO_FORWARD_FLOP + (1 if config.recompute else 0), tokens_by_stack(model, sizes)
    flop = 0.0
    if model.canine is not None:
        length = _length_within_window(sizes.source_length, model.canine.window, causal=False)
        length += sizes.source_length if TASK_SPECS[model.task].predicts_per_word else 0.0  # of the layer at the end
        flop += passes * 4 * model.encoder.dim * sizes.source_tokens * length
    for side in stack_names(model):
        stack = getattr(model, side)
        width = stack.heads * (
            (stack.key_dim or stack.dim / stack.heads) + (stack.value_dim or stack.dim / stack.heads)
        )
        layers = sum(_share_of_updates(model, side, number) for number in range(stack.layers))
        flop += passes * 2 * layers * width * tokens[side] * _attended_length(model, side, sizes)
    return flop


def _share_of_updates(model: ModelConfig, side: str, number: int) -> float:
    """The share of updates that take part in a sublayer of a layer: stochastic depth leaves some out."""
    layers: int = getattr(model, side).layers
    return 1 - model.dropout.depth * (number + 1) / layers


def _attended_length(model: ModelConfig, side: str, sizes: UpdateSizes) -> float:
    """The tokens that a token of a stack attends to, on average and in a layer."""
    source_length = sizes.source_length / _characters_per_row(model)
    if model.architecture == "recurrent" and side == "decoder":
        has_attention = model.only_stack is None and model.recurrent.attention != "none"
        return source_length / model.decoder.layers if has_attention else 0.0
    if model.architecture == "recurrent" and model.vision is None and model.canine is None:
        return 0.0
    if side == "encoder" and model.vision is not None:
        return source_length
    if side == "encoder":
        self_attended = _length_within_window(source_length, model.window, causal=False)
        return self_attended if model.stack_mixing(side) == "attention" else 0.0
    text_length = sizes.target_length + (sizes.source_length if _reads_pair_as_one_text(model) else 0.0)
    self_attended = _length_within_window(text_length, model.window, causal=True)
    cross_attended = source_length if model.only_stack is None else 0.0
    return (self_attended if model.stack_mixing(side) == "attention" else 0.0) + cross_attended


def _length_within_window(length: float, window: int | None, *, causal: bool) -> float:
    """The tokens that are computed with a token of a sentence: in long ones those of its block and of its neighbors."""
    size = max(window or 0, MIN_BLOCK_SIZE)
    if window is None or length <= MIN_BLOCKS_FOR_BLOCKED_ATTENTION * size:
        return length
    blocks = 2 if causal else 3
    return blocks * size * (length + size / 2) / length  # the last block is filled


def tokens_by_stack(model: ModelConfig, sizes: UpdateSizes) -> dict[str, float]:
    """Return the tokens that each stack reads; a decoder that translates alone reads source and target as one text.

    Args:
        model: the [model] part of a recipe.
        sizes: of an update.
    """
    decoder_tokens = sizes.target_tokens + (sizes.source_tokens if _reads_pair_as_one_text(model) else 0.0)
    return {"encoder": sizes.source_tokens / _characters_per_row(model), "decoder": decoder_tokens}


def _num_rows_read(weight: str, model: ModelConfig, sizes: UpdateSizes) -> float:
    """The rows of an update that a product with the weight of this name reads; 0 of a table that is looked up."""
    part, tokens = weight.split(".")[0], tokens_by_stack(model, sizes)
    if ".local." in weight:  # CANINE's layer of characters
        return sizes.source_tokens
    if "embedding" in part:
        side = model.only_stack or ("encoder" if part == "source_embedding" else "decoder")
        return tokens[side] if ".widen." in weight or ".downsampling." in weight or ".project." in weight else 0.0
    if part == "head":
        return sizes.source_tokens if TASK_SPECS[model.task].predicts_per_word else sizes.predictions
    if part == "bridge":  # from the last state of a source to the first of its target
        return sizes.rows
    reads_source = part == "encoder" or "cross_attention.key_value" in weight or ".attention.fit." in weight
    return tokens[model.only_stack or ("encoder" if reads_source else "decoder")]


def is_image_embedding(weight: str) -> bool:
    """Return whether the weight of this name, of a model of images, makes tokens of an image."""
    return weight.split(".")[0] in ("embedding", "source_embedding")


def _image_flop(
    name: str, shape: tuple[int, ...], model: ModelConfig, config: TrainingConfig, image: ImageShape
) -> float:
    """Operations with one image of a weight that makes tokens of it; what reads pixels makes no gradient of them."""
    if ".positions." in name:
        return 0.0
    reads_pixels = ".stem." in name or (model.vision is not None and model.vision.encoder == "patches")
    flop = TRAINING_FLOP - (INPUT_GRADIENT_FLOP if reads_pixels else 0)
    rows, columns = size_of_map(name, model, image)
    return (FORWARD_FLOP if config.lora is not None else flop) * _product_size(shape) * rows * columns


def size_of_map(weight: str, model: ModelConfig, image: ImageShape) -> tuple[int, int]:
    """Return rows and columns of the map that a convolution makes, or of the tokens that a product makes.

    Args:
        weight: its name.
        model: the [model] part of a recipe.
        image: the shape of an image.
    """
    assert model.vision is not None
    _, part, *rest = weight.split(".")
    stage = len(model.vision.channels) - 1
    if part == "stem":
        stage = 0
    elif part == "blocks":
        stage = int(rest[0]) // model.vision.blocks
    return map_size(model.vision, image, stage)


def _characters_per_row(model: ModelConfig) -> int:
    """The characters that become one row of what the encoder's layers read; 1 where they read pieces."""
    return 1 if model.canine is None else model.canine.rate


def _reads_pair_as_one_text(model: ModelConfig) -> bool:
    return model.only_stack == "decoder" and TASK_SPECS[model.task].translates


def num_passes(config: TrainingConfig) -> int:
    """Return how often an update reads a batch: R-Drop reads it twice."""
    return 1 if config.r_drop is None else 2


def stack_names(model: ModelConfig) -> tuple[str, ...]:
    """The stacks that a model has."""
    if TASK_SPECS[model.task].within_window:
        return ()
    return ("encoder", "decoder") if model.only_stack is None else (model.only_stack,)
