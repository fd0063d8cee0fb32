"""Files of images as the input of a model that captions or labels."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tfm.data.errors import DataError
from tfm.data.images.decoding import IMAGE_EXTENSIONS
from tfm.data.images.imagefolder import list_files
from tfm.data.images.preparation import ImageTransform
from tfm.data.images.row_images import RowImages
from tfm.pipeline.artifacts.files import name_problem

MAX_BATCH_BYTES = 1 << 26
MAX_BATCH_IMAGES = 512
"""Bytes of pixels, and images, that are in memory at a time."""


def list_image_files(paths: Sequence[Path]) -> list[Path]:
    """Return each file; of a folder the images in it and below it, in the order of their paths.

    Raises DataError for a path that is neither, and for a folder without images.
    """
    files: list[Path] = []
    for path in paths:
        _check_image_name(str(path))
        if not path.is_dir():
            if not path.exists():
                raise DataError("no such file", file=path)
            files.append(path)
            continue
        image_files = [file for _, file in list_files(path) if file.suffix.lower() in IMAGE_EXTENSIONS]
        if not image_files:
            raise DataError(f"holds no image ({', '.join(IMAGE_EXTENSIONS)})", file=path)
        files += image_files
    return files


def check_image_file(name: str) -> Path:
    """The file of an image by its name. Raises DataError if it is empty, or a name that no file can have."""
    if not name:
        raise DataError("the name of an image is empty: name a file")
    _check_image_name(name)
    return Path(name)


def _check_image_name(name: str) -> None:
    if (problem := name_problem(name)) is not None:
        raise DataError(problem, file=f"{name:.60}")


def decode_images(files: Sequence[Path], preparation: ImageTransform) -> Iterator[RowImages]:
    """The images of some files at a time, in order. Raises DataError, which names it, for a file that is none."""
    shape = preparation.shape
    batch_size = max(1, min(MAX_BATCH_IMAGES, MAX_BATCH_BYTES // (shape.height * shape.width * shape.channels)))
    for begin in range(0, len(files), batch_size):
        pixels = np.stack([preparation.decode_pixels(file) for file in files[begin : begin + batch_size]])
        yield RowImages.from_pixels(pixels, preparation)
