"""The images of the rows of a split, as training and validation ask for them: some rows at a time, and varied at an
update of training."""

from dataclasses import dataclass, replace

import numpy as np

from tfm.data.arrays import Ints
from tfm.data.images.augmentation import Augmentation
from tfm.data.images.decoding import Pixels
from tfm.data.images.preparation import ImageTransform
from tfm.data.images.store import ImageStore


@dataclass(frozen=True)
class RowImages:
    """The images of some rows of a split.

    Args:
        store: the images of all rows of the split.
        preparation: turns pixels into the network's input.
        rows: the row numbers in the split; None: all.
        augmentation: their variation, drawn for each row of the split by itself.
        seed: of the variation.
        step: the number of the update, for the variation.
    """

    store: ImageStore
    preparation: ImageTransform
    rows: Ints | None = None
    augmentation: Augmentation | None = None
    seed: int = 0
    step: int = 0

    @classmethod
    def from_pixels(cls, pixels: Pixels, preparation: ImageTransform) -> "RowImages":
        """Images (rows, height, width, channels), each as a row of its own."""
        return cls(ImageStore(pixels, np.arange(len(pixels)), preparation.statistics, {}), preparation)

    def __len__(self) -> int:
        return len(self.store if self.rows is None else self.rows)

    @property
    def image_numbers(self) -> Ints:
        """(rows,) the number of the image of each row: captions of one image have the same."""
        return self.store.rows if self.rows is None else self.store.rows[self.rows]

    def take(self, rows: Ints) -> Pixels:
        """The images of some of these rows: (len(rows), height, width, channels) uint8."""
        rows = rows if self.rows is None else self.rows[rows]
        pixels = self.store.take(rows)
        return pixels if self.augmentation is None else self.augmentation(pixels, self.seed, self.step, rows)

    def select_rows(self, rows: Ints) -> "RowImages":
        """Return some of the rows."""
        return replace(self, rows=np.asarray(rows if self.rows is None else self.rows[rows]))

    def with_image_transform(self, preparation: ImageTransform) -> "RowImages":
        """Return the images with another transform, such as that of a model."""
        return replace(self, preparation=preparation)

    def augment(self, augmentation: Augmentation, seed: int, step: int) -> "RowImages":
        """Return the same rows as they are at an update: a pure function of (seed, step, row).

        Args:
            augmentation: the random variation.
            seed: of the training.
            step: the number of the update.
        """
        return replace(self, augmentation=augmentation, seed=seed, step=step)
