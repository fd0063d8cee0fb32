"""Bytes to numbers around 0, as networks take them in."""

import torch
from torch import Tensor

from tfm.data.images.channel_statistics import ChannelStatistics


def normalised(pixels: Tensor, statistics: ChannelStatistics) -> Tensor:
    """(x - mean) / deviation of each channel, by the figures of the training images.

    pixels: (B, height, width, channels) uint8, on any device. Returns (B, channels, height, width) float32. A channel
    whose training values are all the same is only moved by its mean. In memory the channels of a pixel stay side by
    side (torch's channels_last), as convolutions like them.
    """
    deviations = [each or 1.0 for each in statistics.deviations]
    mean = torch.tensor(statistics.means, dtype=torch.float32, device=pixels.device)
    scale = torch.tensor([1 / each for each in deviations], dtype=torch.float32, device=pixels.device)
    return pixels.to(torch.float32).sub_(mean).mul_(scale).permute(0, 3, 1, 2)
