"""IDX files, the format of MNIST: images in one file, their labels as numbers in another; each may be compressed.

A header of big-endian numbers (two zero bytes, the type of an item, how many dimensions there are, the dimensions of 4
bytes each), and the items (yann.lecun.com/exdb/mnist).
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tfm.data.errors import DataError, format_count
from tfm.data.images.captioned_image import CaptionedImage
from tfm.data.images.decoding import MAX_PIXELS
from tfm.data.lines import check_is_file, open_maybe_compressed

UNSIGNED_BYTE_TYPE = 8
READ_BLOCK_BYTES = 1 << 20  # bytes


def read_idx(images: Path, labels: Path, classes: Sequence[str] = ()) -> Iterator[CaptionedImage]:
    """Yield the gray images of a file, each with its label: of label i the class i, else its number.

    Args:
        images: the file of images (count, height, width).
        labels: the file of labels (count,).
        classes: the names of the labels.

    Raises:
        DataError: a file, or an image (counted from 1), is not valid.
    """
    images, labels = check_is_file(images), check_is_file(labels)
    (count, height, width), (num_labels,) = _read_dimensions(images, 3), _read_dimensions(labels, 1)
    if count != num_labels:
        raise DataError(
            f"holds {format_count(num_labels, 'label')}, but {images} holds {format_count(count, 'image')}", file=labels
        )
    if not 0 < height * width <= MAX_PIXELS:
        raise DataError(f"its images are of {height} x {width} pixels", file=images)
    image_items, label_items = _read_items(images, 3, count, height * width), _read_items(labels, 1, count, 1)
    for number, (values, label) in enumerate(zip(image_items, label_items, strict=True), 1):
        if classes and label[0] >= len(classes):
            names = format_count(len(classes), "name")
            problem = f"label {number} is {label[0]}, but `classes` has {names}, counted from 0"
            raise DataError(problem, file=labels)
        text = classes[label[0]] if classes else str(label[0])
        pixels = np.frombuffer(values, np.uint8).reshape(height, width)
        yield CaptionedImage(f"{images}, image {number}", pixels, (text,), f"image {number}")


def _read_dimensions(path: Path, expected: int) -> tuple[int, ...]:
    """The dimensions of a file's items in its header: their number and, of images, height and width."""
    with open_maybe_compressed(path) as file:
        head = file.read(4 + 4 * expected)
    if len(head) < 4 or head[:2] != b"\0\0":
        raise DataError("is not an IDX file: it does not begin with two zero bytes", file=path)
    if head[2] != UNSIGNED_BYTE_TYPE:
        raise DataError(f"holds items of type {head[2]:#04x}; only bytes (0x08) are images or labels", file=path)
    if head[3] != expected:
        content = "images (3 dimensions)" if expected == 3 else "labels (1 dimension)"
        raise DataError(f"has {format_count(head[3], 'dimension')}, so it does not hold {content}", file=path)
    if len(head) < 4 + 4 * expected:
        raise DataError("ends within its header", file=path)
    return struct.unpack(f">{expected}I", head[4:])


def _read_items(path: Path, dimensions: int, count: int, size: int) -> Iterator[bytes]:
    """The items of a file, each of `size` bytes; no more is held in memory than READ_BLOCK_BYTES, or one item."""
    num_block_items = max(1, READ_BLOCK_BYTES // size)
    with open_maybe_compressed(path) as file:
        file.read(4 + 4 * dimensions)
        for begin in range(0, count, num_block_items):
            num_bytes = min(num_block_items, count - begin) * size
            block = file.read(num_bytes)
            if len(block) < num_bytes:
                num_read = begin + len(block) // size
                raise DataError(
                    f"is cut off: its header says {format_count(count, 'item')}, and it holds {num_read:,}", file=path
                )
            yield from (block[start : start + size] for start in range(0, num_bytes, size))
        if file.read(1):
            raise DataError(f"holds more than the {format_count(count, 'item')} that its header says", file=path)
