"""Alignment error rate, precision and recall of links against gold alignments (Och and Ney 2003).

    precision = |A and P| / |A|     recall = |A and S| / |S|     AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)

A: the links that are scored; S: the sure links, P: the possible ones, of which the sure ones are a part. The counts are
summed over all pairs, and divided once.
"""

from collections.abc import Collection
from dataclasses import dataclass

from tfm.pipeline.scoring.metrics.score import Score

ALIGNMENT_SIGNATURE = "links:word|stat:sum*100"


@dataclass(frozen=True)
class LinkCounts:
    """Counts of links over pairs: |A|, |S|, |A and S|, |A and P|."""

    links: int = 0
    sure: int = 0
    in_sure: int = 0
    in_possible: int = 0

    @classmethod
    def from_links(
        cls,
        links: Collection[tuple[int, int]],
        sure: Collection[tuple[int, int]],
        possible: Collection[tuple[int, int]],
    ) -> "LinkCounts":
        """Count the links of one pair.

        Args:
            links: A, to be scored.
            sure: S.
            possible: P, or those of it that are not sure.
        """
        link_set, sure_set = set(links), set(sure)
        return cls(len(link_set), len(sure_set), len(link_set & sure_set), len(link_set & (sure_set | set(possible))))

    def __add__(self, other: "LinkCounts") -> "LinkCounts":
        return LinkCounts(
            self.links + other.links,
            self.sure + other.sure,
            self.in_sure + other.in_sure,
            self.in_possible + other.in_possible,
        )

    def scores(self) -> dict[str, Score]:
        """AER, precision and recall in percent; of no links at all they are 0, and AER is 0 if none are wanted."""
        shares = {
            "aer": 1 - _ratio(self.in_sure + self.in_possible, self.links + self.sure, empty=1.0),
            "precision": _ratio(self.in_possible, self.links),
            "recall": _ratio(self.in_sure, self.sure),
        }
        return {name: Score(100 * value, ALIGNMENT_SIGNATURE) for name, value in shares.items()}


def _ratio(part: int, total: int, empty: float = 0.0) -> float:
    return part / total if total else empty
