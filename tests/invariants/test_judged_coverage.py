"""An interval of what judges said holds the true figure in 93 to 97 of 100 panels, or it is not given.

Panels of just as many segments as an interval needs, and of the hardest kinds that people give: most marks are the
best one, most texts have no error, one system wins nearly always, judges nearly always agree.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from tfm.pipeline.judging.statistics.agreement import estimate_alpha, pairwise_kappas
from tfm.pipeline.judging.statistics.correlation import PEARSON, correlate_units
from tfm.pipeline.judging.statistics.differences import welch_interval
from tfm.pipeline.judging.statistics.minimums import (
    MIN_DIFFERENCES,
    MIN_ERROR_SEGMENTS,
    MIN_SEGMENTS,
    MIN_VALUES_OFF_MODE,
)
from tfm.pipeline.judging.statistics.preferences import Preference, bradley_terry_strengths
from tfm.pipeline.judging.statistics.ratings import Judgment, estimate_mean

Floats = npt.NDArray[np.float64]
Ends = tuple[float | None, float | None]
Panel = Callable[[np.random.Generator], tuple[Ends, float]]
"""The interval of a panel, and the figure of all texts there could be."""
MARKS, ERRORS = np.arange(1.0, 6.0), np.array([0, 1, 2, 3, 5, 6, 10.0])
BEST = {share: np.array([*(1 - share) * np.array([0.1, 0.15, 0.25, 0.5]), share]) for share in (0.5, 0.7, 0.8)}
"""The shares of the marks from 1 to 5 where so many are the best one."""


def weights(without: float) -> Floats:
    """The shares of the weights of errors where so many texts have none."""
    return np.array([without, *(1 - without) * np.array([0.4, 0.15, 0.1, 0.2, 0.1, 0.05])])


def mean_panel(values: Floats, shares: Floats, num: int) -> Panel:
    def drawn(rng: np.random.Generator) -> tuple[Ends, float]:
        found = estimate_mean(rng.choice(values, p=shares, size=num).tolist(), num)
        return (found.low, found.high), float(values @ shares)

    return drawn


def paired_panel(share: float, better: float, values: Floats, shares: Floats) -> Panel:
    """Two systems apart in a share of the segments, in favor of the first with a chance."""
    true = share * (2 * better - 1) * float(values @ shares)

    def drawn(rng: np.random.Generator) -> tuple[Ends, float]:
        sizes = rng.choice(values, p=shares, size=MIN_DIFFERENCES) * (rng.random(MIN_DIFFERENCES) < share)
        apart = sizes * np.where(rng.random(MIN_DIFFERENCES) < better, 1, -1)
        found = estimate_mean(apart.tolist(), MIN_DIFFERENCES)
        return (found.low, found.high), true

    return drawn


def unpaired_panel(values: Floats, shares: tuple[Floats, Floats], nums: tuple[int, int]) -> Panel:
    def drawn(rng: np.random.Generator) -> tuple[Ends, float]:
        first, second = (rng.choice(values, p=p, size=n).tolist() for p, n in zip(shares, nums, strict=True))
        _, low, high = welch_interval(first, second, min(nums))
        return (low, high), float(values @ shares[0] - values @ shares[1])

    return drawn


def strength_panel(odds: float) -> Panel:
    def drawn(rng: np.random.Generator) -> tuple[Ends, float]:
        won = rng.random(MIN_SEGMENTS) < odds / (1 + odds)
        rows = [Preference("a", str(line), "x", "y", float(each)) for line, each in enumerate(won)]
        found = next(each for each in bradley_terry_strengths(rows, ["x", "y"]) if each.system == "x")
        return (found.low, found.high), float(np.log(odds)) / 2

    return drawn


def agreement_panel(wrong: float, *, kappa: bool) -> Panel:
    """Two judges of two names: each gives the true one, or by mistake the other one."""
    share = 0.4
    given = share * (1 - wrong) + (1 - share) * wrong
    true = 1 - wrong * (1 - wrong) / (given * (1 - given))

    def drawn(rng: np.random.Generator) -> tuple[Ends, float]:
        values = (rng.random(MIN_SEGMENTS) < share) ^ (rng.random((2, MIN_SEGMENTS)) < wrong)
        rows = [Judgment(str(j), str(i), "s", float(values[j, i])) for j, i in np.ndindex(values.shape)]
        found = pairwise_kappas(rows, "nominal")[1] if kappa else estimate_alpha(rows, "nominal")
        return (found.low, found.high), true

    return drawn


def correlation_panel(r: float) -> Panel:
    def drawn(rng: np.random.Generator) -> tuple[Ends, float]:
        x = rng.normal(0, 1, MIN_SEGMENTS)
        y = r * x + np.sqrt(1 - r * r) * rng.normal(0, 1, MIN_SEGMENTS)
        sides = [{(str(line), "s"): float(value) for line, value in enumerate(side)} for side in (x, y)]
        found = correlate_units(PEARSON, *sides)
        return (found.low, found.high), r

    return drawn


BY_FORMULA: dict[str, Panel] = {
    **{f"marks, {p} the best": mean_panel(MARKS, shares, MIN_SEGMENTS) for p, shares in BEST.items()},
    **{f"errors, {p} without": mean_panel(ERRORS, weights(p), MIN_ERROR_SEGMENTS) for p in (0.3, 0.7, 0.8)},
    "paired, half apart": paired_panel(0.5, 0.7, MARKS, BEST[0.5][::-1]),
    "paired, most apart": paired_panel(0.9, 0.8, MARKS, BEST[0.5][::-1]),
    "paired errors of one side": paired_panel(0.8, 1.0, ERRORS, weights(0)),
    "paired, few apart": paired_panel(0.2, 0.5, MARKS, BEST[0.7][::-1]),
    "unpaired, marks": unpaired_panel(MARKS, (BEST[0.8], BEST[0.5]), (MIN_SEGMENTS, 1000)),
    "unpaired, errors": unpaired_panel(ERRORS, (weights(0.7), weights(0.5)), (MIN_ERROR_SEGMENTS, 1000)),
}
BY_DRAWS: dict[str, Panel] = {
    **{f"odds {odds}": strength_panel(odds) for odds in (1, 3, 5, 11)},
    **{f"alpha, mistakes {p}": agreement_panel(p, kappa=False) for p in (0.1, 0.2)},
    "kappa": agreement_panel(0.15, kappa=True),
    **{f"r {r}": correlation_panel(r) for r in (0.0, 0.8)},
}


def check(panel: Panel, num: int) -> None:
    """93 to 97 % of the intervals hold the figure, and where fewer are given no more than 7 % of panels are missed."""
    rng = np.random.default_rng(17)
    given, missed = 0, 0
    for _ in range(num):
        (low, high), true = panel(rng)
        if low is not None and high is not None:
            given += 1
            missed += not low <= true <= high
    error = 2.5 * np.sqrt(0.07 * 0.93 / num)
    assert missed / num <= 0.07 + error
    if given >= 0.95 * num:
        assert 0.03 - error <= missed / given


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", BY_FORMULA)
def test_intervals_by_formula_hold_the_figure(kind: str) -> None:
    check(BY_FORMULA[kind], 1500)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BY_FORMULA)
def test_intervals_by_formula_hold_the_figure_of_many_panels(kind: str) -> None:
    check(BY_FORMULA[kind], 20_000)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", BY_DRAWS)
def test_intervals_by_draws_hold_the_figure(kind: str) -> None:
    check(BY_DRAWS[kind], 100)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BY_DRAWS)
def test_intervals_by_draws_hold_the_figure_of_many_panels(kind: str) -> None:
    check(BY_DRAWS[kind], 3000)


@pytest.mark.parametrize(
    "panel",
    [
        paired_panel(0.2, 0.5, MARKS, BEST[0.7][::-1]),
        paired_panel((MIN_VALUES_OFF_MODE - 6) / MIN_DIFFERENCES, 1.0, MARKS, BEST[0.5][::-1]),
        strength_panel(50),
        mean_panel(MARKS, np.array([0, 0, 0, 0.03, 0.97]), MIN_SEGMENTS),
    ],
)
def test_where_nearly_all_is_alike_hardly_any_is_given(panel: Panel) -> None:
    rng = np.random.default_rng(3)
    assert sum(panel(rng)[0] != (None, None) for _ in range(60)) <= 2
