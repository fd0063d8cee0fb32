"""Agreement: Krippendorff's own example, and every figure once more by counting pairs or by scikit-learn."""

import math
from itertools import permutations, product
from statistics import fmean

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from tfm.pipeline.judging.statistics.agreement import Level, alpha, cohen_kappa, kappas
from tfm.pipeline.judging.statistics.ratings import Judgment

KRIPPENDORFF_2011 = ("123321412...", "1233224125.3", ".333234225 1.".replace(" ", ""), "12332441251.")
"""Computing Krippendorff's Alpha-Reliability: four observers, twelve units, some values missing."""


def judgments(rows: tuple[str, ...]) -> list[Judgment]:
    return [
        Judgment(f"judge {who}", f"t:{unit}", "a system", float(value))
        for who, row in enumerate(rows)
        for unit, value in enumerate(row)
        if value != "."
    ]


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_krippendorffs_example(level: Level, published: float) -> None:
    found = alpha(judgments(KRIPPENDORFF_2011), level)
    assert found.value == pytest.approx(published, abs=5e-4)
    assert (found.num_units, found.num_values) == (11, 40)  # one unit has one value, which pairs with none


def alpha_by_pairs(units: list[list[float]], level: Level) -> float:
    """1 − mean disagreement within units (each value counting once) / mean disagreement of all pairs of values."""
    units = [unit for unit in units if len(unit) > 1]
    everything = [value for unit in units for value in unit]

    def disagreement(x: float, y: float) -> float:
        if level == "nominal":
            return float(x != y)
        if level == "interval":
            return (x - y) ** 2
        low, high = min(x, y), max(x, y)
        between = sum(low <= value <= high for value in everything)
        return (between - (everything.count(x) + everything.count(y)) / 2) ** 2

    within = [disagreement(x, y) / (len(unit) - 1) for unit in units for x, y in permutations(unit, 2)]
    return 1 - math.fsum(within) / len(everything) / fmean(disagreement(x, y) for x, y in permutations(everything, 2))


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_by_counting_pairs(level: Level) -> None:
    random = np.random.default_rng(3)
    units = [[float(x) for x in random.integers(1, 6, size=random.integers(1, 5))] for _ in range(30)]
    rows = [Judgment(f"j{who}", f"t:{line}", "s", value) for line, u in enumerate(units) for who, value in enumerate(u)]
    assert alpha(rows, level).value == pytest.approx(alpha_by_pairs(units, level), abs=1e-12)


def test_alpha_of_intervals_as_the_library() -> None:
    random = np.random.default_rng(7)
    table = random.integers(0, 101, size=40) + random.normal(0, 20, size=(4, 40)).round()
    table[random.random(table.shape) < 0.3] = np.nan
    rows = [
        Judgment(f"j{who}", f"t:{line}", "s", float(table[who, line]))
        for who, line in np.argwhere(~np.isnan(table)).tolist()
    ]
    expected = krippendorff.alpha(table, level_of_measurement="interval")
    assert alpha(rows, "interval").value == pytest.approx(expected, abs=1e-12)


def test_alpha_where_it_is_not_defined() -> None:
    assert alpha(judgments(("12345",)), "ordinal").value is None
    assert alpha(judgments(("333", "333")), "ordinal").value is None
    assert alpha([], "nominal").value is None
    assert alpha(judgments(("12", "12")), "ordinal").value == 1


@pytest.mark.parametrize(("level", "weights"), [("nominal", None), ("ordinal", "quadratic")])
def test_kappa_as_scikit_learn(level: Level, weights: str | None) -> None:
    random = np.random.default_rng(1)
    for _ in range(20):
        first = random.integers(1, 6, size=25)
        second = np.clip(first + random.integers(-2, 3, size=25), 1, 5)
        expected = cohen_kappa_score(first, second, weights=weights, labels=[1, 2, 3, 4, 5])
        assert cohen_kappa(first.tolist(), second.tolist(), level) == pytest.approx(expected, abs=1e-12)


def test_kappa_of_a_textbook() -> None:
    """Two readers of 50 grant proposals: both yes 20, both no 15, apart 5 and 10; kappa is 0.4."""
    counts = {(1, 1): 20, (1, 0): 5, (0, 1): 10, (0, 0): 15}
    first = [x for (x, _), count in counts.items() for _ in range(count)]
    second = [y for (_, y), count in counts.items() for _ in range(count)]
    assert cohen_kappa(first, second, "nominal") == pytest.approx(0.4, abs=1e-12)


def test_kappa_where_it_is_not_defined() -> None:
    assert cohen_kappa([3, 3], [3, 3], "ordinal") is None
    assert cohen_kappa([], [], "nominal") is None
    assert cohen_kappa([3, 3], [3, 4], "ordinal") == 0


def test_kappas_are_of_units_that_both_have() -> None:
    rows = judgments(("12345", "1234.", "....5", "....."))
    found = {each.judges: (each.value, each.num_units) for each in kappas(rows, "ordinal")}
    assert found == {("judge 0", "judge 1"): (1, 4), ("judge 0", "judge 2"): (None, 1)}
    same_place = [Judgment(judge, "t:1", system, 3.0) for judge, system in product("ab", ("x", "y"))]
    assert kappas(same_place, "nominal")[0].num_units == 2, "a unit is a segment and a system"
