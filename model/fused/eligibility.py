"""The table of the parts that the compiled loops know, and whether a model is made of these alone.

Every part of a network is a module. A class that has no row in `LAYER_ELIGIBILITY` is unknown to each loop, as is a
subclass of one that has: the plain modules, which know every part, then compute it. The network in numpy is built from
a configuration and has its own list (`numpy_inference/weights.py`); docs/decoding/loops.md shows what all four know.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model.attention.explicit_attention import ExplicitAttention, softmax_weights
from tfm.model.attention.inner_attention import FusedAttention, VarlenAttention
from tfm.model.attention.multi_head import CrossAttention, SelfAttention
from tfm.model.attention.positions import LearnedPositions, NoPositionEmbedding, SinusoidalPositions
from tfm.model.attention.relative_positions import AttentionPositions, Rotary
from tfm.model.attention.scores import ScaledDotScore
from tfm.model.config_tables import RotaryConfig
from tfm.model.layers.dropout import Dropout
from tfm.model.layers.embedding import Embedding
from tfm.model.layers.feed_forward import FeedForward, gelu_tanh
from tfm.model.layers.linear import Linear
from tfm.model.layers.normalization import LayerNorm
from tfm.model.layers.residual import PostNorm, PreNorm
from tfm.model.recurrent.cells import Ssru
from tfm.model.transformer.layers import DecoderLayer, EncoderLayer
from tfm.model.transformer.token_mixing import RecurrentMixing

EligibilityCheck = Callable[[Any], bool]
EligibilityChecks = Mapping[type[nn.Module], EligibilityCheck]


def _is_always_eligible(part: Any) -> bool:
    return True


def _has_feed_forward(layer: Any) -> bool:
    return layer.feed_forward is not None


def _is_plain_attention(attention: Any) -> bool:
    """Whether its heads are projected once more, and queries and keys have no norm."""
    has_output = type(attention.output) is not nn.Identity
    return has_output and type(attention.query_norm) is type(attention.key_norm) is nn.Identity


LAYER_ELIGIBILITY: EligibilityChecks = {
    nn.ModuleList: _is_always_eligible,
    EncoderLayer: _has_feed_forward,
    DecoderLayer: _has_feed_forward,
    SelfAttention: lambda attention: attention.window is None and _is_plain_attention(attention),
    CrossAttention: _is_plain_attention,
    ExplicitAttention: lambda equation: equation.lookup is softmax_weights,
    FusedAttention: _is_always_eligible,
    VarlenAttention: _is_always_eligible,
    ScaledDotScore: _is_always_eligible,
    AttentionPositions: _is_always_eligible,
    Rotary: _is_always_eligible,
    FeedForward: lambda feed_forward: feed_forward.activation is F.relu,
    Linear: lambda linear: linear.bias is not None,
    PreNorm: _is_always_eligible,
    PostNorm: _is_always_eligible,
    LayerNorm: lambda norm: norm.weight is not None and norm.bias is not None,
    Dropout: _is_always_eligible,
    nn.Identity: _is_always_eligible,
}
"""The parts of layers that all loops know (`decoder_step.py` is one): class -> in which form."""
COMPILED_LOOP_ACTIVATIONS: dict[Callable[[Tensor], Tensor], int] = {F.relu: 0, F.gelu: 1, gelu_tanh: 2}
"""Activations that the loops of whole texts know, by their numbers in `cpu_kernels/transformer_layers.py`."""
COMPILED_LOOP_ELIGIBILITY: EligibilityChecks = {
    **LAYER_ELIGIBILITY,
    FeedForward: lambda feed_forward: feed_forward.activation in COMPILED_LOOP_ACTIVATIONS,
}
"""The parts of layers that the loops of whole texts know (`greedy_search.py`, `text_generation.py`)."""
EMBEDDING_ELIGIBILITY: EligibilityChecks = {
    Embedding: lambda embedding: type(embedding.widen) is type(embedding.norm) is nn.Identity,  # no projection
    nn.Embedding: _is_always_eligible,
    NoPositionEmbedding: _is_always_eligible,
    SinusoidalPositions: _is_always_eligible,
    LearnedPositions: _is_always_eligible,
    Dropout: _is_always_eligible,
    nn.Identity: _is_always_eligible,
}
"""The parts of embeddings that the loops of whole texts know; a step leaves embeddings to the model."""


def is_cpu_eval_fp32(module: nn.Module) -> bool:
    """Return whether a module is in eval mode, in fp32 on a CPU, and nothing waits to be called when a part of it
    is.
    """
    parts, tensors = list(module.modules()), chain(module.parameters(), module.buffers())
    return not any(part.training or part._forward_hooks or part._forward_pre_hooks for part in parts) and all(
        tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors
    )


def are_all_eligible(modules: Iterable[nn.Module], checks: EligibilityChecks) -> bool:
    """Return whether modules, and all modules within them, are of these parts in the form that these ask for."""
    return all(_is_eligible(part, checks) for module in modules for part in module.modules())


def _is_eligible(part: nn.Module, checks: EligibilityChecks) -> bool:
    return type(part) in checks and checks[type(part)](part)


def is_plain_stack(layers: nn.ModuleList, final_norm: nn.Module, checks: EligibilityChecks = LAYER_ELIGIBILITY) -> bool:
    """Return whether a stack is of known parts, and its layers differ in nothing but their weights.

    Args:
        layers: the layers of the stack.
        final_norm: the norm that the stack ends with.
        checks: the parts that are known.
    """
    if not layers or not are_all_eligible([final_norm], checks):
        return False
    if not all(_is_eligible(part, checks) for part in _modules_outside_ssrus(layers)):
        return False
    residuals: list[Any] = [part for part in layers.modules() if isinstance(part, PreNorm | PostNorm)]
    attentions: list[Any] = [part for part in layers.modules() if isinstance(part, SelfAttention | CrossAttention)]
    is_pre_norm = type(residuals[0]) is PreNorm
    norms = [residual.norm for residual in residuals] + ([final_norm] if is_pre_norm else [])
    return (
        len({type(layer) for layer in layers}) == len({type(residual) for residual in residuals}) == 1
        and all(type(norm) is LayerNorm for norm in norms)
        and len({norm.eps for norm in norms}) == 1
        and (is_pre_norm or type(final_norm) is nn.Identity)
        and len({attention.heads for attention in attentions}) == 1
        and len({rotary_config(layer) for layer in layers}) == 1
    )


def has_ssrus(layers: nn.ModuleList) -> bool:
    """Return whether every decoder layer has an SSRU, in one direction, instead of self-attention."""
    mixings: list[Any] = [layer.attention for layer in layers if type(layer) is DecoderLayer]
    parts = [RecurrentMixing, nn.ModuleList, Ssru, Linear]
    return len(mixings) == len(layers) and all([type(part) for part in each.modules()] == parts for each in mixings)


def _modules_outside_ssrus(layers: nn.ModuleList) -> list[nn.Module]:
    """Return the modules of a stack outside its SSRUs, which the loops compute themselves."""
    mixings: list[Any] = [layer.attention for layer in layers] if has_ssrus(layers) else []
    ssru_parts = {part for mixing in mixings for part in mixing.modules()}
    return [part for part in layers.modules() if part not in ssru_parts]


def rotary_config(layer: Any) -> RotaryConfig | None:
    """Return the rotary settings of a layer's self-attention; None if queries and keys are not rotated."""
    positions = getattr(layer.attention, "positions", None)
    return positions.rotary if isinstance(positions, Rotary) else None
