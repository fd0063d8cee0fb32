"""Check of the stacks that the compiled loops support: those made of the parts of most Transformers."""

from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tfm.model.attention.explicit_attention import ExplicitAttention
from tfm.model.attention.inner_attention import FusedAttention, VarlenAttention
from tfm.model.attention.multi_head import CrossAttention, SelfAttention
from tfm.model.attention.relative_positions import AttentionPositions, Rotary
from tfm.model.attention.scores import ScaledDot
from tfm.model.config_tables import RotaryConfig
from tfm.model.layers.dropout import Dropout
from tfm.model.layers.feed_forward import FeedForward
from tfm.model.layers.linear import Linear
from tfm.model.layers.normalization import LayerNorm
from tfm.model.layers.residual import PostNorm, PreNorm
from tfm.model.transformer.layers import DecoderLayer, EncoderLayer

Layer = EncoderLayer | DecoderLayer
SUPPORTED_POSITIONS = (AttentionPositions, Rotary)
"""The supported position hooks of attention: none, or the turning of queries and keys."""


def is_cpu_eval_fp32(module: nn.Module) -> bool:
    """Return whether a module is in eval mode, in fp32 on a CPU, and nothing waits to be called when a part of it
    is.
    """
    parts, tensors = list(module.modules()), chain(module.parameters(), module.buffers())
    return (
        not any(each.training or each._forward_hooks or each._forward_pre_hooks for each in parts)
        and all(type(each) is Dropout for each in parts if isinstance(each, Dropout))
        and all(each.dtype == torch.float32 and each.device.type == "cpu" for each in tensors)
    )


def is_plain_stack(layers: nn.ModuleList, final_norm: nn.Module, kind: type[Layer]) -> bool:
    """Return whether all layers are of one kind, of plain parts, and differ in nothing but their weights.

    Args:
        layers: the layers of the stack.
        final_norm: the norm that the stack ends with.
        kind: the class that every layer must have.
    """
    each: list[Any] = list(layers)
    if not each or not all(type(layer) is kind and _is_plain_layer(layer) for layer in each):
        return False
    residuals = [
        residual for layer in each for residual in layer.children() if isinstance(residual, PreNorm | PostNorm)
    ]
    is_pre_norm = type(residuals[0]) is PreNorm
    norms = [residual.norm for residual in residuals] + ([final_norm] if is_pre_norm else [])
    return (
        len({type(residual) for residual in residuals}) == 1
        and all(type(norm) is LayerNorm and norm.weight is not None and norm.bias is not None for norm in norms)
        and len({norm.eps for norm in norms}) == 1
        and (is_pre_norm or type(final_norm) is nn.Identity)
        and len({layer.attention.heads for layer in each}) == 1
        and len({rotary_config(layer) for layer in each}) == 1
    )


def rotary_config(layer: Any) -> RotaryConfig | None:
    """Return the rotary settings of a layer's self-attention; None where queries and keys are not turned."""
    positions = layer.attention.positions
    return positions.rotary if isinstance(positions, Rotary) else None


def _is_plain_layer(layer: Any) -> bool:
    attention, cross, inner = layer.attention, getattr(layer, "cross_attention", None), layer.feed_forward
    return (
        type(attention) is SelfAttention
        and attention.window is None
        and type(attention.positions) in SUPPORTED_POSITIONS
        and _is_plain_softmax(attention)
        and (
            cross is None
            or (type(cross) is CrossAttention and cross.heads == attention.heads and _is_plain_softmax(cross))
        )
        and type(inner) is FeedForward
        and inner.activation is F.relu
        and all(each.bias is not None for each in layer.modules() if isinstance(each, Linear))
    )


def _is_plain_softmax(attention: Any) -> bool:
    """Return whether it is softmax(q . k / sqrt(K)) of queries and keys as they are."""
    mix = attention.mix
    mix = mix.otherwise if type(mix) is VarlenAttention else mix
    equation = mix.equation if type(mix) is FusedAttention else mix
    return (
        type(equation) is ExplicitAttention
        and type(equation.score) is ScaledDot
        and type(equation.positions) in SUPPORTED_POSITIONS
        and type(equation.dropout) is Dropout
        and type(attention.query_norm) is type(attention.key_norm) is nn.Identity
    )
