"""The sources of hypotheses: texts as ids, or images; some of them at a time."""

import hashlib
from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from tfm.data.images.row_images import RowImages
from tfm.tokenizer.special import EOS_ID


class TextSources:
    """Sources given as ids without end token, cut to the length that a model reads."""

    def __init__(self, ids: Sequence[Sequence[int]], max_length: int) -> None:
        self._ids, self._limit = ids, max_length - 1

    def longest_first(self) -> list[int]:
        """The rows of those with pieces."""
        nonempty_rows = (row for row, ids in enumerate(self._ids) if len(ids))
        return sorted(nonempty_rows, key=lambda row: -len(self._ids[row]))

    def source_ids(self, rows: Sequence[int]) -> list[list[int]]:
        """The ids of some rows, end token included."""
        return [[*self._ids[row][: self._limit], EOS_ID] for row in rows]

    def lengths(self, rows: Sequence[int]) -> list[int]:
        """Return the lengths of some rows, end token included, for the limits of their hypotheses."""
        return [min(len(self._ids[row]), self._limit) + 1 for row in rows]

    def sampling_key_sources(self, rows: Sequence[int]) -> list[Sequence[int]]:
        """Return numbers that identify each row, for draws."""
        return [self._ids[row][: self._limit] for row in rows]

    def load_batch(self, rows: Sequence[int], device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the ids (N,) of some rows, and the number of each one's (B,)."""
        texts = self.source_ids(rows)
        lengths = torch.tensor([len(ids) for ids in texts])
        return torch.tensor(list(chain.from_iterable(texts)), device=device), lengths


class ImageSources:
    """Images; as to the length of hypotheses each counts as long as the model allows."""

    def __init__(self, images: RowImages, max_length: int) -> None:
        self._images, self._max_length = images, max_length

    def longest_first(self) -> list[int]:
        """Return all rows: images have one length."""
        return list(range(len(self._images)))

    def lengths(self, rows: Sequence[int]) -> list[int]:
        """Return the limit of hypotheses' lengths for some rows: nothing but the model limits them."""
        return [self._max_length] * len(rows)

    def sampling_key_sources(self, rows: Sequence[int]) -> list[Sequence[int]]:
        """Return numbers that identify each image, for draws: a hash of its pixels."""
        pixels = self._images.take(np.array(rows, np.int64))
        return [list(hashlib.blake2b(each.tobytes(), digest_size=16).digest()) for each in pixels]

    def load_batch(self, rows: Sequence[int], device: torch.device) -> tuple[Tensor, Tensor]:
        """The images (B, channels, height, width) of some rows as a model reads them, and ones (B,)."""
        pixels = torch.from_numpy(self._images.take(np.array(rows, np.int64)))
        return self._images.preparation(pixels.to(device)), torch.ones(len(rows), dtype=torch.long)
