"""A small residual network; the cells of its last map are the tokens   (He et al. 2016).

Each norm is of one image alone, so that an image reads the same in every batch.
Legend: B images · C channels of a map · T cells of the last map · N = B T rows · D width.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model.layers.dropout import Dropout
from tfm.model.layers.linear import LOW_PRECISION_DTYPES, Linear
from tfm.model.layout import AnyLayout, Layout
from tfm.model.vision.image_layout import image_layout
from tfm.model.vision.image_shape import ImageShape
from tfm.model.vision.positions import GRID_POSITIONS


class SamePaddingConv2d(nn.Conv2d):
    """A convolution without bias, padded so that stride 1 keeps the size and stride 2 halves it, rounded up.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel: side of the kernel, in pixels.
        stride: distance of neighboring outputs, in pixels.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel: int, stride: int = 1) -> None:
        super().__init__(in_channels, out_channels, kernel, stride, padding=kernel // 2, bias=False)
        nn.init.kaiming_normal_(self.weight, mode="fan_out", nonlinearity="relu")  # He et al. 2015

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, height, width) -> the same of other sizes, in the precision of the input."""
        stride: int | tuple[int, ...] = self.stride
        if self.kernel_size == (1, 1):  # on AVX2, oneDNN's own stride here writes past its buffer in the backward pass
            input, stride = input[..., :: self.stride[0], :: self.stride[1]], 1
        return F.conv2d(input, self.weight.to(input.dtype), None, stride, self.padding)


class FeatureMapNorm(nn.Module):
    """(x - mean) / sqrt(var + eps) * g + b, mean and variance of all numbers of one image's map, g and b of a channel.

    Layer norm (Ba et al. 2016, sec. 6.7), or group norm of one group (Wu and He 2018, eq. 1 to 6).
    """

    def __init__(self, channels: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, height, width) -> the same shape, in the precision of the input."""
        return F.group_norm(x, 1, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


class ResidualBlock(nn.Module):
    """y = relu(shortcut(x) + norm(conv(relu(norm(conv(x))))))   (He et al. 2016, eq. 1 and 2)

    shortcut: x itself, or, where the shape changes, norm(W_s x), of every `stride`-th row and column.

    Args:
        in_channels: channels of x.
        channels: channels of y.
        stride: stride of the first convolution and of the shortcut.
    """

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first, self.first_norm = SamePaddingConv2d(in_channels, channels, 3, stride), FeatureMapNorm(channels)
        self.second, self.second_norm = SamePaddingConv2d(channels, channels, 3), FeatureMapNorm(channels)
        is_same_shape = in_channels == channels and stride == 1
        self.shortcut: nn.Module = (
            nn.Identity()
            if is_same_shape
            else nn.Sequential(SamePaddingConv2d(in_channels, channels, 1, stride), FeatureMapNorm(channels))
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, height, width) -> (B, C', height', width')."""
        added = self.second_norm(self.second(self.first_norm(self.first(x)).relu_()))
        return (self.shortcut(x) + added).relu_()  # type: ignore[no-any-return]


class ResNetEmbedding(nn.Module):
    """z_t = W m_t + b + position_t,   m_t: the C numbers of cell t of the last map, cells in reading order.

    A first convolution, of every `stride`-th row and column, then `blocks` residual blocks for each of `channels`;
    each but the first of these stages halves the map.

    Args:
        image: the shape of the images.
        channels: channels of each stage.
        blocks: residual blocks of each stage.
        stride: stride of the first convolution.
        dim: D.
        positions: name of the position scheme in GRID_POSITIONS.
        dropout: dropout of the rows.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(
        self,
        image: ImageShape,
        channels: Sequence[int],
        blocks: int,
        stride: int,
        dim: int,
        *,
        positions: str,
        dropout: Dropout,
        compute_dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.dropout, self.compute_dtype = dropout, compute_dtype
        kernel = max(3, 2 * stride - 1)  # so that neighbors overlap
        self.stem = nn.Sequential(
            SamePaddingConv2d(image.channels, channels[0], kernel, stride), FeatureMapNorm(channels[0]), nn.ReLU()
        )
        parts = [ResidualBlock(channels[0], channels[0], 1) for _ in range(blocks)]
        for before, after in pairwise(channels):
            parts.append(ResidualBlock(before, after, 2))
            parts += [ResidualBlock(after, after, 1) for _ in range(blocks - 1)]
        self.blocks = nn.Sequential(*parts)
        step = stride * 2 ** (len(channels) - 1)
        num_rows, num_columns = (-(-side // step) for side in (image.height, image.width))
        self.num_tokens = num_rows * num_columns
        self.product = Linear(channels[-1], dim, compute_dtype=compute_dtype)
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
        is_low = self.training and self.compute_dtype in LOW_PRECISION_DTYPES
        maps = pixels.to(self.compute_dtype if is_low else pixels.dtype, memory_format=torch.channels_last)
        maps = self.blocks(self.stem(maps))
        cells = maps.permute(0, 2, 3, 1).reshape(-1, maps.shape[1]).to(pixels.dtype)
        tokens = self.product(cells).view(len(pixels), self.num_tokens, -1)
        return self.dropout(self.positions(tokens).flatten(0, 1))  # type: ignore[no-any-return]
