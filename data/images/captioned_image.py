"""The item that every reader of images gives: an image that is not decoded yet, with its captions or its label."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import cast

import numpy as np

from tfm.data.images.decoding import Pixels
from tfm.data.safe_files import open_regular_file, stable_file_signature


@dataclass(frozen=True)
class CaptionedImage:
    """An image that is not decoded yet, with its captions or its label.

    Args:
        name: of the image in errors.
        content: a file, the bytes of one, or gray or color values (H, W[, 3]).
        captions: one or more texts, all of this image; of classification its label alone.
        title: of the image within its corpus, wherever that lies: its name in datasets and reports.
    """

    name: str
    content: Path | bytes | Pixels
    captions: tuple[str, ...]
    title: str = ""

    @property
    def content_hash(self) -> str:
        """sha256, in hex, of the bytes of the image: the same for copies of it. Raises OSError as reading does."""
        if isinstance(self.content, Path):
            signature = stable_file_signature(self.content.stat())
            return _hash_file(self.content) if signature is None else _hash_file_cached(self.content, signature)
        if isinstance(self.content, bytes):
            return hashlib.sha256(self.content).hexdigest()
        shape = repr(self.content.shape).encode()
        return hashlib.sha256(shape + np.ascontiguousarray(self.content).tobytes()).hexdigest()


@lru_cache(maxsize=1 << 18)
def _hash_file_cached(file: Path, file_signature: tuple[int, ...]) -> str:
    """sha256, in hex, of a file; cached, as several splits and stages ask for it."""
    return _hash_file(file)


def _hash_file(file: Path) -> str:
    with open_regular_file(file) as stream:
        return hashlib.file_digest(cast(BufferedReader, stream), "sha256").hexdigest()
