"""Means, intervals and z-scores of ratings, each by a second way."""

from statistics import fmean, stdev

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from tfm.pipeline.judging.statistics.ratings import (
    Judgment,
    estimate_mean,
    mean_ratings,
    segment_means,
    z_scores,
)


def test_a_segment_counts_once_however_many_judges_it_has() -> None:
    rows = [
        Judgment("a", "1", "s", 1),
        Judgment("b", "1", "s", 2),
        Judgment("c", "1", "s", 3),
        Judgment("a", "2", "s", 5),
    ]
    assert segment_means(rows) == {"s": {"1": 2, "2": 5}}
    assert mean_ratings(rows)["s"].value == 3.5
    assert mean_ratings(rows)["s"].num_segments == 2


def test_the_interval_of_a_mean() -> None:
    """As scipy has it; Student's sleep data (1908), of ten patients, have none."""
    sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    assert estimate_mean(sleep, min_segments=10).no_interval_reason is not None, "1.3 comes twice, so that 8 are apart"
    found = estimate_mean([*sleep, 0.7, -1.6], min_segments=12)
    expected = ttest_1samp([*sleep, 0.7, -1.6], 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=1e-12)
    assert estimate_mean([4.0], min_segments=1).low is None
    for values in ([2.0] * 200, [0.1 * 3] * 100 + [0.3] * 100):
        assert (estimate_mean(values).low, estimate_mean(values).high) == (None, None), (
            "they do not vary: it would be a point"
        )
    assert estimate_mean([1.0, 2.0] * 49).no_interval_reason == "98 segments, and it needs 100"
    assert estimate_mean([1.0, 2.0] * 50).low is not None
    few = estimate_mean([1.0] * 91 + [2.0] * 9)
    assert few.no_interval_reason == "another value than the commonest one is in 9 segments, and it needs 10"
    assert estimate_mean([1.0] * 90 + [2.0] * 10).low is not None


def test_intervals_hold_the_truth_in_95_of_100() -> None:
    random = np.random.default_rng(5)
    held = 0
    for _ in range(2000):
        drawn = estimate_mean(random.integers(1, 6, size=100).tolist())
        assert drawn.low is not None
        assert drawn.high is not None
        held += drawn.low <= 3 <= drawn.high
    assert 0.935 < held / 2000 < 0.965


def test_z_scores_are_of_each_judge() -> None:
    random = np.random.default_rng(2)
    rows = [
        Judgment(judge, str(line), "s", float(shift + scale * random.normal()))
        for judge, shift, scale in (("mild", 80, 5), ("harsh", 20, 15))
        for line in range(40)
    ]
    rows += [Judgment("middle", str(line), "s", 50) for line in range(40)] + [Judgment("once", "1", "s", 3)]
    scores, without = z_scores(rows)
    assert without == ["middle", "once"]
    assert {each.judge for each in scores} == {"mild", "harsh"}
    for judge in ("mild", "harsh"):
        own = [each.value for each in scores if each.judge == judge]
        assert fmean(own) == pytest.approx(0, abs=1e-9)
        assert stdev(own) == pytest.approx(1)
    assert z_scores([]) == ([], [])
