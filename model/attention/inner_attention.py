"""Inner attention by the fastest kernel: torch's, of sentences end to end, in blocks within a window, or written out.

Legend: B sentences · H heads · G heads of keys and values, each shared by H / G heads · T queries · S keys ·
K width of a head's queries and keys · V width of its values.
"""

import inspect
from functools import cache
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tfm.model.attention.explicit_attention import (
    AttentionWeightFunction,
    ExplicitAttention,
    ShortSequenceAttention,
    add_optional_biases,
    repeat_kv,
    softmax_weights,
)
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.attention.scores import ScaledDotScore
from tfm.model.cpu_kernels import dispatch
from tfm.model.layers.dropout import Dropout, DropoutRng
from tfm.model.layers.linear import LOW_PRECISION_DTYPES
from tfm.model.layout import FlatLayout
from tfm.model.masks import Mask

MAX_QUERIES_FOR_DECODE_KERNEL = 16
MAX_KEYS_FOR_SHORT_ATTENTION = 64
MIN_BLOCK_SIZE = 16
MIN_BLOCKS_FOR_BLOCKED_ATTENTION = 4
FULL_WINDOW, CAUSAL_WINDOW = (-1, -1), (-1, 0)
GPU_BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Without cuDNN's, which torch prefers on Hopper: it plans each new shape for 30 ms, and nearly every batch has one."""


class VarlenKernel(Protocol):
    """(query NHK, key MHK, value MHK, their layouts, how far a query sees back and ahead, -1 for all) -> NHK.

    None if the kernel has no such window.
    """

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, queries: FlatLayout, keys: FlatLayout, window: tuple[int, int]
    ) -> Tensor | None: ...


class FusedAttention(nn.Module):
    """torch's scaled dot-product kernel: the weights never leave the cache.

    On a CPU that kernel is made for long sentences. For short ones, and for the one query a hypothesis of a decoding
    step, the equation written out is faster. A GPU's kernel has operands in the precision of the products, unless
    positions add to the logits.

    Args:
        equation: what is computed.
        dtype: precision of matrix products in training.
    """

    def __init__(self, equation: ExplicitAttention, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.equation, self.dtype = equation, dtype

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor:
        """Return the output of the equation, by the fastest kernel; arguments as in `AttentionFunction`."""
        on_cpu = query.device.type == "cpu"
        is_decoding = query.shape[2] <= MAX_QUERIES_FOR_DECODE_KERNEL and on_cpu and not torch.is_grad_enabled()
        if is_decoding and not self.equation.positions.has_bias:
            output = dispatch.attend(query, key, value, mask, query.shape[3] ** -0.5)
            if output is not None:
                return output
        if key.shape[1] < query.shape[1] and mask.needs_explicit_attention and not self.equation.positions.has_bias:
            return self._attend_grouped_queries(query, key, value, mask, query_positions, key_positions)
        if is_decoding:
            to_explicit_attention: Tensor = self.equation(query, key, value, mask, query_positions, key_positions)
            return to_explicit_attention
        key, value, full_dtype = repeat_kv(key, query), repeat_kv(value, query), query.dtype
        position_bias = self.equation.positions.relative_bias(query, key, query_positions, key_positions)
        is_bias_trained = position_bias is not None and position_bias.requires_grad
        is_short = on_cpu and key.shape[2] <= MAX_KEYS_FOR_SHORT_ATTENTION and not is_bias_trained
        only_causal = (
            mask.causal and not mask.strict and mask.allowed is None and mask.flat is None and mask.window is None
        )
        is_causal = position_bias is None and only_causal and not is_short
        bias = None
        if not is_causal:
            bias = add_optional_biases(position_bias, mask.bias(query.shape[2], key.shape[2], query))
        if is_short:
            return ShortSequenceAttention.apply(query, key, value, bias)  # type: ignore[no-untyped-call,no-any-return]
        if on_cpu:
            return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=is_causal)
        is_low = self.training and position_bias is None and self.dtype in LOW_PRECISION_DTYPES
        query, key, value = (heads.to(self.dtype if is_low else heads.dtype) for heads in (query, key, value))
        with sdpa_kernel(GPU_BACKENDS):
            mixed = F.scaled_dot_product_attention(
                query, key, value, attn_mask=None if bias is None else bias.to(query.dtype), is_causal=is_causal
            )
        return mixed.to(full_dtype)

    def _attend_grouped_queries(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor:
        """The queries of heads that share keys are further queries of one head: no key is multiplied out."""
        batch, heads, length, width = query.shape
        heads_per_group, allowed = heads // key.shape[1], mask.allowed
        if allowed is not None and allowed.shape[2] > 1:
            mask = Mask(allowed=allowed.repeat(1, 1, heads_per_group, 1))
        mixed = self(
            query.reshape(batch, -1, heads_per_group * length, width), key, value, mask, query_positions, key_positions
        )
        return mixed.reshape(batch, heads, length, -1)  # type: ignore[no-any-return]


class VarlenAttention(nn.Module):
    """torch's flash attention for packed sentences, if the device has it (NVIDIA's GPUs).

    The kernel multiplies in half precision only. `fallback` computes every call that it does not support.

    Args:
        fallback: the attention for all other calls.
        dtype: half precision type of queries, keys and values within the kernel.
        kernel: the kernel; None for torch's own.
    """

    def __init__(self, fallback: FusedAttention, dtype: torch.dtype, kernel: VarlenKernel | None = None) -> None:
        super().__init__()
        self.fallback, self.dtype, self.kernel = fallback, dtype, kernel

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor:
        """Return the output of the equation, by the kernel where it applies; arguments as in `AttentionFunction`."""
        kernel = self.kernel or (load_varlen_kernel() if query.is_cuda else None)
        same_head_dim = query.shape[3] == value.shape[3] and not self.fallback.equation.positions.has_bias
        mixed = None
        if mask.flat is not None and not mask.strict and kernel is not None and same_head_dim:
            heads = query, repeat_kv(key, query), repeat_kv(value, query)
            queries, keys, values = (each.squeeze(0).transpose(0, 1).to(self.dtype) for each in heads)
            reach = -1 if mask.window is None else mask.window
            mixed = kernel(queries, keys, values, *mask.flat, (reach, 0 if mask.causal else reach))
        if mixed is None:
            output: Tensor = self.fallback(query, key, value, mask, query_positions, key_positions)
            return output
        return mixed.to(query.dtype).transpose(0, 1).unsqueeze(0)


class BlockedAttention(nn.Module):
    """Attention of long sentences within a window r, block by block: the queries of a block of at least r tokens see
    the keys of the previous block, of their own and of the next.

    Time and memory grow with the length S, not with S^2. `fallback` computes shorter sentences at once.
    """

    def __init__(self, fallback: "InnerAttention") -> None:
        super().__init__()
        self.fallback = fallback

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor:
        """Return the output of the equation, block by block in long sentences; arguments as in `AttentionFunction`."""
        size, length = max(mask.window or 0, MIN_BLOCK_SIZE), query.shape[2]
        if mask.window is None or mask.flat is not None or length <= MIN_BLOCKS_FOR_BLOCKED_ATTENTION * size:
            output: Tensor = self.fallback(query, key, value, mask, query_positions, key_positions)
            return output
        parts = 2 if mask.causal else 3
        positions = torch.arange(parts * size, device=query.device)  # in a block: only distances count
        mixed: Tensor = self.fallback(
            split_overlapping_blocks(query, size, 1),
            split_overlapping_blocks(key, size, parts),
            split_overlapping_blocks(value, size, parts),
            mask.blocked_window_mask(size, parts, len(query), length, query.device),
            positions[size : 2 * size],
            positions,
        )
        by_block = mixed.view(len(query), -1, *mixed.shape[1:])
        return by_block.transpose(1, 2).flatten(2, 3)[:, :, :length]


def split_overlapping_blocks(heads: Tensor, size: int, blocks_per_window: int) -> Tensor:
    """Return heads (B, H, S, K) in C blocks of `size`, each with its neighbors, as (B C, H, parts * size, K).

    Args:
        heads: (B, H, S, K).
        size: rows of a block.
        blocks_per_window: blocks in each result. The second is the block itself; others are those before and
            after it. Beyond the ends are zeros. 1: the block alone.
    """
    length, (before, after) = heads.shape[2], (0, 0) if blocks_per_window == 1 else (1, blocks_per_window - 2)
    num_blocks = -(-length // size)
    padded = F.pad(heads, (0, 0, before * size, (num_blocks + after) * size - length))
    blocks = padded.view(*padded.shape[:2], -1, size, padded.shape[3]).transpose(1, 2)  # (B, C, H, size, K)
    return torch.cat([blocks[:, part : part + num_blocks] for part in range(blocks_per_window)], dim=3).flatten(0, 1)


@cache
def load_varlen_kernel() -> VarlenKernel | None:
    """(query, key, value (N, H, K), their layouts, causal) -> (N, H, K); None if this torch has none."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    names = inspect.signature(varlen_attn).parameters
    has_windows = "window_size" in names

    def varlen_attention(
        query: Tensor, key: Tensor, value: Tensor, queries: FlatLayout, keys: FlatLayout, window: tuple[int, int]
    ) -> Tensor | None:
        if not has_windows and window not in (FULL_WINDOW, CAUSAL_WINDOW):
            return None
        kernel_kwargs: dict[str, Any] = (
            {"window_size": window} if has_windows else {"is_causal": window == CAUSAL_WINDOW}
        )
        mixed = varlen_attn(
            query, key, value, queries.offsets, keys.offsets, queries.longest, keys.longest, **kernel_kwargs
        )
        assert isinstance(mixed, Tensor)
        return mixed

    return varlen_attention


InnerAttention = ExplicitAttention | FusedAttention | VarlenAttention | BlockedAttention


def choose_inner_attention(
    score: nn.Module,
    positions: AttentionPositions,
    dropout: float,
    dropout_rng: DropoutRng,
    dtype: torch.dtype = torch.float32,
    lookup: AttentionWeightFunction = softmax_weights,
) -> InnerAttention:
    """Return torch's kernels if they compute the same, else the explicit equation.

    Args:
        score: (query, key) -> logits (B, H, T, S).
        positions: the hooks of the position scheme.
        dropout: probability of dropout on the attention weights.
        dropout_rng: source of dropout masks.
        dtype: precision of matrix products in training.
        lookup: logits -> attention weights.
    """
    equation = ExplicitAttention(score, positions, Dropout(dropout, dropout_rng), lookup)
    fusible = (
        isinstance(score, ScaledDotScore) and not positions.needs_weights and dropout == 0 and lookup is softmax_weights
    )
    if not fusible:
        return equation
    fused = FusedAttention(equation, dtype)
    return VarlenAttention(fused, dtype) if dtype in LOW_PRECISION_DTYPES else fused
