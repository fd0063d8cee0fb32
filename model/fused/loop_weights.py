"""Weights of a stack of layers as the compiled loops read them (`cpu_kernels/transformer_layers.py`)."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tfm.model.attention.positions import NoPositionEmbedding, SinusoidalPositions
from tfm.model.attention.relative_positions import Rotary
from tfm.model.fused.eligibility import COMPILED_LOOP_ACTIVATIONS, has_ssrus
from tfm.model.fused.panels import WeightPacker
from tfm.model.layers.normalization import LayerNorm
from tfm.model.layers.residual import PreNorm


def load_layer_types() -> Any:
    """Return the module of the types, which loads numba."""
    from tfm.model.cpu_kernels import transformer_layers

    return transformer_layers


def make_stack_weights(
    embedding: Any,
    layers: Any,
    final_norm: nn.Module,
    max_length: int,
    pack_weight: WeightPacker = np.ascontiguousarray,
) -> Any:
    """Return the `StackWeights` of an embedding and its layers.

    Args:
        embedding: the embedding.
        layers: the layers, which differ in nothing but their weights.
        final_norm: the norm that the stack ends with.
        max_length: most positions.
        pack_weight: the form of each weight.
    """
    kernel, first = load_layer_types(), layers[0]
    table, residual = as_array(embedding.table.weight), first.around_attention
    has_ssru = has_ssrus(layers)
    heads = (first.cross_attention if has_ssru else first.attention).heads
    return kernel.StackWeights(
        table,
        position_table(embedding.positions, max_length, table.shape[1]),
        rotation_table(None if has_ssru else first.attention.positions, max_length, heads.key_dim),
        kernel.AttentionWeights(
            *(stack_ssrus(layers) if has_ssru else stack_attentions(layers, pack_weight)),
            stack_norms(layer.around_attention.norm for layer in layers),
        ),
        kernel.FeedForwardWeights(
            stack_linears((layer.feed_forward.inner for layer in layers), pack_weight),
            stack_linears((layer.feed_forward.outer for layer in layers), pack_weight),
            stack_norms(layer.around_feed_forward.norm for layer in layers),
        ),
        stack_norms([final_norm if isinstance(final_norm, LayerNorm) else residual.norm]),
        kernel.StackSettings(
            (heads.num_heads, heads.num_kv_heads, heads.key_dim, heads.value_dim),
            float(embedding.scale),
            residual.norm.eps,
            isinstance(residual, PreNorm),
            COMPILED_LOOP_ACTIVATIONS[first.feed_forward.activation],
            has_ssru,
        ),
    )


def stack_attentions(layers: Any, pack_weight: WeightPacker) -> tuple[Any, Any]:
    """Return the `LinearWeights` before and after the self-attention of each layer."""
    return (
        stack_linears((layer.attention.query_key_value for layer in layers), pack_weight),
        stack_linears((layer.attention.output for layer in layers), pack_weight),
    )


def stack_ssrus(layers: Any) -> tuple[Any, Any]:
    """Return the `LinearWeights` of the gates and candidates of each layer's SSRU, and empty ones: none stand after."""
    kernel, cells = load_layer_types(), [layer.attention.cells[0] for layer in layers]
    weights = torch.stack([cell.input.weight.detach() for cell in cells])
    biases = torch.stack([F.pad(cell.forget_bias.detach(), (0, cell.dim)) for cell in cells])
    empty = kernel.LinearWeights(np.empty((len(cells), 0, 0), np.float32), np.empty((len(cells), 0), np.float32))
    return kernel.LinearWeights(weights.numpy(), biases.numpy()), empty


def stack_linears(linears: Iterable[Any], pack_weight: WeightPacker = np.ascontiguousarray) -> Any:
    """Return the `LinearWeights` of a linear layer in each layer."""
    weights, biases = stack_weights_and_biases(linears)
    return load_layer_types().LinearWeights(np.stack([pack_weight(each) for each in weights]), biases)


def stack_norms(norms: Iterable[Any]) -> Any:
    """Return the `NormWeights` of a norm in each layer."""
    return load_layer_types().NormWeights(*stack_weights_and_biases(norms))


def num_weights(module: nn.Module) -> int:
    """Return the number of weights of a module."""
    return sum(each.numel() for each in module.parameters())


def as_array(tensor: Any) -> Any:
    """Return a tensor's numbers in order; nothing is copied if they lie so."""
    return tensor.detach().contiguous().numpy()


def stack_weights_and_biases(modules: Iterable[Any]) -> tuple[Any, Any]:
    """The weights (L, ..) and biases (L, ..) of some modules."""
    weights, biases = zip(*((module.weight.detach(), module.bias.detach()) for module in modules), strict=True)
    return torch.stack(weights).numpy(), torch.stack(biases).numpy()


def position_table(positions: nn.Module, max_length: int, dim: int) -> Any:
    """Return the table of positions that is added to the input (M, D)."""
    if isinstance(positions, NoPositionEmbedding):
        return np.zeros((max_length, dim), np.float32)
    table: Any = positions.table
    return as_array(table if isinstance(positions, SinusoidalPositions) else table.weight)


def rotation_table(positions: Any, max_length: int, key_dim: int) -> Any:
    """Return the cosines and sines that rotate queries and keys (M, K / 2, 2); (M, 0, 2) if they are not rotated."""
    if not isinstance(positions, Rotary):
        return np.empty((max_length, 0, 2), np.float32)
    return torch.view_as_real(positions.rotations(torch.empty(key_dim), torch.arange(max_length))).numpy()
