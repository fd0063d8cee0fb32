"""Upsampling of the shorter sequence, back to a row for each character.

Legend: N rows of characters · M rows of the shorter sequence · D width · r rate · w width of the convolution.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model.characters.downsampling import DownsampledLayout
from tfm.model.layers.linear import Linear, linear_in_training
from tfm.model.layers.normalization import has_batch_norm
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

    def forward(
        self, characters: Tensor, downsampled: Tensor, layout: DownsampledLayout, prediction_rows: Tensor | None = None
    ) -> Tensor:
        """Return a row for each character from those of both sequences.

        Args:
            characters: rows (N, D) of the characters.
            downsampled: rows (M, D) of the shorter sequence.
            layout: the layout of the shorter sequence.
            prediction_rows: (n,) the characters that are asked for; None for all.

        Returns:
            Rows (N, D), or (n, D).
        """
        convolve = self._convolve_by_parts if self.training else self._convolve
        rows = self.norm(F.gelu(convolve(characters, downsampled, layout)))
        selection = None if has_batch_norm(self) else prediction_rows
        rows = self.layer(rows, layout.characters, padding_mask(layout.characters), selection)
        normed: Tensor = self.last_norm(rows)
        if prediction_rows is None or selection is not None:
            return normed
        return normed.index_select(0, prediction_rows)

    def _convolve(self, characters: Tensor, downsampled: Tensor, layout: DownsampledLayout) -> Tensor:
        """Return W [z_(i - (w - 1) / 2) ; ... ; z_(i + w / 2)] + b for each character (N, D)."""
        features = torch.cat([characters, layout.repeat_rows(downsampled)], dim=1)
        convolved: Tensor = self.words(gather_windows(features, layout.characters.positions, self.offsets))
        return convolved

    def _convolve_by_parts(self, characters: Tensor, downsampled: Tensor, layout: DownsampledLayout) -> Tensor:
        """Return the same, where W_h h of the two parts of W = [W_x ; W_h] is computed once for all r characters of h:
        r times fewer products."""
        dim, dtype = characters.shape[1], self.words.compute_dtype
        from_characters, from_downsampled = self.words.weight.view(dim, -1, 2, dim).unbind(2)
        windows = gather_windows(characters, layout.characters.positions, self.offsets)
        rows: Tensor = linear_in_training(windows, from_characters.flatten(1), self.words.bias, dtype)
        products = linear_in_training(downsampled, from_downsampled.transpose(0, 1).flatten(0, 1), None, dtype)
        products = F.pad(products.view(-1, dim), (0, 0, 0, 1))  # (M w + 1, D): the last is beyond a sentence
        for number, row in enumerate(self._window_rows(layout)):
            place = torch.where(row < 0, len(products) - 1, row * len(self.offsets) + number)
            rows = rows + products.index_select(0, place)
        return rows

    def _window_rows(self, layout: DownsampledLayout) -> list[Tensor]:
        """Return by offset each character's row of the shorter sequence at this offset (N,); -1 beyond the ends."""
        numbers = (layout.places // layout.rate + 1).unsqueeze(1)
        return list(gather_windows(numbers, layout.characters.positions, self.offsets).sub(1).unbind(1))
