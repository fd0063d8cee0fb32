"""Training images varied at random, again at each update."""

from dataclasses import dataclass, replace

from tfm.data.dataset.split import Split
from tfm.data.images.augmentation import Augmentation


@dataclass(frozen=True)
class ImageAugmenter:
    """Varies the images of a split for an update: a pure function of (seed, step, row)."""

    augmentation: Augmentation
    seed: int

    def __call__(self, split: Split, step: int) -> Split:
        """Return the same rows with their images varied when they are asked for."""
        if split.images is None:
            return split
        return replace(split, images=split.images.augment(self.augmentation, self.seed, step))
