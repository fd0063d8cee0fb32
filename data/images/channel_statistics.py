"""Mean and standard deviation of each channel of the training images, from sums of whole numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from tfm.data.images.decoding import Pixels


@dataclass(frozen=True)
class ChannelStatistics:
    """Statistics of the pixels of images: exact, in any order.

    Args:
        count: the number of pixels.
        sums: of each channel's values.
        squares: the sum of the squares of each channel's values.
    """

    count: int
    sums: tuple[int, ...]
    squares: tuple[int, ...]

    @classmethod
    def empty(cls, channels: int) -> "ChannelStatistics":
        """Return the statistics of no pixels."""
        return cls(0, (0,) * channels, (0,) * channels)

    @classmethod
    def from_pixels(cls, pixels: Pixels) -> "ChannelStatistics":
        """Return the statistics of pixels (..., channels), from the counts of each of the 256 values."""
        values = np.arange(256)
        channels = [np.bincount(pixels[..., each].reshape(-1), minlength=256) for each in range(pixels.shape[-1])]
        sums = tuple(int(counts @ values) for counts in channels)
        return cls(pixels[..., 0].size, sums, tuple(int(counts @ values**2) for counts in channels))

    def __add__(self, other: "ChannelStatistics") -> "ChannelStatistics":
        return ChannelStatistics(
            self.count + other.count,
            _add_elementwise(self.sums, other.sums),
            _add_elementwise(self.squares, other.squares),
        )

    @property
    def means(self) -> tuple[float, ...]:
        """E[x] of each channel, on the scale 0 to 255; divided once."""
        return tuple(each / self.count for each in self.sums)

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        """The square root of E[x^2] - E[x]^2 of each channel, on the scale 0 to 255.

        The difference is of whole numbers, so that nothing cancels; 0 if all values are the same.
        """
        sums_and_squares = zip(self.sums, self.squares, strict=True)
        return tuple(sqrt((square * self.count - total**2) / self.count**2) for total, square in sums_and_squares)


def _add_elementwise(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))
