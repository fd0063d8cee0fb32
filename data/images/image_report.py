"""The report on the images of a split: the numbers of converted ones, by conversion, and of refused ones."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

MAX_LISTED_FILES = 20


@dataclass
class ImageReport:
    """Counts of the images of a split.

    Args:
        conversions: the number of images that each was done to.
        first_converted: the first image of each conversion.
        num_refused: the number of images that were dropped.
        num_captions: the number of their captions.
        refused: the first errors of images that were dropped.
        num_left_out: the number of files that no table names, or that are no images.
        left_out: the first of these files.
    """

    conversions: Counter[str] = field(default_factory=Counter)
    first_converted: dict[str, str] = field(default_factory=dict)
    num_refused: int = 0
    num_captions: int = 0
    refused: list[str] = field(default_factory=list)
    num_left_out: int = 0
    left_out: list[str] = field(default_factory=list)

    def add(self, name: str, conversions: tuple[str, ...]) -> None:
        """Count an image that was decoded."""
        for conversion in dict.fromkeys(conversions):
            self.conversions[conversion] += 1
            self.first_converted.setdefault(conversion, name)

    def add_rejected(self, reason: str, num_captions: int) -> None:
        """Count an image that was dropped with its captions; the reason names it."""
        self.num_refused += 1
        self.num_captions += num_captions
        self.refused += [reason] if len(self.refused) < MAX_LISTED_FILES else []

    def add_skipped(self, names: list[str]) -> None:
        """Count files beside the images that were not read."""
        self.num_left_out += len(names)
        self.left_out += names[: MAX_LISTED_FILES - len(self.left_out)]

    def as_json(self, *, stored: int) -> dict[str, Any]:
        """Return the report for the artifact; stored: the number of images."""
        return {
            "stored": stored,
            "conversions": [
                {"what": conversion, "images": count, "first": self.first_converted[conversion]}
                for conversion, count in self.conversions.most_common()
            ],
            "refused": {"images": self.num_refused, "captions": self.num_captions, "first": self.refused},
            "left_out": {"files": self.num_left_out, "first": self.left_out},
        }
