"""The files of one split, filled chunk by chunk: rows, images where sources are images, and further references."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tfm.data.corpora.references import Row, write_further_references
from tfm.data.dataset.examples import ExampleChunk
from tfm.data.dataset.image_examples import write_pixels
from tfm.data.dataset.store import IMAGES_FOLDER, SplitWriter, write_split
from tfm.data.image_config import ImagesConfig
from tfm.data.images.decoding import ImageSize
from tfm.data.images.store import ImageWriter, write_images


class SplitFilesWriter:
    """Files of a split; see `write_split_files`. images: the writer of the images, where there are some."""

    def __init__(self, rows: SplitWriter, images: ImageWriter | None) -> None:
        self.images = images
        self.extra_references: list[Row] = []
        self._rows = rows
        self._image_of_row: list[int] = []

    def write(self, chunk: ExampleChunk, *, weight: float | None) -> None:
        """Append the rows of a chunk: with their weight, as training data, or, without one, with their texts."""
        extra = [chunk.source.texts, chunk.target.texts] if weight is None else [np.full(len(chunk), weight)]
        source, target = ((side.ids, side.lengths) for side in (chunk.source, chunk.target))
        self._rows.write(source, target, *extra, words=chunk.source.words)
        self.extra_references += chunk.extra_references or ()
        if self.images is not None:
            self._image_of_row += write_pixels(self.images, chunk.source.pixels or ())

    @property
    def num_rejected_captions(self) -> int:
        """The number of captions that were dropped so far with images that were refused."""
        return 0 if self.images is None else self.images.report.num_captions

    def image_report(self) -> dict[str, Any] | None:
        """The report on the images; None if there are none."""
        return None if self.images is None else self.images.report.as_json(stored=self.images.num_images)

    def write_image_rows(self) -> None:
        """Write the image of each row."""
        if self.images is not None:
            self.images.rows = np.array(self._image_of_row, np.int64)


@contextmanager
def write_split_files(
    folder: Path, *, training: bool, words: bool, images: ImagesConfig | None
) -> Iterator[SplitFilesWriter]:
    """Write one split into a folder without holding it in memory.

    Args:
        folder: to write into.
        training: whether rows carry their weight, as training data, or their texts.
        words: whether rows carry the number of pieces of each word of the source.
        images: settings of images; None if sources are texts.
    """
    with ExitStack() as stack:
        rows = stack.enter_context(write_split(folder, texts=not training, words=words))
        pictures = None
        if images is not None:
            shape = ImageSize(images.height, images.width, 3 if images.colour else 1)
            pictures = stack.enter_context(write_images(folder / IMAGES_FOLDER, shape))
        files = SplitFilesWriter(rows, pictures)
        yield files
        files.write_image_rows()
    write_further_references(folder, files.extra_references)
