"""Position schemes: the layers of the input that add positions, and the position hooks of attention.

A scheme is one row of POSITIONS. Relative schemes use the hooks of `AttentionPositions`
(`relative_positions.py`): rotary positions rotate queries and keys, ALiBi biases the logits, Shaw et al. also add to
the values.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tfm.model.attention.relative_positions import Alibi, AttentionPositions, Rotary, Shaw, TransformerXLPositions
from tfm.model.config_tables import RotaryConfig


def sinusoids(dim: int, max_length: int, first_pair: int = 0) -> Tensor:
    """Return the table of sines and cosines (max_length, D), float64   (Vaswani et al. 2017, sec. 3.5).

        PE(pos, 2i) = sin(pos / 10000^(2(i + first_pair)/D)), PE(pos, 2i+1) = cos(the same), i from 0

    Args:
        dim: D.
        max_length: number of positions.
        first_pair: 0, as in the paper; 1 for frequencies that begin below 1 and end at 1/10000, if D is even.
    """
    table = torch.empty(max_length, dim, dtype=torch.float64)
    if table.is_meta:  # only its shape is asked for; to compute there would load a second of modules
        return table
    angle = torch.arange(max_length, dtype=torch.float64)[:, None] * torch.exp(
        torch.arange(2 * first_pair, dim + 2 * first_pair, 2, dtype=torch.float64) * (-math.log(10_000.0) / dim)
    )
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : dim // 2]
    return table


def fairseq_sinusoids(dim: int, max_length: int) -> Tensor:
    """Return the table of sines and cosines as fairseq has it, for M2M100: frequencies that end at 1/10000, positions
    counted from 2.

        PE(pos, 2i) = sin((pos + 2) / 10000^(i/(h - 1))), PE(pos, 2i+1) = cos(the same), h = floor(D/2)

    An odd D has a last component of 0; it is at least 4.
    """
    half = dim // 2
    table = torch.zeros(max_length, dim, dtype=torch.float64)
    if table.is_meta:
        return table
    rates = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10_000.0) / (half - 1)))
    angle = torch.arange(2, max_length + 2, dtype=torch.float64)[:, None] * rates
    table[:, 0 : 2 * half : 2], table[:, 1 : 2 * half : 2] = angle.sin(), angle.cos()
    return table


class NoPositionEmbedding(nn.Module):
    """Layer that adds nothing to the input."""

    def __init__(self, dim: int, max_length: int) -> None:
        super().__init__()

    def forward(self, rows: Tensor, positions: Tensor) -> Tensor:
        return rows


class SinusoidalPositions(nn.Module):
    """Layer that adds to each row that of its position in a table of sines and cosines.

    Args:
        dim: width of the rows.
        max_length: number of positions.
        table_of: (dim, max_length) -> the table.
    """

    table: Tensor

    def __init__(self, dim: int, max_length: int, table_of: Callable[[int, int], Tensor] = sinusoids) -> None:
        super().__init__()
        self.register_buffer("table", table_of(dim, max_length).float(), persistent=False)

    def forward(self, rows: Tensor, positions: Tensor) -> Tensor:
        """(N, D), (N,) -> (N, D)."""
        return rows + self.table.index_select(0, positions).to(rows.dtype)


class LearnedPositions(nn.Module):
    """One trained vector a position."""

    def __init__(self, dim: int, max_length: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_length, dim)
        nn.init.normal_(self.table.weight, std=dim**-0.5)

    def forward(self, rows: Tensor, positions: Tensor) -> Tensor:
        """(N, D), (N,) -> (N, D)."""
        added: Tensor = self.table(positions)
        return rows + added


class ConcatenatedPositions(nn.Module):
    """[row ; vector of its position]: a scheme of the input beside the rows, not added to them.

    width: of the vector, half of the output's.

    Args:
        scheme: (width, max_length) -> the module that adds positions.
        dim: width of the output.
        max_length: number of positions.
    """

    def __init__(self, scheme: Callable[[int, int], nn.Module], dim: int, max_length: int) -> None:
        super().__init__()
        self.width = dim // 2
        self.scheme = scheme(self.width, max_length)

    def forward(self, rows: Tensor, positions: Tensor) -> Tensor:
        """(N, D - width), (N,) -> (N, D)."""
        zeros = rows.new_zeros(len(rows), self.width)
        return torch.cat([rows, self.scheme(zeros, positions)], dim=1)


class AbsoluteAttentionPositions(AttentionPositions):
    """q + p, k + p and v + p in place of x + p: the vector p of a position, cut into heads as rows are.

    Args:
        scheme: the module that adds positions to rows.
    """

    def __init__(self, scheme: nn.Module) -> None:
        super().__init__()
        self.scheme = scheme

    def rotate(self, heads: Tensor, positions: Tensor) -> Tensor:
        """(B, H, T, K), (T,) or (B, T) -> (B, H, T, K)."""
        vectors = self.scheme(heads.new_zeros(positions.numel(), heads.shape[1] * heads.shape[3]), positions.flatten())
        return heads + vectors.view(*positions.shape, heads.shape[1], -1).transpose(-3, -2)  # type: ignore[no-any-return]

    rotate_values = rotate


class PositionScheme(NamedTuple):
    """One position scheme: a module for the input (dim, max_length), one for attention (heads, key_dim, value_dim,
    [model.rotary]).
    """

    input: Callable[[int, int], nn.Module]
    attention: Callable[[int, int, int, RotaryConfig], AttentionPositions]


def _no_attention_positions(heads: int, key_dim: int, value_dim: int, rotary: RotaryConfig) -> AttentionPositions:
    return AttentionPositions()


POSITIONS: dict[str, PositionScheme] = {
    "none": PositionScheme(NoPositionEmbedding, _no_attention_positions),
    "sinusoidal": PositionScheme(SinusoidalPositions, _no_attention_positions),
    "sinusoidal_from_one": PositionScheme(
        partial(SinusoidalPositions, table_of=partial(sinusoids, first_pair=1)), _no_attention_positions
    ),
    "fairseq": PositionScheme(partial(SinusoidalPositions, table_of=fairseq_sinusoids), _no_attention_positions),
    "learned": PositionScheme(LearnedPositions, _no_attention_positions),
    "rotary": PositionScheme(NoPositionEmbedding, Rotary),
    "alibi": PositionScheme(NoPositionEmbedding, Alibi),
    "shaw": PositionScheme(NoPositionEmbedding, Shaw),
    "transformer_xl": PositionScheme(NoPositionEmbedding, TransformerXLPositions),
}


def make_added_positions(scheme: Callable[[int, int], nn.Module], dim: int, max_length: int) -> nn.Module:
    """Return a scheme of the input as it is: its vectors are as wide as the rows.

    Args:
        scheme: (dim, max_length) -> the module that adds positions.
        dim: width of the rows.
        max_length: number of positions.
    """
    return scheme(dim, max_length)


POSITION_JOINS: dict[str, Callable[[Callable[[int, int], nn.Module], int, int], nn.Module]] = {
    "add": make_added_positions,
    "concatenate": ConcatenatedPositions,
    "attention": lambda scheme, dim, max_length: NoPositionEmbedding(dim, max_length),
}
"""By name: (a scheme's `input`, dim, max_length) -> the module that makes rows of width dim of embeddings and
positions.
"""
