"""Texts before which a text that comes in parts ends."""

from collections.abc import Sequence


class StopSequenceFilter:
    """The part of a text that may be shown: what could be the beginning of a stop sequence waits for what follows.

    Args:
        stops: the texts; none is empty.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops, self._withheld, self.is_reached = stops, "", False

    def add(self, part: str) -> str:
        """Add a part, and return what may be shown now."""
        text = self._withheld + part
        positions = [position for position in map(text.find, self._stops) if position >= 0]
        if positions:
            self.is_reached, self._withheld = True, ""
            return text[: min(positions)]
        num_withheld = max((self._overlap_length(text, stop) for stop in self._stops), default=0)
        released, self._withheld = text[: len(text) - num_withheld], text[len(text) - num_withheld :]
        return released

    def flush(self) -> str:
        """Return what was held back, at the end of the text."""
        text, self._withheld = self._withheld, ""
        return text

    @staticmethod
    def _overlap_length(text: str, stop: str) -> int:
        """The length of the longest beginning of a stop sequence that the text ends with."""
        longest = min(len(text), len(stop) - 1)
        return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
