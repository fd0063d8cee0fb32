"""How far judges agree: with each other (Krippendorff's alpha, Cohen's kappa), and with themselves.

A unit is what one system made of one segment (or a pair of systems there); a judge gives it one value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import krippendorff
import numpy as np

from tfm.pipeline.judging.statistics.ratings import Judgment

Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
"""What the values are: names, ranks, or numbers whose differences count."""
Unit: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's alpha over the units that two judges or more have; None where it is not defined."""

    value: float | None
    level: Level
    num_units: int
    num_values: int


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa of two judges over the units that both have; None where it is not defined."""

    judges: tuple[str, str]
    value: float | None
    num_units: int


def by_judge(judgments: Sequence[Judgment]) -> dict[str, dict[Unit, float]]:
    """The value that each judge gave to each unit."""
    table: dict[str, dict[Unit, float]] = {}
    for each in judgments:
        table.setdefault(each.judge, {})[each.segment, each.system] = each.value
    return table


def alpha(judgments: Sequence[Judgment], level: Level) -> Alpha:
    """Krippendorff's alpha = 1 − observed / expected disagreement (2011), by the library `krippendorff`.

    Not defined where no unit has two judges, or where all values are equal. Memory: units times values squared.
    """
    units: dict[Unit, list[float]] = {}
    for each in judgments:
        units.setdefault((each.segment, each.system), []).append(each.value)
    pairable = [values for values in units.values() if len(values) > 1]
    num_values = sum(map(len, pairable))
    domain = sorted({value for values in pairable for value in values})
    if len(domain) < 2:
        return Alpha(None, level, len(pairable), num_values)
    counts = np.array([[values.count(each) for each in domain] for values in pairable])
    found = krippendorff.alpha(value_counts=counts, value_domain=domain, level_of_measurement=level)
    return Alpha(float(found), level, len(pairable), num_values)


def cohen_kappa(first: Sequence[float], second: Sequence[float], level: Level) -> float | None:
    """Cohen's kappa = 1 − observed / expected disagreement of two judges on the same units (1960, 1968).

    Two values disagree by 1 if they differ (nominal), else by their squared difference (quadratic weights). Expected:
    each value of one judge with each of the other. None where both judges give one and the same value throughout.
    """
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if not x.size:
        return None
    each = np.subtract.outer(x, y)
    disagree = (each != 0).astype(float) if level == "nominal" else each**2
    expected = float(disagree.mean())
    return None if expected == 0 else 1 - float(np.diagonal(disagree).mean()) / expected


def kappas(judgments: Sequence[Judgment], level: Level) -> list[Kappa]:
    """Cohen's kappa of every two judges that have a unit in common."""
    found = []
    table = by_judge(judgments)
    for one, other in combinations(table, 2):
        both = [unit for unit in table[one] if unit in table[other]]
        if both:
            first, second = [table[one][unit] for unit in both], [table[other][unit] for unit in both]
            found.append(Kappa((one, other), cohen_kappa(first, second, level), len(both)))
    return found
