"""Multi-head attention over rows: self-attention and cross-attention, in training and step by step.

Attention(Q, K, V) = softmax(score(Q, K) + bias) V   (Vaswani et al. 2017, eq. 1; `mix.py`)
Legend: N rows · B sentences · T queries · S keys · D width · H heads · K width of a head.
"""

import torch
from torch import Tensor, nn

from model.cache import KeysValues, Slots
from model.layout import AnyLayout, Layout
from model.linear import Linear
from model.masks import Mask
from model.mix import choose_mix
from model.noise import Noise
from model.relative import AttentionPositions

NOWHERE = torch.empty(0, dtype=torch.long)  # across sequences there are no positions to relate


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
        self.mix = choose_mix(score, positions, dropout, noise, compute_dtype)

    def forward(self, rows: Tensor, layout: AnyLayout, mask: Mask) -> Tensor:
        """(N, D) -> (N, D), mixing positions of each sentence as the mask allows."""
        query, key, value = split_heads(layout.pad(self.query_key_value(rows)), 3, self.heads)
        positions = layout.columns
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
        self.mix = choose_mix(score, AttentionPositions(), dropout, noise, compute_dtype)

    def remember(self, memory: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, S, K) each, of memory (N, D): computed once a sentence."""
        key, value = split_heads(layout.pad(self.key_value(memory)), 2, self.heads)
        return key.contiguous(), value.contiguous()

    def forward(self, rows: Tensor, layout: AnyLayout, memory: Tensor, memory_layout: AnyLayout, mask: Mask) -> Tensor:
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
