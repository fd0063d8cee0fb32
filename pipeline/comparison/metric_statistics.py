"""What a test of a metric needs of each system: the statistics of its segments, where they are known."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tfm.pipeline.comparison.systems import SegmentFigures, System, texts_differ
from tfm.pipeline.errors import TfmError
from tfm.pipeline.scoring.metrics.registry import METRICS
from tfm.pipeline.significance.segment_statistics import (
    SegmentStatistics,
    means,
    perplexities,
    ratios,
    segment_statistics,
)

UNITS: Mapping[str, Callable[[SegmentFigures], int | None]] = {
    "perplexity": lambda segment: segment.pieces,
    "word_perplexity": lambda segment: segment.words,
}
"""What a perplexity is by: predictions, or words."""
NO_TEXTS = "no interval: what was said of each segment is not there"
NO_FIGURES = "no interval: scores/ have no figures of each segment; `tfm evaluate` makes them again"
NOT_BY_SEGMENT = "no interval: it is not known of each segment"
ANOTHER_VALUE = "not tested: {:.4f} in scores/, but {:.4f} from the segments; run `tfm evaluate` again"
BITS = "bits_per_character"
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Missing:
    """Why a metric of a system is not tested."""

    system: str
    metric: str
    why: str


def statistics_of(
    metric: str, systems: Sequence[System], scores: Sequence[float]
) -> tuple[dict[str, SegmentStatistics], list[Missing]]:
    """Statistics of a metric of the main test set by name of a system, and of whom there are none.

    The first system is the baseline: others need its texts, and without its statistics there are none. scores: of each
    system, as its scores/ have them, which the statistics must give again.
    """
    reasons = [_unknown(metric, system, systems[0]) for system in systems]
    known = [system for system, why in zip(systems, reasons, strict=True) if why is None]
    missing = [Missing(system.name, metric, why) for system, why in zip(systems, reasons, strict=True) if why]
    if reasons[0] is not None:
        return {}, missing
    try:
        counted = dict(zip((system.name for system in known), _counted(metric, known), strict=True))
    except TfmError as error:
        return {}, [*missing, *(Missing(system.name, metric, f"not tested: {error}") for system in known)]
    for system, score in zip(systems, scores, strict=True):
        if system.name in counted and not _is_equal(value := counted[system.name].value, score):
            why = NOT_BY_SEGMENT if metric == BITS else ANOTHER_VALUE.format(score, value)
            missing.append(Missing(system.name, metric, why))
            del counted[system.name]
    return (counted if systems[0].name in counted else {}), missing


def _is_equal(value: float, score: float) -> bool:
    return value == score or math.isclose(value, score, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _unknown(metric: str, system: System, baseline: System) -> str | None:
    """Why a system has no statistics of a metric beside the baseline; None where it has."""
    if metric in METRICS:
        if system.texts is None:
            return NO_TEXTS
        return None if baseline.texts is None else texts_differ(system.texts, baseline.texts)
    segments, num = system.noted, len(baseline.noted)
    if metric == BITS and (system.texts is None or len(system.texts.references) > 1):
        return NOT_BY_SEGMENT  # which of several references were left out is not known
    if metric in (*UNITS, BITS):
        if not any(each.log_prob is not None for each in segments):
            return NO_FIGURES
    elif not segments or not all(metric in each.external for each in segments):
        return NOT_BY_SEGMENT
    return f"{len(segments):,} segments, not {num:,}" if num and len(segments) != num else None


def _counted(metric: str, systems: Sequence[System]) -> list[SegmentStatistics]:
    """The statistics of systems that are known to have them."""
    if metric in METRICS:
        texts = [system.texts for system in systems if system.texts is not None]
        return segment_statistics(
            metric, [each.hypotheses for each in texts], texts[0].references, systems[0].evaluation
        )
    if metric in UNITS:
        unit = UNITS[metric]
        return [
            perplexities([each.log_prob for each in system.noted], [unit(each) for each in system.noted])
            for system in systems
        ]
    if metric == BITS:
        return [_bits_per_character(system) for system in systems]
    return [means([each.external[metric] for each in system.noted]) for system in systems]


def _bits_per_character(system: System) -> SegmentStatistics:
    """-log2 p / characters of the references as they were read; a tokenizer may count others (`Characters`)."""
    assert system.texts is not None
    pairs = [
        (0.0, 0) if each.log_prob is None else (-each.log_prob, len(text))
        for each, text in zip(system.noted, system.texts.references[0], strict=True)
    ]
    bits, characters = zip(*pairs, strict=True)
    return ratios(bits, characters, scale=1 / math.log(2), higher_is_better=False)
