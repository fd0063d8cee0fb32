"""Training images varied at random: shifted, flipped, cropped; a pure function of (seed, step, row).

Each change says, of each row and each column of pixels of the result, which row and column of the image it is; so that
all of them together are one look-up, exact, in bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfm.data.arrays import Ints, hashes_to_uniform, splitmix64
from tfm.data.images.decoding import Pixels

DRAWS_PER_IMAGE = 6  # a place each for what is drawn of an image, so that one change does not move another's


@dataclass(frozen=True)
class Augmentation:
    """Random variation of images; the default is none.

    Args:
        shift: the most pixels to each side; the gap repeats the pixels of the edge.
        flip: whether left and right are exchanged, every second time; captions that say left or right are then no
            longer true.
        crop: the smallest share of each side that is kept: a window whose share is uniform from `crop` to 1, at a
            uniform place, scaled up to the whole image (the nearest pixel's value); 1: no crop.
    """

    shift: int = 0
    flip: bool = False
    crop: float = 1.0

    def __post_init__(self) -> None:
        if self.shift < 0:
            raise ValueError(f"`shift` must be 0 pixels or more: {self.shift}")
        if not 0 < self.crop <= 1:
            raise ValueError(f"`crop` must be above 0, and 1 at most: {self.crop}")

    def __call__(self, pixels: Pixels, seed: int, step: int, rows: Ints | Sequence[int]) -> Pixels:
        """Vary the images (B, height, width, channels) of some rows, each independently of all other rows."""
        if self == Augmentation():
            return pixels
        num, height, width, channels = pixels.shape
        draws = draw_uniform(seed, step, np.asarray(rows, np.int64))
        share = self.crop + (1 - self.crop) * draws[:, 0]
        row_indices = self._source_indices(height, share, draws[:, 1], draws[:, 2])
        column_indices = self._source_indices(width, share, draws[:, 3], draws[:, 4])
        if self.flip:
            column_indices = np.where(draws[:, 5:] < 0.5, column_indices[:, ::-1], column_indices)
        rows_of_pixels = np.arange(num)[:, None] * height + row_indices
        indices = rows_of_pixels[:, :, None] * width + column_indices[:, None, :]
        # the bytes of a pixel as one item: to look up whole pixels is several times as fast
        flat_pixels = np.ascontiguousarray(pixels).reshape(-1, channels).view(f"V{channels}")[:, 0]
        varied: Pixels = flat_pixels.take(indices.reshape(-1)).view(np.uint8).reshape(pixels.shape)
        return varied

    def _source_indices(
        self,
        size: int,
        window_share: NDArray[np.float64],
        window_position: NDArray[np.float64],
        shift_draws: NDArray[np.float64],
    ) -> Ints:
        """The indices of `size` pixels from which the pixels of the result are taken: (B, size).

        Args:
            size: the number of pixels of a side.
            window_share: (B,), the share of the side that the window covers.
            window_position: (B,), from 0, the first position that fits, to 1, the last.
            shift_draws: (B,), random numbers that decide the shift.
        """
        begin = window_position * (size - window_share * size)
        positions = begin[:, None] + (np.arange(size) + 0.5) * window_share[:, None]
        shifts = np.floor(shift_draws * (2 * self.shift + 1)).astype(np.int64) - self.shift
        indices: Ints = (np.floor(positions).astype(np.int64) + shifts[:, None]).clip(0, size - 1)
        return indices


def draw_uniform(seed: int, step: int, rows: Ints) -> NDArray[np.float64]:
    """Draw numbers from 0 to below 1: hashes of (seed, step, row, place), without a generator's state.

    Args:
        seed: of the training.
        step: the number of the update.
        rows: (rows,) row numbers.

    Returns:
        (rows, DRAWS_PER_IMAGE) numbers.
    """
    state = np.full((len(rows), DRAWS_PER_IMAGE), seed % 2**64, np.uint64)
    row_numbers, draw_numbers = rows.astype(np.uint64)[:, None], np.arange(DRAWS_PER_IMAGE, dtype=np.uint64)
    for number in (np.uint64(step), row_numbers, draw_numbers):
        state = splitmix64(splitmix64(state) + number)
    return hashes_to_uniform(splitmix64(state))
