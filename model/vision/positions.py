"""Positions of tokens in the image: a vector for each cell of a grid, added to the cell's row.

Legend: B images · R rows of cells · C columns of cells · T = R C tokens of an image · D width.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tfm.model.attention.positions import sinusoids


class NoPositions(nn.Module):
    """Layer that adds nothing.

    Args:
        num_rows: R.
        num_columns: C.
        dim: D.
    """

    def __init__(self, num_rows: int, num_columns: int, dim: int) -> None:
        super().__init__()

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T, D) -> the same."""
        return tokens


class LearnedGridPositions(nn.Module):
    """One trained vector a cell   (Dosovitskiy et al. 2021, eq. 1: E_pos).

    The vectors begin as large as sines and cosines are: smaller ones, beside tokens of many pixels, are learned late.

    Args:
        num_rows: R.
        num_columns: C.
        dim: D.
    """

    def __init__(self, num_rows: int, num_columns: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(num_rows * num_columns, dim))
        nn.init.normal_(self.table, std=0.5**0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        return tokens + self.table


class SinusoidalGridPositions(nn.Module):
    """[PE(row) ; PE(column)], each of half the width   (PE: Vaswani et al. 2017, sec. 3.5).

    Args:
        num_rows: R.
        num_columns: C.
        dim: D.
    """

    table: Tensor

    def __init__(self, num_rows: int, num_columns: int, dim: int) -> None:
        super().__init__()
        row_sines, column_sines = sinusoids(dim // 2, num_rows), sinusoids(dim - dim // 2, num_columns)
        table = torch.cat([row_sines.repeat_interleave(num_columns, 0), column_sines.repeat(num_rows, 1)], dim=1)
        self.register_buffer("table", table.float(), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        return tokens + self.table.to(tokens.dtype)


GRID_POSITIONS: dict[str, Callable[[int, int, int], nn.Module]] = {
    "none": NoPositions,
    "learned": LearnedGridPositions,
    "sinusoidal": SinusoidalGridPositions,
}
"""By name: (rows of cells, columns of cells, D) -> tokens (B, T, D) with positions."""
