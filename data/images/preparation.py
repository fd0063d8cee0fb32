"""Conversion of images to the input of a network: one shape, normalized by the figures of the training images.

images.json in a dataset and in the folder of a model, which has it in place of a source's tokenizer.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfm.data.errors import DataError
from tfm.data.image_config import IMAGES_FILE
from tfm.data.images.channel_statistics import ChannelStatistics
from tfm.data.images.decoding import ImageSize, Pixels, decode_image
from tfm.data.json_documents import read_json

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ImageTransform:
    """Conversion of images to the input of a network.

    shape: of every image. statistics: of the pixels of the training images.
    """

    shape: ImageSize
    statistics: ChannelStatistics

    def decode_pixels(self, file: Path) -> Pixels:
        """The image in a file (height, width, channels). Raises DataError, which names it, if it is none."""
        return decode_image(file, str(file), self.shape).pixels

    def __call__(self, pixels: "Tensor") -> "Tensor":
        """(B, height, width, channels) uint8 -> (B, channels, height, width) float32, around 0."""
        from tfm.data.images.normalization import normalize_image  # here, as it needs torch, which data is made without

        return normalize_image(pixels, self.statistics)

    def write(self, folder: Path, **extra: object) -> None:
        """Write images.json, with some more about them."""
        (folder / IMAGES_FILE).write_bytes(self.to_json_bytes(**extra))

    def to_json_bytes(self, **extra: object) -> bytes:
        """images.json, with some more about the images."""
        return (json.dumps({**self.as_json(), **extra}, indent=2, ensure_ascii=False) + "\n").encode()

    def as_json(self) -> dict[str, Any]:
        """Shape and figures: sums are exact; means and deviations are there to be read."""
        shape, statistics = self.shape, self.statistics
        return {
            "height": shape.height,
            "width": shape.width,
            "channels": shape.channels,
            "pixels": statistics.count,
            "sums": statistics.sums,
            "squares": statistics.squares,
            "means": statistics.means,
            "deviations": statistics.standard_deviations,
        }


def read_image_transform(folder: Path, displayed_path: Path | None = None) -> ImageTransform:
    """Read a file of `ImageTransform.write`. Raises DataError if it has other content."""
    path = (displayed_path or folder) / IMAGES_FILE
    document = read_json(folder / IMAGES_FILE, displayed_path=path)
    try:
        return image_transform_from_json(document)
    except (ValueError, ArithmeticError) as error:
        raise DataError(f"is not made by tfm ({error}): make the dataset again", file=path) from error


def image_transform_from_json(document: Mapping[str, Any]) -> ImageTransform:
    """Invert `ImageTransform.as_json`. Raises ValueError if the object is something else."""
    shape = ImageSize(*(_read_integer(document, name) for name in ("height", "width", "channels")))
    sums, squares = (_read_integers(document, name, shape.channels) for name in ("sums", "squares"))
    statistics = ChannelStatistics(_read_integer(document, "pixels"), sums, squares)
    if not _are_consistent(statistics):
        raise ValueError("no pixels have these sums")
    return ImageTransform(shape, statistics)


def _read_integer(document: Mapping[str, Any], name: str) -> int:
    value = document.get(name)
    if type(value) is not int or not 0 < value < 2**60:
        raise ValueError(f"{name} is {value!r}"[:80])
    return value


def _read_integers(document: Mapping[str, Any], name: str, channels: int) -> tuple[int, ...]:
    values = document.get(name)
    if not isinstance(values, list) or len(values) != channels or not all(type(each) is int for each in values):
        raise ValueError(f"{name} is {values!r}"[:80])
    return tuple(values)


def _are_consistent(statistics: ChannelStatistics) -> bool:
    """Whether some bytes have these sums: sum^2 <= count * squares, and squares <= 255 sum (Cauchy-Schwarz)."""
    sums_and_squares = zip(statistics.sums, statistics.squares, strict=True)
    return all(
        0 <= total <= 255 * statistics.count
        and total**2 <= statistics.count * square
        and total <= square <= 255 * total
        for total, square in sums_and_squares
    )
