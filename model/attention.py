"""Multi-head attention over rows: self-attention and cross-attention, in training and step by step.

Attention(Q, K, V) = softmax(score(Q, K) + bias) V   (Vaswani et al. 2017, eq. 1)
Legend: N rows · B sentences · T queries · S keys · D width · H heads · K width of a head.
"""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.cache import KeysValues, Slots
from model.layout import Layout
from model.linear import Linear
from model.masks import Mask
from model.noise import Dropout, Noise
from model.positions import AttentionPositions
from model.scores import ScaledDot

FEW_QUERIES = 16
FEW_LOGITS = 4096
VECTOR = 16
NOWHERE = torch.empty(0, dtype=torch.long)  # across sequences there are no positions to relate


class Mix(Protocol):
    """(query BHTK, key BHSK, value BHSK, mask, query positions T, key positions S) -> BHTK."""

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor: ...


class ExplicitMix(nn.Module):
    """The equation written out: every score, every position hook, dropout on the weights."""

    def __init__(self, score: nn.Module, positions: AttentionPositions, dropout: Dropout) -> None:
        super().__init__()
        self.score, self.positions, self.dropout = score, positions, dropout

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor:
        logits = self.score(query, key)
        of_positions = self.positions.bias(query, query_positions, key_positions)
        if (bias := total(of_positions, mask.bias(query.shape[2], key.shape[2], query))) is not None:
            logits = logits + bias
        weights = self.dropout(softmax(logits))
        mixed: Tensor = weights @ value
        if (added := self.positions.values(weights, query_positions, key_positions)) is not None:
            mixed = mixed + added
        return mixed


def total(of_positions: Tensor | None, of_mask: Tensor | None) -> Tensor | None:
    """All that is added to the logits; None for nothing."""
    if of_positions is None or of_mask is None:
        return of_mask if of_positions is None else of_positions
    return of_positions + of_mask


def softmax(logits: Tensor) -> Tensor:
    """exp(x) / sum of exp(x), over the last dimension.

    On a CPU torch's is ten times as slow for fewer than 16 keys: they are topped up with -inf, which adds nothing.
    """
    num_keys = logits.shape[-1]
    if num_keys >= VECTOR or logits.numel() < FEW_LOGITS or logits.device.type != "cpu":
        return logits.softmax(-1)
    return F.pad(logits, (0, VECTOR - num_keys), value=float("-inf")).softmax(-1)[..., :num_keys]


class FusedMix(nn.Module):
    """torch's scaled dot-product kernel: the weights never leave the cache.

    On a CPU that kernel is made for many queries. A decoding step has one a hypothesis, for which the equation written
    out is faster.
    """

    def __init__(self, equation: ExplicitMix) -> None:
        super().__init__()
        self.equation = equation

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor:
        if query.shape[2] <= FEW_QUERIES and query.device.type == "cpu" and not torch.is_grad_enabled():
            written_out: Tensor = self.equation(query, key, value, mask, query_positions, key_positions)
            return written_out
        of_positions = self.equation.positions.bias(query, query_positions, key_positions)
        if of_positions is None and mask.causal and mask.allowed is None:
            return F.scaled_dot_product_attention(query, key, value, is_causal=True)
        bias = total(of_positions, mask.bias(query.shape[2], key.shape[2], query))
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias)


def choose_mix(score: nn.Module, positions: AttentionPositions, dropout: float, noise: Noise) -> Mix:
    """The fused kernel where it computes the same, else the explicit equation."""
    equation = ExplicitMix(score, positions, Dropout(dropout, noise))
    fusible = isinstance(score, ScaledDot) and not positions.needs_weights and dropout == 0
    return FusedMix(equation) if fusible else equation


class SelfAttention(nn.Module):
    """Queries, keys and values from the same rows."""

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        score: nn.Module,
        positions: AttentionPositions,
        dropout: float,
        noise: Noise,
        compute_dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = Linear(dim, 3 * dim, compute_dtype=compute_dtype, num_parts=3)
        self.output = Linear(dim, dim, compute_dtype=compute_dtype)
        self.positions = positions
        self.mix = choose_mix(score, positions, dropout, noise)

    def forward(self, rows: Tensor, layout: Layout, mask: Mask) -> Tensor:
        """(N, D) -> (N, D), mixing positions of each sentence as the mask allows."""
        query, key, value = split_heads(layout.pad(self.query_key_value(rows)), 3, self.heads)
        positions = torch.arange(layout.width, device=rows.device)
        query, key = self.positions.rotate(query, positions), self.positions.rotate(key, positions)
        mixed = self.mix(query, key, value, mask, positions, positions)
        output: Tensor = self.output(layout.unpad(join_heads(mixed)))
        return output

    def step(self, rows: Tensor, cache: KeysValues, slots: Slots) -> Tensor:
        """One new row a hypothesis (R, D) -> (R, D), attending to the cached rows it descends from."""
        heads = self.query_key_value(rows).view(*slots.own.shape, 3 * rows.shape[1])
        query, key, value = split_heads(heads, 3, self.heads)
        own = slots.own_positions
        query, key = self.positions.rotate(query, own), self.positions.rotate(key, own)
        keys, values = cache.write(key, value, slots)
        mixed = self.mix(query, keys, values, slots.mask, own, slots.positions)
        output: Tensor = self.output(join_heads(mixed).flatten(0, 1))
        return output


class CrossAttention(nn.Module):
    """Queries from the target, keys and values from the memory (the encoder's output)."""

    def __init__(
        self,
        dim: int,
        memory_dim: int,
        heads: int,
        *,
        score: nn.Module,
        dropout: float,
        noise: Noise,
        compute_dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.query = Linear(dim, dim, compute_dtype=compute_dtype)
        self.key_value = Linear(memory_dim, 2 * dim, compute_dtype=compute_dtype, num_parts=2)
        self.output = Linear(dim, dim, compute_dtype=compute_dtype)
        self.mix = choose_mix(score, AttentionPositions(), dropout, noise)

    def remember(self, memory: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, S, K) each, of memory (N, D): computed once a sentence."""
        key, value = split_heads(layout.pad(self.key_value(memory)), 2, self.heads)
        return key.contiguous(), value.contiguous()

    def forward(self, rows: Tensor, layout: Layout, memory: Tensor, memory_layout: Layout, mask: Mask) -> Tensor:
        """(N, D) -> (N, D)."""
        (query,) = split_heads(layout.pad(self.query(rows)), 1, self.heads)
        key, value = split_heads(memory_layout.pad(self.key_value(memory)), 2, self.heads)
        mixed = self.mix(query, key, value, mask, NOWHERE, NOWHERE)
        output: Tensor = self.output(layout.unpad(join_heads(mixed)))
        return output

    def step(self, rows: Tensor, remembered: tuple[Tensor, Tensor], mask: Mask) -> Tensor:
        """(R, D) -> (R, D): the hypotheses of a sentence are further queries over its one memory."""
        key, value = remembered
        (query,) = split_heads(self.query(rows).view(len(key), -1, rows.shape[1]), 1, self.heads)
        mixed = self.mix(query, key, value, mask, NOWHERE, NOWHERE)
        output: Tensor = self.output(join_heads(mixed).flatten(0, 1))
        return output


def split_heads(x: Tensor, num_parts: int, heads: int) -> tuple[Tensor, ...]:
    """(B, T, P*D) -> P tensors (B, H, T, K): views, nothing is copied."""
    batch, length, width = x.shape
    return x.view(batch, length, num_parts, heads, width // num_parts // heads).permute(2, 0, 3, 1, 4).unbind(0)


def join_heads(x: Tensor) -> Tensor:
    """(B, H, T, K) -> (B, T, D)."""
    return x.transpose(1, 2).flatten(2)
