"""Sources that are longer than a model reads: counted, and told of."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass
class Truncated:
    """Counts lines, those that were longer than the model reads, and the words that got no tag by it."""

    lines: int = 0
    cut: int = 0
    words: int = 0

    def count(self, are_too_long: Iterable[bool]) -> None:
        """Count some lines, of which it is known whether they are too long."""
        each = list(are_too_long)
        self.lines += len(each)
        self.cut += sum(each)

    def warning(self, limit: int) -> str | None:
        """What to say of them, if any were cut to `limit` pieces."""
        if not self.cut:
            return None
        were = "was" if self.cut == 1 else "were"
        untagged = f": {self.words} words have no tag, and count as wrong" if self.words else ""
        return (
            f"{self.cut} of {self.lines} sources {were} longer than the {limit} pieces that the model reads, and "
            f"{were} cut{untagged}"
        )
