"""The paired tests of sacrebleu itself, on statistics that were counted before.

Both take their seed from SACREBLEU_SEED, and hold all draws at once: of 100,000 segments several gigabytes.
"""

from typing import Any

from sacrebleu.significance import PairedTest

from tfm.pipeline.scoring.metrics.sacrebleu_statistics import SacrebleuMetric
from tfm.pipeline.significance.segment_statistics import SegmentStatistics


class _PrecomputedMetric:
    """A metric whose hypotheses are statistics: TER takes seconds to count them, and each test would anew."""

    def __init__(self, metric: SacrebleuMetric) -> None:
        self._metric = metric

    def _extract_corpus_statistics(self, hypotheses: Any, references: None) -> Any:
        return hypotheses

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metric, name)


def sacrebleu_bootstrap(
    baseline: SegmentStatistics, system: SegmentStatistics, resamples: int
) -> tuple[float, float, float]:
    """Return the figures of `sacrebleu --paired-bs` for a system.

    Args:
        baseline: the statistics of one system.
        system: those of the other.
        resamples: the number of resamples.

    Returns:
        Mean, half width of the 95 % interval, p-value.
    """
    result = _run_paired_test("bs", resamples, baseline, system)
    return float(result.mean), float(result.ci), float(result.p_value)


def sacrebleu_randomisation(baseline: SegmentStatistics, system: SegmentStatistics, trials: int) -> float:
    """Return the p-value that `sacrebleu --paired-ar` prints of a system.

    Args:
        baseline: the statistics of one system.
        system: those of the other.
        trials: the number of trials.
    """
    return float(_run_paired_test("ar", trials, baseline, system).p_value)


def _run_paired_test(test_type: str, num_samples: int, baseline: SegmentStatistics, system: SegmentStatistics) -> Any:
    named: Any = [("baseline", baseline.rows), ("system", system.rows)]
    assert baseline.sacrebleu is not None
    metrics: Any = {"metric": _PrecomputedMetric(baseline.sacrebleu)}
    _, scores = PairedTest(named, metrics, None, test_type=test_type, n_samples=num_samples, n_jobs=1)()
    ((_, result),) = (results for name, results in scores.items() if name != "System")
    return result
