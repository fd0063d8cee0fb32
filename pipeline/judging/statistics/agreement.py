"""How far judges agree with each other: Krippendorff's alpha, Cohen's kappa.

A unit is what one system made of one segment (or a pair of systems there); a judge gives it one value. Intervals are
percentiles over draws of whole segments (Efron 1979); expected disagreement is that of the draw.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, combinations, pairwise
from statistics import fmean
from typing import Literal, TypeAlias

import krippendorff
import numpy as np
import numpy.typing as npt

from tfm.pipeline.judging.statistics.minimums import TOO_AGREED_REASON, TOO_ALIKE_REASON, differ_from_mode
from tfm.pipeline.judging.statistics.ratings import Estimate, JudgedUnit, Judgment, estimate_interval

MeasurementLevel: TypeAlias = Literal["nominal", "ordinal", "interval"]
"""The level of measurement of values: names, ranks, or numbers whose differences count."""
Array: TypeAlias = npt.NDArray[np.float64]
_MIN_SUM_OF_SQUARES = 1e-12  # of a sum of squares: the rounding of values that do not vary


@dataclass(frozen=True)
class KrippendorffAlpha:
    """Krippendorff's alpha over the units that two judges or more have; None if it is not defined."""

    value: float | None
    low: float | None
    high: float | None
    level: MeasurementLevel
    num_units: int
    num_values: int
    no_interval_reason: str | None = None


@dataclass(frozen=True)
class CohenKappa:
    """Cohen's kappa of two judges over the units that both have; None if it is not defined."""

    judges: tuple[str, str]
    value: float | None
    low: float | None
    high: float | None
    num_units: int
    no_interval_reason: str | None = None


def values_by_judge(judgments: Sequence[Judgment]) -> dict[str, dict[JudgedUnit, float]]:
    """The value that each judge gave to each unit."""
    table: dict[str, dict[JudgedUnit, float]] = {}
    for judgment in judgments:
        table.setdefault(judgment.judge, {})[judgment.segment, judgment.system] = judgment.value
    return table


def estimate_alpha(judgments: Sequence[Judgment], level: MeasurementLevel) -> KrippendorffAlpha:
    """Krippendorff's alpha = 1 − observed / expected disagreement (2011), by the library `krippendorff`.

    Not defined where no unit has two judges, or where all values are equal. Intervals, whose many values would take the
    library gigabytes (units times values squared), are computed by sums of squares, with the same result.
    """
    units: dict[JudgedUnit, list[float]] = {}
    for judgment in judgments:
        units.setdefault((judgment.segment, judgment.system), []).append(judgment.value)
    pairable = {unit: values for unit, values in units.items() if len(values) > 1}
    values = list(pairable.values())
    resample = partial(bootstrap_alphas, units=values, level=level)
    estimate = estimate_interval(
        _krippendorff_alpha(values, level), list(pairable), resample, _disagreement_masks(values)
    )
    num_values = sum(map(len, values))
    return KrippendorffAlpha(
        estimate.value, estimate.low, estimate.high, level, len(values), num_values, estimate.no_interval_reason
    )


def _disagreement_masks(units: Sequence[Sequence[float]]) -> dict[str, list[list[bool]]]:
    """Which units have another value than the commonest of all, and where judges differ."""
    flags = differ_from_mode([value for values in units for value in values])
    ends = list(accumulate(map(len, units), initial=0))
    unit_flags = [any(flags[start:end]) for start, end in pairwise(ends)]
    return {TOO_ALIKE_REASON: [unit_flags], TOO_AGREED_REASON: [[len(set(values)) > 1 for values in units]]}


def _krippendorff_alpha(units: Sequence[Sequence[float]], level: MeasurementLevel) -> float | None:
    domain = sorted({value for values in units for value in values})
    if len(domain) < 2:
        return None
    if level == "interval":
        return _interval_alpha(units)
    counts = np.array([[values.count(each) for each in domain] for values in units])
    return float(krippendorff.alpha(value_counts=counts, value_domain=domain, level_of_measurement=level))


def _interval_alpha(units: Sequence[Sequence[float]]) -> float:
    """Alpha of intervals: 1 − (n − 1) / (n S) Σ_u m_u S_u / (m_u − 1), S_u and S being sums of squares about means.

    The m values of a unit have Σ_ij (x_i − x_j)² = 2 m S_u, and all n values 2 n S.
    """
    all_values = np.concatenate([np.asarray(values, dtype=np.float64) for values in units])
    num, total_squares = all_values.size, float(((all_values - all_values.mean()) ** 2).sum())
    weighted_squares = sum(len(values) * float(np.var(values)) * len(values) / (len(values) - 1) for values in units)
    return 1 - (num - 1) / (num * total_squares) * weighted_squares


def bootstrap_alphas(counts: Array, units: Sequence[Sequence[float]], level: MeasurementLevel) -> Array:
    """Alpha (D,) of draws that hold each of U units, all of two values or more, as often as `counts` (D, U) says.

    nan: not defined. With n_uc values c in unit u of m_u, n_c in all and n of them all:
    1 − (n − 1) Σ_u Σ_ck δ_ck n_uc n_uk / (m_u − 1) / Σ_ck δ_ck n_c n_k.
    """
    if level == "interval":
        return _bootstrap_interval_alphas(counts, units)
    domain = sorted({value for values in units for value in values})
    table = np.array([[list(values).count(each) for each in domain] for values in units], dtype=np.float64)
    pairs = table[:, :, None] * table[:, None, :] / (table.sum(1) - 1)[:, None, None]
    coincidences = np.tensordot(counts, pairs, 1)  # (D, V, V); δ_cc is 0
    totals = counts @ table
    if level == "nominal":
        delta = np.broadcast_to(1 - np.eye(len(domain)), coincidences.shape)
    else:  # the values between two, themselves by half, squared
        ranks = totals.cumsum(1) - totals / 2
        delta = (ranks[:, :, None] - ranks[:, None, :]) ** 2
    expected = np.einsum("dck,dc,dk->d", delta, totals, totals)
    return 1 - _safe_divide((totals.sum(1) - 1) * (delta * coincidences).sum((1, 2)), expected)


def _bootstrap_interval_alphas(counts: Array, units: Sequence[Sequence[float]]) -> Array:
    """As `_interval_alpha`, of draws."""
    middle = float(np.mean([value for values in units for value in values]))
    rows = [np.asarray(values, dtype=np.float64) - middle for values in units]
    per_unit = [(x.size, x.sum(), x @ x, ((x - x.mean()) ** 2).sum() * x.size / (x.size - 1)) for x in rows]
    num, sums, squares, weighted_squares = (counts @ np.array(per_unit)).T
    total_squares = squares - sums**2 / num
    return 1 - _safe_divide(
        (num - 1) * weighted_squares, num * np.where(total_squares > _MIN_SUM_OF_SQUARES * squares, total_squares, 0)
    )


def _safe_divide(numerator: Array, denominator: Array) -> Array:
    return np.divide(numerator, denominator, out=np.full_like(numerator, np.nan), where=denominator > 0)


def cohen_kappa(first: Sequence[float], second: Sequence[float], level: MeasurementLevel) -> float | None:
    """Cohen's kappa = 1 − observed / expected disagreement of two judges on the same units (1960, 1968).

    Two values disagree by 1 if they differ (nominal), else by their squared difference (quadratic weights). Expected:
    each value of one judge with each of the other. None if both judges give one and the same value throughout.
    """
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if not x.size:
        return None
    a, num_a = np.unique(x, return_counts=True)
    b, num_b = np.unique(y, return_counts=True)
    expected = float(num_a @ _squared_disagreement(np.subtract.outer(a, b), level) @ num_b) / x.size**2
    return None if expected == 0 else 1 - float(_squared_disagreement(x - y, level).mean()) / expected


def _squared_disagreement(differences: npt.NDArray[np.float64], level: MeasurementLevel) -> npt.NDArray[np.float64]:
    return (differences != 0).astype(np.float64) if level == "nominal" else differences**2


def bootstrap_kappas(counts: Array, first: Sequence[float], second: Sequence[float], level: MeasurementLevel) -> Array:
    """Cohen's kappa (D,) of draws that hold each of U units as often as `counts` (D, U) says; nan: not defined."""
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    num = np.maximum(counts.sum(1), 1)
    disagreement = counts @ _squared_disagreement(x - y, level) / num
    if level == "nominal":
        shares = [(counts @ (x == value) / num, counts @ (y == value) / num) for value in np.union1d(x, y)]
        expected = counts.sum(1) / num - np.sum([p * q for p, q in shares], axis=0)
    else:  # E (x − y)² of independent x and y
        x, y = x - x.mean(), y - x.mean()
        expected = (counts @ x**2 + counts @ y**2) / num - 2 * (counts @ x / num) * (counts @ y / num)
    return 1 - _safe_divide(disagreement, np.where(expected > _MIN_SUM_OF_SQUARES * (x @ x + y @ y), expected, 0))


def pairwise_kappas(judgments: Sequence[Judgment], level: MeasurementLevel) -> tuple[list[CohenKappa], Estimate]:
    """Cohen's kappa of every two judges that have a unit in common, and the mean of those that are defined."""
    table = values_by_judge(judgments)
    units = list(dict.fromkeys(unit for values in table.values() for unit in values))
    positions = {unit: i for i, unit in enumerate(units)}
    kappas: list[CohenKappa] = []
    of_draws: list[Callable[[Array], Array]] = []
    for name, other_name in combinations(table, 2):
        shared_units = [unit for unit in table[name] if unit in table[other_name]]
        if shared_units:
            first, second = (
                [table[name][unit] for unit in shared_units],
                [table[other_name][unit] for unit in shared_units],
            )
            resample = partial(bootstrap_kappas, first=first, second=second, level=level)
            value, masks = (
                cohen_kappa(first, second, level),
                _disagreement_masks(list(zip(first, second, strict=True))),
            )
            estimate = estimate_interval(value, shared_units, resample, masks)
            kappas.append(
                CohenKappa(
                    (name, other_name),
                    estimate.value,
                    estimate.low,
                    estimate.high,
                    len(shared_units),
                    estimate.no_interval_reason,
                )
            )
            of_draws.append(partial(_bootstrap_unit_subset, [positions[unit] for unit in shared_units], resample))
    values = [each.value for each in kappas if each.value is not None]
    mean = fmean(values) if values else None
    masks = _disagreement_masks([[values[unit] for values in table.values() if unit in values] for unit in units])
    return kappas, estimate_interval(mean, units, lambda counts: _nan_mean([each(counts) for each in of_draws]), masks)


def _bootstrap_unit_subset(
    columns: Sequence[int], bootstrap_statistic: Callable[[Array], Array], counts: Array
) -> Array:
    return bootstrap_statistic(counts[:, columns])


def _nan_mean(values: Sequence[Array]) -> Array:
    defined = ~np.isnan(values)
    return _safe_divide(np.where(defined, values, 0).sum(0), defined.sum(0).astype(np.float64))
