"""Means, intervals and z-scores of ratings, each by a second way."""

from statistics import fmean, stdev

import numpy as np
import pytest

from tfm.pipeline.judging.statistics.ratings import (
    Judgment,
    by_segment,
    mean_of,
    means,
    z_scores,
)


def test_a_segment_counts_once_however_many_judges_it_has() -> None:
    rows = [
        Judgment("a", "1", "s", 1),
        Judgment("b", "1", "s", 2),
        Judgment("c", "1", "s", 3),
        Judgment("a", "2", "s", 5),
    ]
    assert by_segment(rows) == {"s": {"1": 2, "2": 5}}
    assert means(rows)["s"].value == 3.5
    assert means(rows)["s"].num_segments == 2


def test_the_interval_of_a_mean() -> None:
    """Student's sleep data (1908): the ten differences, 0.70 ≤ mean ≤ 2.46 at 95 %."""
    found = mean_of([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4], fewest=10)
    assert (found.value, found.low, found.high) == pytest.approx((1.58, 0.7001, 2.4599), abs=1e-4)
    assert mean_of([4.0], fewest=1).low is None
    for values in ([2.0] * 60, [0.1 * 3] * 30 + [0.3] * 30):
        assert (mean_of(values).low, mean_of(values).high) == (None, None), "they do not vary: it would be a point"
    assert mean_of([1.0, 2.0] * 24).low is None
    assert mean_of([1.0, 2.0] * 25).low is not None


def test_intervals_hold_the_truth_in_95_of_100() -> None:
    random = np.random.default_rng(5)
    held = 0
    for _ in range(2000):
        drawn = mean_of(random.integers(1, 6, size=50).tolist())
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
