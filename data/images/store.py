"""The images of one split on disk: a memory-mapped array of bytes, and which image each text of the split is of.

images.json   shape, number of images, sums of the channels, what was converted or refused; a hash of the images of
              validation and test splits
pixels.npy    uint8 (images, height, width, channels)
rows.npy      int64 (rows,): the image of each row of texts
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np

from tfm.data.arrays import Ints
from tfm.data.errors import DataError
from tfm.data.image_config import IMAGES_FILE
from tfm.data.images.captioned_image import CaptionedImage
from tfm.data.images.channel_statistics import ChannelStatistics
from tfm.data.images.decoding import ImageSize, Pixels, decode_image
from tfm.data.images.image_report import ImageReport
from tfm.data.images.preparation import ImageTransform, image_transform_from_json
from tfm.data.json_documents import read_json

PIXELS_FILE = "pixels.npy"
ROWS_FILE = "rows.npy"


class ImageWriter:
    """Appends images to the files of one split; see `write_images`."""

    def __init__(self, stream: BufferedWriter, shape: ImageSize):
        self.shape = shape
        self.report = ImageReport()
        self.statistics = ChannelStatistics.empty(shape.channels)
        self.rows: Ints | None = None
        self._stream = stream
        self._count = 0
        self._converted: dict[int, tuple[str, tuple[str, ...]]] = {}  # by the pixels' id: title, conversions
        self._keys: dict[int, str] = {}  # likewise: the key of the image
        self._contents = hashlib.sha256()
        self._num_hashed = 0

    def write(self, pixels: Pixels) -> int:
        """Append an image (height, width, channels); its number, from 0."""
        if pixels.shape != (self.shape.height, self.shape.width, self.shape.channels) or pixels.dtype != np.uint8:
            raise ValueError(f"{pixels.dtype} {pixels.shape} is not of {self.shape}")
        self._stream.write(np.ascontiguousarray(pixels).tobytes())
        self.statistics += ChannelStatistics.from_pixels(pixels)
        self.report.add(*self._converted.pop(id(pixels), ("", ())))
        if (key := self._keys.pop(id(pixels), None)) is not None:
            self._contents.update(key.encode())
            self._num_hashed += 1
        self._count += 1
        return self._count - 1

    def decode_images(
        self, images: Iterable[CaptionedImage], *, drop_invalid: bool
    ) -> Iterator[tuple[CaptionedImage, Pixels]]:
        """The pixels of images, none of them appended yet.

        drop_invalid: whether refused images are left out and reported, as of training data; otherwise the first ends
        all with a DataError, since a test set must not shrink unseen. Conversions are reported of those appended.
        """
        for image in images:
            try:
                decoded_image = decode_image(image.content, image.title if drop_invalid else image.name, self.shape)
            except DataError as error:
                if not drop_invalid:
                    raise
                self.report.add_rejected(str(error), len(image.captions))
                continue
            if decoded_image.conversions:
                self._converted[id(decoded_image.pixels)] = image.title, decoded_image.conversions
            else:
                self._converted.pop(id(decoded_image.pixels), None)  # of an image that was dropped
            if not drop_invalid:
                self._keys[id(decoded_image.pixels)] = image.content_hash
            yield image, decoded_image.pixels

    @property
    def content_hash(self) -> str | None:
        """sha256, in hex, of the images so far, as files, in order; None of training images, which are many."""
        return self._contents.hexdigest() if self._num_hashed == self._count else None

    @property
    def num_images(self) -> int:
        """The number of images so far."""
        return self._count


@contextmanager
def write_images(folder: Path, shape: ImageSize) -> Iterator[ImageWriter]:
    """Write the images of one split into a folder one by one, without keeping them in memory.

    Before the end, `rows` of the writer must be set: the image of each row of texts. Raises DataError if there is none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / PIXELS_FILE, "wb") as stream:
        head = _write_header(stream, shape, 0)
        writer = ImageWriter(stream, shape)
        yield writer
        stream.seek(0)
        if _write_header(stream, shape, writer.num_images) != head:
            raise ValueError("this version of numpy leaves no room in a header for the number of images to grow")
    if writer.num_images == 0:
        first = f": {writer.report.refused[0]}" if writer.report.refused else ""
        raise DataError(f"there is no image that can be read{first}", file=folder)
    if writer.rows is None or not _are_valid_image_rows(writer.rows, writer.num_images):
        raise ValueError("`rows` must be set to the number of an image for each row")
    np.save(folder / ROWS_FILE, writer.rows.astype(np.int64))
    contents = {} if writer.content_hash is None else {"contents": writer.content_hash}
    ImageTransform(shape, writer.statistics).write(
        folder, images=writer.num_images, report=writer.report.as_json(stored=writer.num_images), **contents
    )


@dataclass(frozen=True)
class ImageStore:
    """The images of one split, read on demand from a memory-mapped file.

    Args:
        pixels: (images, height, width, channels) uint8.
        rows: (rows,) the image of each row of texts.
        statistics: of all pixels of this split; every split is normalized by those of the training split.
        report: on the images of the split.
        contents: the hash of the images as files, in order; None if it is not known.
    """

    pixels: Pixels
    rows: Ints
    statistics: ChannelStatistics
    report: dict[str, Any]
    contents: str | None = None

    @property
    def shape(self) -> ImageSize:
        """The shape of each image."""
        return ImageSize(*self.pixels.shape[1:])

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Ints | Sequence[int]) -> Pixels:
        """The images of some rows of texts, in that order: (len(rows), height, width, channels), a copy."""
        return np.asarray(self.pixels[self.rows[rows]])

    def image_rows(self, image: int) -> Ints:
        """The rows of texts that are of one image, in order: its captions."""
        order, images = self._group_rows
        begin, end = np.searchsorted(images, [image, image + 1])
        return order[begin:end]

    @cached_property
    def _group_rows(self) -> tuple[Ints, Ints]:
        """All rows, those of an image side by side, and the image of each."""
        order = np.argsort(self.rows, kind="stable")
        return order, self.rows[order]


def load_images(folder: Path) -> ImageStore:
    """Open the images that `write_images` wrote. Raises DataError if the files are other ones."""
    try:
        metadata = read_json(folder / IMAGES_FILE)
    except FileNotFoundError:
        raise DataError(f"there are no images (no {IMAGES_FILE}): make the dataset again", file=folder) from None
    try:
        preparation = image_transform_from_json(metadata)
        shape = preparation.shape
        expected = (metadata["images"], shape.height, shape.width, shape.channels)
        pixels = np.load(folder / PIXELS_FILE, mmap_mode="r", allow_pickle=False)
        rows = np.load(folder / ROWS_FILE, allow_pickle=False)
        if pixels.dtype != np.uint8 or pixels.shape != expected or not pixels.flags.c_contiguous:
            raise ValueError(f"{PIXELS_FILE} holds {pixels.dtype} {pixels.shape}, not uint8 {expected}")
        if rows.dtype != np.int64 or rows.ndim != 1 or not _are_valid_image_rows(rows, len(pixels)):
            raise ValueError(f"{ROWS_FILE} does not hold the numbers of images")
        if pixels[..., 0].size != preparation.statistics.count or type(metadata["images"]) is not int:
            raise ValueError("its sums are of other pixels")
        contents = metadata.get("contents")  # older datasets have none
        contents_fingerprint = contents if isinstance(contents, str) else None
        return ImageStore(pixels, rows, preparation.statistics, metadata["report"], contents_fingerprint)
    except (ValueError, OSError, EOFError, KeyError, MemoryError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"is not made by tfm ({reason:.200}): make the dataset again", file=folder) from error


def _write_header(stream: BufferedWriter, shape: ImageSize, count: int) -> int:
    header = {"descr": "|u1", "fortran_order": False, "shape": (count, shape.height, shape.width, shape.channels)}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.tell()


def _are_valid_image_rows(rows: Ints, count: int) -> bool:
    """Whether each row has one of `count` images."""
    return len(rows) == 0 or bool(rows.min() >= 0 and rows.max() < count)
