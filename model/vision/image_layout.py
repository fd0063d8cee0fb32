"""The layout of images as rows, with the same number of tokens for every image."""

import torch
from torch import Tensor

from tfm.model.layout import Layout


def image_layout(pixels: Tensor, num_tokens: int) -> Layout:
    """Return the layout of images (B, channels, height, width) of `num_tokens` tokens each."""
    return Layout.from_lengths(torch.full((len(pixels),), num_tokens), pixels.device)
