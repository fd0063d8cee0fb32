"""Is a system better than a baseline on a test set? Scores with intervals, differences with p-values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tfm.data.errors import DataError
from tfm.pipeline.significance.holm import LEVEL, holm
from tfm.pipeline.significance.resampling import (
    RESAMPLES,
    TRIALS,
    bootstrap,
    bootstrap_p,
    interval,
    randomisation_p,
    seed_of_tests,
)
from tfm.pipeline.significance.sacrebleu_tests import sacrebleu_bootstrap, sacrebleu_randomisation
from tfm.pipeline.significance.segment_statistics import Array, SegmentStatistics


@dataclass(frozen=True)
class Difference:
    """A system's score less the baseline's, in the units of the metric.

    low, high: the 95 % interval of the difference, percentiles of the bootstrap. p_bootstrap, p_randomisation: of
    BLEU, chrF and TER what `sacrebleu --paired-bs` and `--paired-ar` say. p: what decides, by randomisation with ties
    counted (`randomisation_p`); of BLEU, chrF and TER that differs from p_randomisation where few segments do. p_holm:
    that p after Holm's correction over all systems given for this metric. num_apart: segments in which the systems
    differ. better: None where neither is.
    """

    difference: float
    low: float
    high: float
    p_bootstrap: float
    p_randomisation: float
    num_apart: int
    p: float
    p_holm: float
    better: bool | None

    @property
    def stands(self) -> bool:
        """Whether the difference is significant at 5 % after correction."""
        return self.p_holm < LEVEL


@dataclass(frozen=True)
class Result:
    """A system's score by one metric.

    low, high: its 95 % interval, the 2.5th and 97.5th percentile of the bootstrap. mean, half_width: what sacrebleu
    prints as "μ = mean ± half_width": the mean of the resamples and half the distance from low to high; the score need
    not lie in the middle. versus: against the baseline; None of the baseline.
    """

    value: float
    low: float
    high: float
    mean: float
    half_width: float
    versus: Difference | None = None


def compare_systems(
    systems: Sequence[SegmentStatistics],
    *,
    resamples: int = RESAMPLES,
    trials: int = TRIALS,
    on_done: Callable[[], None] | None = None,
) -> list[Result]:
    """Scores of systems on the same segments, and the tests of each against the first, the baseline.

    The statistics of sacrebleu's metrics are tested by its own `PairedTest`, others by the same two tests
    (`resampling`). All systems here are one family for Holm's correction: the claims "better by this metric" about
    several systems are read together and the best one is picked, whereas another metric answers another question.
    on_done: called after each system. Raises DataError where the numbers of segments differ or are 0, RecipeError for
    a wrong SACREBLEU_SEED.

    Two systems that are the same in every segment have p-values of 1, where sacrebleu gives its least one.
    """
    lengths = sorted({len(system) for system in systems})
    if len(lengths) != 1 or not lengths[0]:
        raise DataError(f"systems of {' and '.join(map(str, lengths))} segments: compare them on the same ones")
    for row in (row for system in systems for row in np.flatnonzero(~np.isfinite(system.rows).all(-1))):
        raise DataError(f"line {row + 1} has no finite number of a metric: its systems cannot be compared")
    baseline, seed = systems[0], seed_of_tests()
    scores = bootstrap(systems, resamples=resamples, seed=seed)
    results = []
    for place, (system, drawn) in enumerate(zip(systems, scores, strict=True)):
        with np.errstate(invalid="ignore"):  # two infinite perplexities
            (low, high), apart = interval(drawn), drawn - scores[0]
            mean, half_width, p_bootstrap = (
                float(drawn.mean()),
                0.5 * (high - low),
                bootstrap_p(baseline, system, apart),
            )
        if baseline.sacrebleu is not None:
            mean, half_width, p_bootstrap = sacrebleu_bootstrap(baseline, system, resamples)
        result = Result(system.value, low, high, mean, half_width)
        if place:
            result = replace(result, versus=_difference(baseline, system, apart, p_bootstrap, trials, seed))
        results.append(result)
        if on_done is not None:
            on_done()
    return _corrected(results)


def _difference(
    baseline: SegmentStatistics,
    system: SegmentStatistics,
    drawn: Array,
    p_bootstrap: float,
    trials: int,
    seed: int | None,
) -> Difference:
    difference = system.value - baseline.value
    num_apart = int((baseline.rows != system.rows).any(-1).sum())
    p = p_randomisation = randomisation_p(baseline, system, trials=trials, seed=seed)
    if not num_apart or not np.isfinite(difference):
        p_bootstrap = p_randomisation = p = 1.0
    elif baseline.sacrebleu is not None:
        p_randomisation = sacrebleu_randomisation(baseline, system, trials)
    better = None if not difference or np.isnan(difference) else (difference > 0) == system.higher_is_better
    return Difference(difference, *interval(drawn), p_bootstrap, p_randomisation, num_apart, p, p, better)


def _corrected(results: Sequence[Result]) -> list[Result]:
    """The results with Holm's correction over all systems but the baseline."""
    baseline, *others = results
    tested = [other.versus for other in others if other.versus is not None]
    corrected = holm([versus.p for versus in tested])
    return [
        baseline,
        *(
            replace(other, versus=replace(versus, p_holm=p))
            for other, versus, p in zip(others, tested, corrected, strict=True)
        ),
    ]
