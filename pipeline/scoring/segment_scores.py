"""Scores segment by segment: the input of tests of differences, and the terms of a corpus' score."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEGMENTS_FILE = "segments.jsonl"


@dataclass(frozen=True)
class Likelihoods:
    """Probabilities of the references of each of n segments under a model; several references of one are added up.

    The segments of a language model are lines, whose line breaks are words too.

    Args:
        log_probs: (n,) natural logarithms, NaN where no reference of the segment has a probability.
        pieces: (n,) the numbers of predictions (pieces and end tokens) of those references.
        words: (n,) the numbers of words of those references.
    """

    log_probs: "NDArray[np.float64]"
    pieces: "NDArray[np.int64]"
    words: "NDArray[np.int64]"

    @property
    def total(self) -> float:
        """The log probability of the corpus, which does not depend on the order of its segments."""
        return math.fsum(each for each in self.log_probs.tolist() if not math.isnan(each))


@dataclass(frozen=True)
class SegmentScores:
    """Scores of the segments of a test set.

    Args:
        split: the name of the test set.
        count: the number of segments (n).
        likelihoods: of the references.
        external: the numbers of external metrics (n,), by their names.
    """

    split: str
    count: int
    likelihoods: Likelihoods | None = None
    external: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row a segment, as segments.jsonl has it; null if there is no log probability."""
        for row in range(self.count):
            external = {name: float(numbers[row]) for name, numbers in self.external.items()}
            yield {"split": self.split, "line": row + 1, **self._row_likelihood(row), "external": external}

    def _row_likelihood(self, row: int) -> dict[str, float | int | None]:
        likelihoods = self.likelihoods
        if likelihoods is None or math.isnan(likelihoods.log_probs[row]):
            return {"log_prob": None, "pieces": None, "words": None}
        numbers = float(likelihoods.log_probs[row]), int(likelihoods.pieces[row]), int(likelihoods.words[row])
        return dict(zip(("log_prob", "pieces", "words"), numbers, strict=True))


def write_segments(file: Path, tests: Iterable[SegmentScores]) -> None:
    """Write the rows of all test sets, one JSON object a line."""
    with open(file, "w", encoding="utf-8", newline="\n") as lines:
        lines.writelines(
            json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for test in tests for row in test.rows()
        )
