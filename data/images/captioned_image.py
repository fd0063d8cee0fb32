"""What every reader of images gives: an image that is not decoded yet, with its captions or its label."""

from dataclasses import dataclass
from pathlib import Path

from tfm.data.images.decoding import Pixels


@dataclass(frozen=True)
class CaptionedImage:
    """name: what errors and reports call it. content: a file, the bytes of one, or grey or colour values (H, W[, 3]).

    captions: one or more texts, all of this image; of classification its label alone.
    """

    name: str
    content: Path | bytes | Pixels
    captions: tuple[str, ...]
