"""Downsampling of the rows of characters to a shorter sequence, sentence by sentence.

Legend: N rows of characters · M rows of the shorter sequence · D width · r rate.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model.layers.linear import Linear
from tfm.model.layout import Layout, scatter_rows


class DownsampledLayout(Layout):
    """Layout of the shorter rows: a sentence of n characters has ceil(n / r) of them.

    characters: the layout of the rows that they were made from. places (N,): r j + the place among the r characters of
    row j, for each character of row j.
    """

    def __init__(self, characters: Layout, rate: int) -> None:
        device = characters.positions.device
        super().__init__((characters.lengths + rate - 1) // rate, device)
        self.characters, self.rate = characters, rate
        firsts = (self.lengths.cumsum(0) - self.lengths).to(device, non_blocking=True)
        self.places = rate * firsts[characters.sentence] + characters.positions

    def group_rows(self, rows: Tensor) -> Tensor:
        """Concatenate the r characters of each row, with zeros beyond the end of a sentence: (N, D) -> (M, r D)."""
        return scatter_rows(rows, self.places, self.rate * self.num_rows).view(self.num_rows, -1)

    def repeat_rows(self, rows: Tensor) -> Tensor:
        """Return for each character the row that it went into: (M, D) -> (N, D)."""
        return rows.index_select(0, self.places // self.rate)


class Downsampling(nn.Module):
    """h_j = norm(gelu(W [x_(rj) ; ... ; x_(rj + r - 1)] + b)), zeros beyond the end   (Clark et al. 2022, sec. 3.2)

    A convolution as wide as its stride r. Activation and norm are those of the authors' code.

    Args:
        dim: D.
        rate: r.
        norm: norm of the shorter rows.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(self, dim: int, rate: int, *, norm: nn.Module, compute_dtype: torch.dtype) -> None:
        super().__init__()
        self.words = Linear(rate * dim, dim, compute_dtype=compute_dtype)
        self.norm = norm

    def forward(self, rows: Tensor, layout: DownsampledLayout) -> Tensor:
        """(N, D) -> (M, D)."""
        return self.norm(F.gelu(self.words(layout.group_rows(rows))))  # type: ignore[no-any-return]
