"""An image as its patches, each a token   (Dosovitskiy et al. 2021).

Legend: B images · C channels · P side of a patch · T patches of an image · N = B T rows · D width.
"""

import torch
from torch import Tensor, nn

from tfm.model.layers.dropout import Dropout
from tfm.model.layers.linear import Linear
from tfm.model.layout import AnyLayout, Layout
from tfm.model.vision.image_layout import image_layout
from tfm.model.vision.image_shape import ImageShape
from tfm.model.vision.positions import GRID_POSITIONS


class PatchEmbedding(nn.Module):
    """z_p = E x_p + b + position_p   (Dosovitskiy et al. 2021, eq. 1, without its class token)

    x_p: the C P^2 numbers of patch p, channel by channel, each row by row; patches are in reading order.

    Args:
        image: the shape of the images.
        patch: P, which must divide height and width.
        dim: D.
        positions: name of the position scheme in GRID_POSITIONS.
        dropout: dropout of the rows.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(
        self, image: ImageShape, patch: int, dim: int, *, positions: str, dropout: Dropout, compute_dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.patch, self.dropout = patch, dropout
        num_rows, num_columns = image.height // patch, image.width // patch
        self.num_tokens = num_rows * num_columns
        self.product = Linear(image.channels * patch**2, dim, compute_dtype=compute_dtype)
        self.positions = GRID_POSITIONS[positions](num_rows, num_columns, dim)

    def layout(self, pixels: Tensor, lengths: Tensor) -> Layout:
        """Return a layout with T rows per image; `lengths` has no effect."""
        return image_layout(pixels, self.num_tokens)

    def embed(self, pixels: Tensor, layout: AnyLayout) -> tuple[Tensor, AnyLayout]:
        """Return the rows (N, D) of images (B, C, height, width), one row a token."""
        return self(pixels, layout.positions), layout

    def forward(self, pixels: Tensor, positions: Tensor) -> Tensor:
        """Return the rows (N, D) of images (B, C, height, width). positions: of the layout, which are the same for each
        image.
        """
        tokens = self.product(patchify(pixels, self.patch)).view(len(pixels), self.num_tokens, -1)
        return self.dropout(self.positions(tokens).flatten(0, 1))  # type: ignore[no-any-return]


def patchify(pixels: Tensor, patch: int) -> Tensor:
    """Return the numbers of each patch (N, C P^2) of images (B, C, height, width)."""
    batch, channels, height, width = pixels.shape
    grid = pixels.reshape(batch, channels, height // patch, patch, width // patch, patch)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(-1, channels * patch**2)
