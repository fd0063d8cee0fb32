"""The chance that people find the same of two systems better as a metric does, by the size of its difference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

AGREEMENT_PERCENTAGES = (50, 55, 60, 65, 70, 75, 80, 85, 90, 95)
"""The columns of the paper's table 2, in percent."""
DIFFERENCE_THRESHOLDS: Mapping[str, Sequence[float]] = {
    "bleu": (0.27, 0.52, 0.78, 1.06, 1.39, 1.79, 2.34, 3.35),
    "chrf": (0.14, 0.33, 0.54, 0.76, 1.00, 1.28, 1.63, 2.12, 3.05),
    "comet22": (0.03, 0.10, 0.18, 0.26, 0.35, 0.45, 0.56, 0.71, 0.94, 1.53),
}
"""The difference of each column; BLEU never reaches 90 %, nor chrF 95 %. COMET's scores are in 0..100 here."""
TABLE_SOURCE = "Kocmi et al. 2024, Navigating the Metrics Maze, table 2"


@dataclass(frozen=True)
class Agreement:
    """A chance in percent, and whether it is only known to be below ("<") or above (">") that."""

    percent: float
    bound: str = ""

    def __str__(self) -> str:
        return f"{self.bound}{self.percent:.0f} %"


def agreement_with_people(metric: str, difference: float) -> Agreement | None:
    """The chance that people's ranking of two systems agrees with the metric's, where scores differ by so much.

    By the thresholds of Kocmi, Zouhar, Federmann and Post, "Navigating the Metrics Maze: Reconciling Score Magnitudes
    and Accuracies" (ACL 2024), table 2 (https://aclanthology.org/2024.acl-long.110): of 6,530 pairs of systems over 94
    languages, how often the two agreed. Between thresholds the line between them; beyond the last one, a bound. The
    sign of the difference does not matter. None for a metric that the table lacks: chrF++ is not its chrF.

    The paper's authors say: a difference is not 80 % sure in each setting, but as sure as another metric's of 80 %; and
    BLEU and chrF say little of systems that are not variants of one another (+2 BLEU: about 55 %). The table's systems
    are production systems; the table knows nothing of the size of the test set, which the significance tests do.
    """
    thresholds = DIFFERENCE_THRESHOLDS.get(metric)
    if thresholds is None or np.isnan(difference):
        return None
    size = abs(difference)
    if size < thresholds[0]:
        return Agreement(AGREEMENT_PERCENTAGES[0], "<")
    if size > thresholds[-1]:
        return Agreement(AGREEMENT_PERCENTAGES[len(thresholds) - 1], ">")
    return Agreement(float(np.interp(size, thresholds, AGREEMENT_PERCENTAGES[: len(thresholds)])))
