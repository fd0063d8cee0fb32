"""Agreement: Krippendorff's own example, and every figure once more by counting pairs or by scikit-learn."""

import math
from itertools import permutations, product
from statistics import fmean

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from tfm.pipeline.judging.statistics.agreement import (
    MeasurementLevel,
    bootstrap_alphas,
    bootstrap_kappas,
    cohen_kappa,
    estimate_alpha,
    pairwise_kappas,
)
from tfm.pipeline.judging.statistics.ratings import Judgment, bootstrap_counts, expanded_interval_percentiles

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
def test_alpha_of_krippendorffs_example(level: MeasurementLevel, published: float) -> None:
    found = estimate_alpha(judgments(KRIPPENDORFF_2011), level)
    assert found.value == pytest.approx(published, abs=5e-4)
    assert (found.num_units, found.num_values) == (11, 40)  # one unit has one value, which pairs with none


def alpha_by_pairs(units: list[list[float]], level: MeasurementLevel) -> float:
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
def test_alpha_by_counting_pairs(level: MeasurementLevel) -> None:
    random = np.random.default_rng(3)
    units = [[float(x) for x in random.integers(1, 6, size=random.integers(1, 5))] for _ in range(30)]
    rows = [Judgment(f"j{who}", f"t:{line}", "s", value) for line, u in enumerate(units) for who, value in enumerate(u)]
    assert estimate_alpha(rows, level).value == pytest.approx(alpha_by_pairs(units, level), abs=1e-12)


def test_alpha_of_intervals_as_the_library() -> None:
    random = np.random.default_rng(7)
    table = random.integers(0, 101, size=40) + random.normal(0, 20, size=(4, 40)).round()
    table[random.random(table.shape) < 0.3] = np.nan
    rows = [
        Judgment(f"j{who}", f"t:{line}", "s", float(table[who, line]))
        for who, line in np.argwhere(~np.isnan(table)).tolist()
    ]
    expected = krippendorff.alpha(table, level_of_measurement="interval")
    assert estimate_alpha(rows, "interval").value == pytest.approx(expected, abs=1e-12)


def test_alpha_where_it_is_not_defined() -> None:
    assert estimate_alpha(judgments(("12345",)), "ordinal").value is None
    assert estimate_alpha(judgments(("333", "333")), "ordinal").value is None
    assert estimate_alpha([], "nominal").value is None
    assert estimate_alpha(judgments(("12", "12")), "ordinal").value == 1


@pytest.mark.parametrize(("level", "weights"), [("nominal", None), ("ordinal", "quadratic")])
def test_kappa_as_scikit_learn(level: MeasurementLevel, weights: str | None) -> None:
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
    pairs, mean = pairwise_kappas(rows, "ordinal")
    found = {each.judges: (each.value, each.num_units) for each in pairs}
    assert found == {("judge 0", "judge 1"): (1, 4), ("judge 0", "judge 2"): (None, 1)}
    assert mean.value == 1
    same_place = [Judgment(judge, "t:1", system, 3.0) for judge, system in product("ab", ("x", "y"))]
    assert pairwise_kappas(same_place, "nominal")[0][0].num_units == 2, "a unit is a segment and a system"


LEVELS: tuple[MeasurementLevel, ...] = ("nominal", "ordinal", "interval")


@pytest.mark.parametrize("level", LEVELS)
def test_alpha_and_kappa_of_a_draw_are_those_of_the_units_written_out(level: MeasurementLevel) -> None:
    """A draw that holds a unit twice is the data with that unit twice."""
    random = np.random.default_rng(5)
    units = [[float(x) for x in random.integers(1, 6, size=random.integers(2, 5))] for _ in range(12)]
    first, second = ([unit[side] for unit in units] for side in (0, 1))
    counts = random.multinomial(12, np.full(12, 1 / 12), size=20).astype(np.float64)
    alphas, kappas_ = bootstrap_alphas(counts, units, level), bootstrap_kappas(counts, first, second, level)
    for draw, one, other in zip(counts.astype(int), alphas, kappas_, strict=True):
        drawn = [unit for unit, times in zip(units, draw, strict=True) for _ in range(times)]
        assert one == pytest.approx(alpha_by_pairs(drawn, level), abs=1e-12)
        expected = cohen_kappa([unit[0] for unit in drawn], [unit[1] for unit in drawn], level)
        assert other == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("level", LEVELS)
def test_a_draw_of_equal_values_has_neither_alpha_nor_kappa(level: MeasurementLevel) -> None:
    one, other = [1e3 + 0.1, 3.0], [1e3 + 0.1, 4.0]
    counts = np.array([[7.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    units = [list(unit) for unit in zip(one, other, strict=True)]
    assert np.isnan(bootstrap_alphas(counts[:2], units, level)).tolist() == [True, False]
    assert np.isnan(bootstrap_kappas(counts, one, other, level)).tolist() == [True, False, True]


def test_intervals_are_percentiles_over_draws_of_whole_segments() -> None:
    """Two systems a segment, three judges: every draw once more, written out, by the library and by `cohen_kappa`."""
    random = np.random.default_rng(11)
    truth = random.integers(1, 6, size=(100, 2))
    values = np.clip(truth + random.integers(-1, 2, size=(3, 100, 2)), 1, 5).astype(float)
    rows = [
        Judgment("abc"[judge], f"t:{line}", "xy"[system], float(values[judge, line, system]))
        for judge, line, system in np.ndindex(values.shape)
    ]
    found, (pairs, mean) = estimate_alpha(rows, "ordinal"), pairwise_kappas(rows, "ordinal")
    alphas, by_pair = [], []
    for draw in bootstrap_counts(100, 1000):
        again = np.repeat(values, draw, axis=1).reshape(3, -1)
        alphas.append(krippendorff.alpha(again, level_of_measurement="ordinal"))
        by_pair.append(
            [cohen_kappa(again[i].tolist(), again[j].tolist(), "ordinal") for i, j in ((0, 1), (0, 2), (1, 2))]
        )
    of_kappas = np.array(by_pair, dtype=np.float64)
    for each, draws in ((found, np.array(alphas)), (pairs[1], of_kappas[:, 1]), (mean, of_kappas.mean(1))):
        assert each.low is not None
        assert each.value is not None
        assert each.high is not None
        assert (each.low, each.high) == pytest.approx(
            tuple(np.percentile(draws, expanded_interval_percentiles(100))), abs=1e-12
        )
        assert each.low < each.value < each.high


def test_one_segment_has_no_interval() -> None:
    rows = [Judgment(judge, "t:1", system, value) for judge in "ab" for system, value in (("x", 1.0), ("y", 2.0))]
    found, (pairs, mean) = estimate_alpha(rows, "nominal"), pairwise_kappas(rows, "nominal")
    assert [(each.value, each.low, each.high) for each in (found, pairs[0], mean)] == [(1, None, None)] * 3
    assert pairwise_kappas([], "nominal")[1].value is None


def test_where_judges_differ_seldom_there_is_no_interval() -> None:
    for num_apart, is_given in ((9, False), (10, True)):
        first = [float(line % 3) for line in range(100)]
        second = [value + (line < num_apart) for line, value in enumerate(first)]
        rows = [Judgment(j, f"t:{i}", "s", v) for j, side in (("a", first), ("b", second)) for i, v in enumerate(side)]
        found, (pairs, mean) = estimate_alpha(rows, "nominal"), pairwise_kappas(rows, "nominal")
        for each in (found, pairs[0], mean):
            assert (each.low is not None) == is_given
            assert each.no_interval_reason == (None if is_given else "the judges differ in 9 segments, and it needs 10")
    rows = [Judgment(j, f"t:{i}", "s", float(i < 12 + (j == "a"))) for j in "ab" for i in range(99)]
    assert estimate_alpha(rows, "nominal").no_interval_reason == "99 segments, and it needs 100"


def covered(level: MeasurementLevel, num_panels: int, seed: int) -> tuple[float, float]:
    """Of simulated panels the share, in percent, whose intervals hold alpha and kappa of all texts there could be.

    100 texts, four judges. Numbers: truth + error, both normal; names: the truth, or in 1 of 6 cases the other. Both
    figures are then 1 - (disagreement of two judges) / (disagreement of two values), in closed form.
    """
    random, in_alpha, in_kappa = np.random.default_rng(seed), 0, 0
    for _ in range(num_panels):
        if level == "nominal":
            wrong, share = 1 / 6, 0.4
            values = (random.random(100) < share) ^ (random.random((4, 100)) < wrong)
            given = share * (1 - wrong) + (1 - share) * wrong
            wanted = 1 - wrong * (1 - wrong) / (given * (1 - given))
        else:
            values = random.normal(0, 1, 100) + random.normal(0, 0.8, (4, 100))
            wanted = 1 / (1 + 0.8**2)
        rows = [Judgment(str(j), f"t:{i}", "s", float(values[j, i])) for j, i in np.ndindex(4, 100)]
        of_alpha, (_, of_kappas) = estimate_alpha(rows, level), pairwise_kappas(rows, level)
        in_alpha += of_alpha.low <= wanted <= of_alpha.high  # type: ignore[operator]
        in_kappa += of_kappas.low <= wanted <= of_kappas.high  # type: ignore[operator]
    return 100 * in_alpha / num_panels, 100 * in_kappa / num_panels


@pytest.mark.slow
@pytest.mark.parametrize("level", ["nominal", "interval"])
def test_intervals_hold_the_agreement_of_all_texts_about_as_often_as_they_say(level: MeasurementLevel) -> None:
    for rate in covered(level, num_panels=1000, seed=2):
        assert 92.5 <= rate <= 97


@pytest.mark.parametrize("level", ["nominal", "interval"])
def test_intervals_hold_the_agreement_of_all_texts_mostly(level: MeasurementLevel) -> None:
    for rate in covered(level, num_panels=8, seed=3):
        assert rate >= 75
