"""Multi-head attention over rows: self-attention and cross-attention, in training and step by step.

Attention(Q, K, V) = softmax(score(Q, K) + bias) V   (Vaswani et al. 2017, eq. 1; `explicit_attention.py`)
Legend: N rows · B sentences · T queries · S keys · D width · H heads · G heads of keys and values · K width of a head's
queries and keys · V width of its values.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tfm.model.attention.explicit_attention import AttentionFunction
from tfm.model.attention.kv_cache import CacheSlots, LayerKVCache
from tfm.model.attention.projections import ProjectionFactory
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.layers.linear import Linear
from tfm.model.layout import AnyLayout, Layout
from tfm.model.masks import Mask

NO_POSITIONS = torch.empty(0, dtype=torch.long)  # across sequences there are no positions to relate


@dataclass(frozen=True)
class HeadShapes:
    """The heads of an attention: their number (H), the number of those of keys and values (G), and the widths K and V.

    H / G heads next to each other share keys and values: G = H is multi-head attention, G = 1 multi-query attention
    (Shazeer 2019), between them lies grouped-query attention (Ainslie et al. 2023).
    """

    num_heads: int
    num_kv_heads: int
    key_dim: int
    value_dim: int

    @property
    def query(self) -> tuple[int, int]:
        return self.num_heads, self.key_dim

    @property
    def key(self) -> tuple[int, int]:
        return self.num_kv_heads, self.key_dim

    @property
    def value(self) -> tuple[int, int]:
        return self.num_kv_heads, self.value_dim


class SelfAttention(nn.Module):
    """Self-attention: queries, keys and values from the same rows.

    Args:
        dim: D.
        heads: numbers and widths of the heads.
        mix: inner attention.
        positions: the hooks of the position scheme.
        norm: (K) -> norm of each head's queries, and of its keys.
        project: makes the projection of queries, keys and values.
        has_output: whether the heads are projected once more, and not only concatenated.
        window: distance up to which a query sees; None for all.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(
        self,
        dim: int,
        heads: HeadShapes,
        *,
        mix: AttentionFunction,
        positions: AttentionPositions,
        norm: Callable[[int], nn.Module],
        project: ProjectionFactory,
        has_output: bool,
        window: int | None,
        compute_dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.query_key_value = project(dim, (heads.query, heads.key, heads.value), compute_dtype)
        self.query_norm, self.key_norm = norm(heads.key_dim), norm(heads.key_dim)
        self.output = make_output_projection(heads, dim, compute_dtype) if has_output else nn.Identity()
        self.positions = positions
        self.mix = mix

    def forward(self, rows: Tensor, layout: AnyLayout, mask: Mask) -> Tensor:
        """Mix the positions of each sentence as the mask allows.

        Args:
            rows: (N, D).
            layout: the sentences of these rows.
            mask: the keys that each query may attend to.

        Returns:
            Rows (N, D).
        """
        return self.prefill(rows, layout, mask)[0]

    def prefill(self, rows: Tensor, layout: AnyLayout, mask: Mask) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the output of `forward`, and the keys and values to which a `step` after these rows attends.

        Args:
            rows: (N, D).
            layout: the sentences of these rows.
            mask: the keys that each query may attend to.

        Returns:
            Rows (N, D); keys (B, G, S, K) and values (B, G, S, V).
        """
        query, key, value = self._query_key_value(layout.pad(self.query_key_value(rows)), layout.columns)
        mask = mask if self.window is None else mask.restrict_to_window(self.window)
        attn_output = self.mix(query, key, value, mask, layout.columns, layout.columns)
        output: Tensor = self.output(layout.unpad(merge_heads(attn_output)))
        return output, (key, value)

    def step(self, rows: Tensor, cache: LayerKVCache, slots: CacheSlots) -> Tensor:
        """Attend from one new row a hypothesis to the cached rows from which it descends.

        Args:
            rows: (R, D).
            cache: keys and values so far; the new ones are written into it.
            slots: the slots of the new rows, and those from which each hypothesis descends.

        Returns:
            Rows (R, D).
        """
        projected = self.query_key_value(rows).view(*slots.new_slots.shape, -1)
        query, key, value = self._query_key_value(projected, slots.new_positions)
        keys, values = cache.write(key, value, slots)
        mask = slots.mask if self.window is None else slots.window_mask(self.window)
        attn_output = self.mix(query, keys, values, mask, slots.new_positions, slots.positions)
        output: Tensor = self.output(merge_heads(attn_output).flatten(0, 1))
        return output

    def _query_key_value(self, projected: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries (B, H, T, K), keys (B, G, T, K) and values (B, G, T, V) of rows at these positions."""
        query, key, value = split_projections(projected, self.heads.query, self.heads.key, self.heads.value)
        query, key = self.query_norm(query), self.key_norm(key)
        query, key = self.positions.rotate(query, positions), self.positions.rotate(key, positions)
        return query, key, self.positions.rotate_values(value, positions)


class CrossAttention(nn.Module):
    """Cross-attention: queries from the target, keys and values from the memory (the encoder's output).

    Args:
        dim: D of the target.
        memory_dim: width of the memory.
        heads: numbers and widths of the heads.
        mix: inner attention.
        norm: (K) -> norm of each head's queries, and of its keys.
        project: makes the projection of queries, keys and values.
        has_output: whether the heads are projected once more, and not only concatenated.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(
        self,
        dim: int,
        memory_dim: int,
        heads: HeadShapes,
        *,
        mix: AttentionFunction,
        norm: Callable[[int], nn.Module],
        project: ProjectionFactory,
        has_output: bool,
        compute_dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.query = project(dim, (heads.query,), compute_dtype)
        self.key_value = project(memory_dim, (heads.key, heads.value), compute_dtype)
        self.query_norm, self.key_norm = norm(heads.key_dim), norm(heads.key_dim)
        self.output = make_output_projection(heads, dim, compute_dtype) if has_output else nn.Identity()
        self.mix = mix

    def project_memory(self, memory: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Return the keys and values (B, G, S, ..) of memory (N, D): computed once a sentence."""
        key, value = self._key_value(memory, layout)
        return key.contiguous(), value.contiguous()

    def forward(self, rows: Tensor, layout: AnyLayout, memory: Tensor, memory_layout: AnyLayout, mask: Mask) -> Tensor:
        """Attend from each target row to the memory of its sentence.

        Args:
            rows: target rows (N, D).
            layout: the sentences of the target rows.
            memory: the encoder's output, a row for each source row.
            memory_layout: the sentences of the memory.
            mask: the source rows that each target row may attend to.

        Returns:
            Rows (N, D).
        """
        query = self._query(layout.pad(self.query(rows)))
        key, value = self._key_value(memory, memory_layout)
        attn_output = self.mix(query, key, value, mask, NO_POSITIONS, NO_POSITIONS)
        output: Tensor = self.output(layout.unpad(merge_heads(attn_output)))
        return output

    def step(self, rows: Tensor, memory_keys_values: tuple[Tensor, Tensor], mask: Mask) -> Tensor:
        """Attend from one new row a hypothesis to the memory; the hypotheses of a sentence are further queries over
        its one memory.

        Args:
            rows: (R, D).
            memory_keys_values: keys (B, G, S, K) and values (B, G, S, V) of the memory.
            mask: the source rows that may be attended to.

        Returns:
            Rows (R, D).
        """
        key, value = memory_keys_values
        projected = self.query(rows)
        query = self._query(projected.view(len(key), -1, projected.shape[1]))
        attn_output = self.mix(query, key, value, mask, NO_POSITIONS, NO_POSITIONS)
        output: Tensor = self.output(merge_heads(attn_output).flatten(0, 1))
        return output

    def _query(self, projected: Tensor) -> Tensor:
        (query,) = split_projections(projected, self.heads.query)
        return self.query_norm(query)  # type: ignore[no-any-return]

    def _key_value(self, memory: Tensor, layout: AnyLayout) -> tuple[Tensor, Tensor]:
        key, value = split_projections(layout.pad(self.key_value(memory)), self.heads.key, self.heads.value)
        return self.key_norm(key), value


def make_output_projection(heads: HeadShapes, dim: int, compute_dtype: torch.dtype) -> Linear:
    """Return the projection of all heads' values, H V -> D.

    Args:
        heads: numbers and widths of the heads.
        dim: D.
        compute_dtype: precision of the operands of matrix products in training.
    """
    return Linear(heads.num_heads * heads.value_dim, dim, compute_dtype=compute_dtype)


def split_projections(x: Tensor, *heads: tuple[int, int]) -> tuple[Tensor, ...]:
    """Return views of (B, T, the sum of H K), for each of the (H, K) a tensor (B, H, T, K); nothing is copied."""
    if len(set(heads)) == 1:
        return split_heads(x, len(heads), heads[0][0])
    parts = torch.split(x, [number * width for number, width in heads], dim=2)
    return tuple(part.view(*x.shape[:2], *each).transpose(1, 2) for part, each in zip(parts, heads, strict=True))


def split_heads(x: Tensor, num_parts: int, heads: int) -> tuple[Tensor, ...]:
    """Return views of x (B, T, P*D) as P tensors (B, H, T, K); nothing is copied.

    Args:
        x: (B, T, P*D).
        num_parts: P.
        heads: H.
    """
    batch, length, width = x.shape
    return x.view(batch, length, num_parts, heads, width // num_parts // heads).permute(2, 0, 3, 1, 4).unbind(0)


def merge_heads(x: Tensor) -> Tensor:
    """Concatenate the heads of (B, H, T, K): (B, T, H K)."""
    return x.transpose(1, 2).flatten(2)
