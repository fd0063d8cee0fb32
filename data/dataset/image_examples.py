"""Images with captions to encoded examples, in chunks: a row for each caption, or for each image."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import numpy as np

from tfm.data.corpora.references import Row
from tfm.data.dataset.empty_texts import is_blank
from tfm.data.dataset.examples import CHUNK_ROWS, EncodedSide, ExampleChunk
from tfm.data.images.captioned_image import CaptionedImage
from tfm.data.images.decoding import Pixels
from tfm.data.images.store import ImageWriter
from tfm.tokenizer.tokenizer import Tokenizer

CHUNK_BYTES = 1 << 25


def write_pixels(writer: ImageWriter, rows: Sequence[Pixels]) -> list[int]:
    """Append the images of a chunk's rows, each once; the number of the image of each row."""
    numbers: dict[int, int] = {}
    for pixels in rows:
        if id(pixels) not in numbers:
            numbers[id(pixels)] = writer.write(pixels)
    return [numbers[id(pixels)] for pixels in rows]


def encode_images(
    images: Iterable[tuple[CaptionedImage, Pixels]], target: Tokenizer, *, multi_reference: bool
) -> Iterator[ExampleChunk]:
    """Encode the captions of images; only a chunk of images is held in memory.

    An empty caption beside others is a missing one; an image without captions has an empty one.

    Args:
        images: the images, with their pixels.
        target: the tokenizer of the captions.
        multi_reference: whether a row is an image with its further captions as references (test sets); otherwise each
            caption is a row.
    """
    first = 0
    for block in _group_images_by_bytes(images):
        names: list[str] = []
        pixels: list[Pixels] = []
        captions: list[str] = []
        extra_references: list[Row] = []
        for image, values in block:
            texts = tuple(text for text in image.captions if not is_blank(text)) or ("",)
            rows = texts[:1] if multi_reference else texts
            names += repeat(image.title, len(rows))
            pixels += repeat(values, len(rows))
            captions += rows
            extra_references.append(texts[1:])
        numbers = np.arange(first, first + len(captions))
        yield ExampleChunk(
            numbers,
            EncodedSide.from_images(names, pixels),
            EncodedSide.encode(captions, target),
            extra_references if multi_reference else None,
        )
        first += len(captions)


def _group_images_by_bytes(
    images: Iterable[tuple[CaptionedImage, Pixels]],
) -> Iterator[list[tuple[CaptionedImage, Pixels]]]:
    block: list[tuple[CaptionedImage, Pixels]] = []
    num_rows = num_bytes = 0
    for image, pixels in images:
        block.append((image, pixels))
        num_rows, num_bytes = num_rows + len(image.captions), num_bytes + pixels.nbytes
        if num_rows >= CHUNK_ROWS or num_bytes >= CHUNK_BYTES:
            yield block
            block, num_rows, num_bytes = [], 0, 0
    if block:
        yield block
