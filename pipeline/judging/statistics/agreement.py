"""How far judges agree: with each other (Krippendorff's alpha, Cohen's kappa), and with themselves.

A unit is what one system made of one segment (or a pair of systems there); a judge gives it one value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import krippendorff
import numpy as np
import numpy.typing as npt

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

    Not defined where no unit has two judges, or where all values are equal. Of intervals, whose many values would take
    the library gigabytes (units times values squared), by sums of squares, which is the same.
    """
    units: dict[Unit, list[float]] = {}
    for each in judgments:
        units.setdefault((each.segment, each.system), []).append(each.value)
    pairable = [values for values in units.values() if len(values) > 1]
    num_values = sum(map(len, pairable))
    domain = sorted({value for values in pairable for value in values})
    if len(domain) < 2:
        return Alpha(None, level, len(pairable), num_values)
    if level == "interval":
        return Alpha(_of_squares(pairable), level, len(pairable), num_values)
    counts = np.array([[values.count(each) for each in domain] for values in pairable])
    found = krippendorff.alpha(value_counts=counts, value_domain=domain, level_of_measurement=level)
    return Alpha(float(found), level, len(pairable), num_values)


def _of_squares(units: Sequence[Sequence[float]]) -> float:
    """Alpha of intervals: 1 − (n − 1) / (n S) Σ_u m_u S_u / (m_u − 1), S_u and S being sums of squares about means.

    The m values of a unit have Σ_ij (x_i − x_j)² = 2 m S_u, and all n values 2 n S.
    """
    everything = np.concatenate([np.asarray(values, dtype=np.float64) for values in units])
    num, whole = everything.size, float(((everything - everything.mean()) ** 2).sum())
    within = sum(len(values) * float(np.var(values)) * len(values) / (len(values) - 1) for values in units)
    return 1 - (num - 1) / (num * whole) * within


def cohen_kappa(first: Sequence[float], second: Sequence[float], level: Level) -> float | None:
    """Cohen's kappa = 1 − observed / expected disagreement of two judges on the same units (1960, 1968).

    Two values disagree by 1 if they differ (nominal), else by their squared difference (quadratic weights). Expected:
    each value of one judge with each of the other. None where both judges give one and the same value throughout.
    """
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if not x.size:
        return None
    a, num_a = np.unique(x, return_counts=True)
    b, num_b = np.unique(y, return_counts=True)
    expected = float(num_a @ _disagreement(np.subtract.outer(a, b), level) @ num_b) / x.size**2
    return None if expected == 0 else 1 - float(_disagreement(x - y, level).mean()) / expected


def _disagreement(differences: npt.NDArray[np.float64], level: Level) -> npt.NDArray[np.float64]:
    return (differences != 0).astype(np.float64) if level == "nominal" else differences**2


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
