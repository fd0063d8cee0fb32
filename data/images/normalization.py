"""Bytes to numbers around 0, as networks take them in."""

from functools import lru_cache

import torch
from torch import Tensor

from tfm.data.images.channel_statistics import ChannelStatistics


def normalize_image(pixels: Tensor, statistics: ChannelStatistics) -> Tensor:
    """(x - mean) / deviation of each channel, by the figures of the training images.

    pixels: (B, height, width, channels) uint8, on any device. Returns (B, channels, height, width) float32. A channel
    whose training values are all the same is only moved by its mean. In memory the channels of a pixel stay side by
    side (torch's channels_last), as convolutions like them.
    """
    mean, scale = _means_and_scales(statistics, pixels.device)
    return pixels.to(torch.float32).sub_(mean).mul_(scale).permute(0, 3, 1, 2)


@lru_cache(maxsize=8)
def _means_and_scales(statistics: ChannelStatistics, device: torch.device) -> tuple[Tensor, Tensor]:
    """Means, and 1 / deviation, of the channels (C,), made once: a GPU would wait for each copy."""
    with torch.inference_mode(False):
        mean = torch.tensor(statistics.means, dtype=torch.float32, device=device)
        scale = [1 / (each or 1.0) for each in statistics.standard_deviations]
        return mean, torch.tensor(scale, dtype=torch.float32, device=device)
