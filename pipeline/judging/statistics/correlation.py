"""Automatic metrics beside judges: Kendall's and Pearson's correlation, by segment and by system.

Signs are turned so that a positive correlation means agreement: TER and the weight of errors are better if lower.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.judging.statistics.minimums import TOO_ALIKE_REASON, differ_from_mode, round_to_digits
from tfm.pipeline.judging.statistics.ratings import NUM_DRAWS, Estimate, JudgedUnit, estimate_interval
from tfm.pipeline.scoring.metrics.references import drop_blank_references
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS
from tfm.pipeline.scoring.metrics.tokenization import make_bleu
from tfm.pipeline.significance.segment_statistics import segment_statistics

MAX_PAIRWISE_UNITS = 1500  # values with all pairs in memory at once

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MetricCorrelation:
    """One metric beside the judges, over units (texts, or pairs of texts) and over systems."""

    metric: str
    signature: str
    kendall: Estimate
    pearson: Estimate
    num_units: int
    num_segments: int
    system_kendall: float | None
    system_pearson: float | None
    num_systems: int


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's correlation; None if a side does not vary."""
    if len(set(x)) < 2 or len(set(y)) < 2:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def kendall(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Kendall's tau-b (1945), whose denominator leaves out ties of either side; None if a side does not vary."""
    if len(set(x)) < 2 or len(set(y)) < 2:
        return None
    return float(kendalltau(x, y).statistic)


def bootstrap_kendall_taus(counts: Array, x: Array, y: Array) -> Array:
    """tau-b of draws (D) of values x, y (N), which each draw holds as often as `counts` (D, N) says; nan: not defined.

    With signs s_ij = sign(x_i − x_j) and t_ij of y: Σ c_i c_j s_ij t_ij / √(Σ c_i c_j s_ij² Σ c_i c_j t_ij²); of more
    than MAX_PAIRWISE_UNITS values, whose squares take long, one draw after another.
    """
    if len(x) > MAX_PAIRWISE_UNITS:
        index_draws = (np.repeat(np.arange(len(x)), each.astype(int)) for each in counts)
        return np.array([kendall(x[some].tolist(), y[some].tolist()) for some in index_draws], dtype=np.float64)
    s, t = np.sign(np.subtract.outer(x, x)), np.sign(np.subtract.outer(y, y))
    agree, by_x, by_y = ((counts @ signs * counts).sum(1) for signs in (s * t, s * s, t * t))
    return _safe_divide(agree, np.sqrt(by_x * by_y))


def bootstrap_pearson_rs(counts: Array, x: Array, y: Array) -> Array:
    """Pearson's r of draws, as `bootstrap_kendall_taus` has them."""
    x, y = x - x.mean(), y - y.mean()
    num = counts.sum(1)
    mx, my = counts @ x / num, counts @ y / num
    xy, xx, yy = (counts @ products / num for products in (x * y, x * x, y * y))
    tiny = 1e-12 * np.array([x @ x, y @ y]) / len(x)  # rounding of values that do not vary
    vx, vy = (np.where(v > least, v, 0) for v, least in zip((xx - mx**2, yy - my**2), tiny, strict=True))
    return _safe_divide(xy - mx * my, np.sqrt(vx * vy))


def _safe_divide(numerator: Array, denominator: Array) -> Array:
    return np.divide(numerator, denominator, out=np.full_like(numerator, np.nan), where=denominator > 0)


class CorrelationCoefficient(NamedTuple):
    """A correlation of two lists, and of many draws of them."""

    plain: Callable[[Sequence[float], Sequence[float]], float | None]
    of_draws: Callable[[Array, Array, Array], Array]


KENDALL, PEARSON = (
    CorrelationCoefficient(kendall, bootstrap_kendall_taus),
    CorrelationCoefficient(pearson, bootstrap_pearson_rs),
)


def correlate_units(
    coefficient: CorrelationCoefficient,
    x: Mapping[JudgedUnit, float],
    y: Mapping[JudgedUnit, float],
    num_draws: int = NUM_DRAWS,
) -> Estimate:
    """A coefficient over the units that both sides have, and the percentiles of it over draws of whole segments."""
    units = [unit for unit in x if unit in y]
    x_values, y_values = np.array([x[unit] for unit in units]), np.array([y[unit] for unit in units])
    value = coefficient.plain(x_values.tolist(), y_values.tolist())
    masks = {TOO_ALIKE_REASON: [differ_from_mode(round_to_digits(side.tolist())) for side in (x_values, y_values)]}
    return estimate_interval(
        value, units, lambda counts: coefficient.of_draws(counts, x_values, y_values), masks, num_draws
    )


@dataclass(frozen=True)
class MetricScores:
    """A metric of each text that was judged, and of all such texts of each system; higher is better in both.

    signature: of the scores by system.
    """

    signature: str
    by_unit: Mapping[JudgedUnit, float]
    by_system: Mapping[str, float]


def metric_scores(
    metric: str, texts: Mapping[JudgedUnit, str], references: Mapping[str, Sequence[str]], config: EvaluationConfig
) -> MetricScores:
    """A metric of `CORRELATED_METRICS` on texts by (segment, system) beside references by segment; `config`: resolved.

    A text's score is that of a corpus of this text alone; BLEU's with n-grams as long as the text has (effective
    order), since BLEU of a short sentence is 0 otherwise; CIDEr-D's with the document frequencies of all segments.
    """
    units = list(texts)
    segments = list(dict.fromkeys(segment for segment, _ in units))
    positions = {segment: row for row, segment in enumerate(segments)}
    columns = reference_columns([references[segment] for segment in segments])
    by_unit: dict[JudgedUnit, float] = {}
    by_system: dict[str, float] = {}
    for system in dict.fromkeys(system for _, system in units):
        system_units = [unit for unit in units if unit[1] == system]
        # of all segments, whether or not the system's texts were judged there
        hypotheses = [texts.get((segment, system), "") for segment in segments]
        (statistics,) = segment_statistics(metric, [hypotheses], columns, config)
        rows = statistics.rows[[positions[segment] for segment, _ in system_units]]
        sign = 1 if statistics.higher_is_better else -1
        values: Sequence[float] = statistics.score(rows).tolist()
        if metric == "bleu":
            bleu = make_bleu(config, effective_order=True)
            values = [
                bleu.sentence_score(texts[segment, system], drop_blank_references(references[segment])).score
                for segment, _ in system_units
            ]
        by_unit |= {unit: sign * value for unit, value in zip(system_units, values, strict=True)}
        by_system[system] = sign * float(statistics.score(rows.sum(0)))
    if statistics.sacrebleu is not None:
        signature = statistics.sacrebleu.get_signature().format()
    else:  # it depends on the config and the references alone
        signature = METRIC_FUNCTIONS[metric]([""] * len(segments), columns, config).signature
    return MetricScores(signature, by_unit, by_system)


def reference_columns(references: Sequence[Sequence[str]]) -> list[list[str]]:
    """References by segment as full lists, "" where a segment has fewer than another."""
    return [list(column) for column in zip_longest(*references, fillvalue="")]


def pair_differences(
    by_unit: Mapping[JudgedUnit, float], pairs: Mapping[str, tuple[str, str]]
) -> dict[JudgedUnit, float]:
    """Differences of texts' scores, first less second, for units that are pairs of systems; `pairs` names the two."""
    segments = dict.fromkeys(segment for segment, _ in by_unit)
    return {
        (segment, name): by_unit[segment, first] - by_unit[segment, second]
        for segment in segments
        for name, (first, second) in pairs.items()
        if (segment, first) in by_unit and (segment, second) in by_unit
    }


def correlate_metric(
    metric: str,
    scores: MetricScores,
    human: Mapping[JudgedUnit, float],
    human_systems: Mapping[str, float],
    num_draws: int = NUM_DRAWS,
) -> MetricCorrelation:
    """Correlate a metric with judgments of segments and of systems; for both, more is better."""
    shared_units = [unit for unit in human if unit in scores.by_unit]
    systems = [system for system in human_systems if system in scores.by_system]
    x, y = [human_systems[each] for each in systems], [scores.by_system[each] for each in systems]
    return MetricCorrelation(
        metric,
        scores.signature,
        correlate_units(KENDALL, human, scores.by_unit, num_draws),
        correlate_units(PEARSON, human, scores.by_unit, num_draws),
        len(shared_units),
        len({segment for segment, _ in shared_units}),
        kendall(x, y),
        pearson(x, y),
        len(systems),
    )
