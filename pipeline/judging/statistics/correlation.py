"""Automatic metrics beside judges: Kendall's and Pearson's correlation, by segment and by system.

Signs are turned so that a positive correlation means agreement: TER and the weight of errors are better if lower.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from scipy.stats import kendalltau

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.judging.statistics.agreement import Unit
from tfm.pipeline.scoring.metrics.tokenization import make_bleu
from tfm.pipeline.significance.segment_statistics import segment_statistics

NUM_DRAWS, SEED = 1000, 12345

Coefficient = Callable[[Sequence[float], Sequence[float]], float | None]


@dataclass(frozen=True)
class Estimate:
    """A correlation with its 95 % interval over draws of the segments; None where it is not defined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Correlation:
    """One metric beside the judges, over units (texts, or pairs of texts) and over systems."""

    metric: str
    kendall: Estimate
    pearson: Estimate
    num_units: int
    num_segments: int
    system_kendall: float | None
    system_pearson: float | None
    num_systems: int


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's correlation; None where a side does not vary."""
    if len(set(x)) < 2 or len(set(y)) < 2:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def kendall(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Kendall's tau-b (1945), in which ties on one side count as half of agreement; None where a side does not vary."""
    if len(set(x)) < 2 or len(set(y)) < 2:
        return None
    return float(kendalltau(x, y).statistic)


def over_segments(
    coefficient: Coefficient, x: Mapping[Unit, float], y: Mapping[Unit, float], num_draws: int = NUM_DRAWS
) -> Estimate:
    """A coefficient over the units that both sides have, and the percentiles of it over draws of whole segments."""
    units = [unit for unit in x if unit in y]
    value = coefficient([x[unit] for unit in units], [y[unit] for unit in units])
    if value is None:
        return Estimate(None)
    of_segment: dict[str, list[Unit]] = {}
    for unit in units:
        of_segment.setdefault(unit[0], []).append(unit)
    segments = list(of_segment.values())
    random, found = np.random.default_rng(SEED), []
    for _ in range(num_draws):
        drawn = [unit for place in random.integers(len(segments), size=len(segments)) for unit in segments[place]]
        again = coefficient([x[unit] for unit in drawn], [y[unit] for unit in drawn])
        if again is not None:
            found.append(again)
    if len(segments) < 2 or not found:
        return Estimate(value)
    low, high = np.percentile(found, (2.5, 97.5))
    return Estimate(value, float(low), float(high))


@dataclass(frozen=True)
class MetricScores:
    """A metric of each text that was judged, and of all such texts of each system; higher is better in both."""

    by_unit: Mapping[Unit, float]
    by_system: Mapping[str, float]


def metric_scores(
    metric: str, texts: Mapping[Unit, str], references: Mapping[str, Sequence[str]], config: EvaluationConfig
) -> MetricScores:
    """A metric of `METRICS` on texts by (segment, system) beside references by segment; `config` is resolved.

    A text's score is that of a corpus of this text alone; BLEU's with n-grams as long as the text has (effective
    order), since BLEU of a short sentence is 0 otherwise.
    """
    units = list(texts)
    by_unit: dict[Unit, float] = {}
    by_system: dict[str, float] = {}
    for system in dict.fromkeys(system for _, system in units):
        own = [unit for unit in units if unit[1] == system]
        hypotheses, wanted = [texts[unit] for unit in own], [references[segment] for segment, _ in own]
        (counted,) = segment_statistics(metric, [hypotheses], columns(wanted), config)
        sign = 1 if counted.higher_is_better else -1
        values: Sequence[float] = counted.score(counted.rows).tolist()
        if metric == "bleu":
            bleu = make_bleu(config, effective_order=True)
            values = [
                bleu.sentence_score(text, [first, *filter(None, further)]).score
                for text, (first, *further) in zip(hypotheses, wanted, strict=True)
            ]
        by_unit |= {unit: sign * value for unit, value in zip(own, values, strict=True)}
        by_system[system] = sign * counted.value
    return MetricScores(by_unit, by_system)


def columns(references: Sequence[Sequence[str]]) -> list[list[str]]:
    """References by segment as full lists, "" where a segment has fewer than another."""
    return [list(column) for column in zip_longest(*references, fillvalue="")]


def of_pairs(by_unit: Mapping[Unit, float], pairs: Mapping[str, tuple[str, str]]) -> dict[Unit, float]:
    """Differences of texts' scores, first less second, for units that are pairs of systems; `pairs` names the two."""
    segments = dict.fromkeys(segment for segment, _ in by_unit)
    return {
        (segment, name): by_unit[segment, first] - by_unit[segment, second]
        for segment in segments
        for name, (first, second) in pairs.items()
        if (segment, first) in by_unit and (segment, second) in by_unit
    }


def correlate(
    metric: str,
    human: Mapping[Unit, float],
    scores: Mapping[Unit, float],
    human_systems: Mapping[str, float],
    score_systems: Mapping[str, float],
) -> Correlation:
    """One metric beside the judges."""
    both = [unit for unit in human if unit in scores]
    systems = [system for system in human_systems if system in score_systems]
    x, y = [human_systems[each] for each in systems], [score_systems[each] for each in systems]
    return Correlation(
        metric,
        over_segments(kendall, human, scores),
        over_segments(pearson, human, scores),
        len(both),
        len({segment for segment, _ in both}),
        kendall(x, y),
        pearson(x, y),
        len(systems),
    )
