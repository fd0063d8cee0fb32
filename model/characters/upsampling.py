"""Upsampling of the shorter sequence, back to a row for each character.

Legend: N rows of characters · M rows of the shorter sequence · D width · r rate · w width of the convolution.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model.characters.downsampling import DownsampledLayout
from tfm.model.layers.linear import Linear
from tfm.model.masks import padding_mask
from tfm.model.transformer.layers import EncoderLayer
from tfm.model.transformer.token_mixing import gather_windows


class Upsampling(nn.Module):
    """u_i = norm(gelu(W [z_(i - (w - 1) / 2) ; ... ; z_(i + w / 2)] + b)), z_i = [x_i ; h_(i / r)], halves rounded
    down

    and one more layer over all characters; zeros beyond the ends of a sentence   (Clark et al. 2022, sec. 3.2). x are
    the rows of characters before the shorter sequence was made of them, h the output of its layers.

    Args:
        dim: D.
        width: w.
        norm: norm after the convolution.
        layer: the layer over all characters.
        last_norm: norm after this layer.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(
        self,
        dim: int,
        width: int,
        *,
        norm: nn.Module,
        layer: EncoderLayer,
        last_norm: nn.Module,
        compute_dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.offsets = range(-((width - 1) // 2), width // 2 + 1)
        self.words = Linear(2 * width * dim, dim, compute_dtype=compute_dtype)
        self.norm, self.layer, self.last_norm = norm, layer, last_norm

    def forward(self, characters: Tensor, downsampled: Tensor, layout: DownsampledLayout) -> Tensor:
        """Return a row for each character from those of both sequences.

        Args:
            characters: rows (N, D) of the characters.
            downsampled: rows (M, D) of the shorter sequence.
            layout: the layout of the shorter sequence.

        Returns:
            Rows (N, D).
        """
        features = torch.cat([characters, layout.repeat_rows(downsampled)], dim=1)
        rows = self.norm(F.gelu(self.words(gather_windows(features, layout.characters.positions, self.offsets))))
        rows = self.layer(rows, layout.characters, padding_mask(layout.characters))
        return self.last_norm(rows)  # type: ignore[no-any-return]
