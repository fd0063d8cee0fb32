"""The published thresholds, and what lies between and beyond them."""

import math

import pytest

from tfm.pipeline.significance.human_agreement_table import (
    AGREEMENT_PERCENTAGES,
    DIFFERENCE_THRESHOLDS,
    agreement_with_people,
)


def published_curve(metric: str, difference: float) -> float:
    """The authors' own tool (mt-thresholds 0.0.1) has the sigmoid that they fitted, table 2 its points."""
    height, slope = {
        "bleu": (88.33333333333225, 0.9663926931178954),
        "chrf": (92.999999999972, 1.1142732157139852),
        "comet22": (96.22374133884283, 2.8359194570556636),
    }[metric]
    return height / (1 + math.exp(-slope * difference))


@pytest.mark.parametrize("metric", DIFFERENCE_THRESHOLDS)
def test_the_table_lies_on_the_published_curve(metric: str) -> None:
    thresholds = DIFFERENCE_THRESHOLDS[metric]
    assert list(thresholds) == sorted(thresholds)
    for threshold, accuracy in zip(thresholds, AGREEMENT_PERCENTAGES, strict=False):
        assert published_curve(metric, threshold) == pytest.approx(accuracy, abs=0.6)
    for step in range(20):
        size = thresholds[0] + (thresholds[-1] - thresholds[0]) * step / 20
        found = agreement_with_people(metric, size)
        assert found is not None
        assert not found.bound
        assert found.percent == pytest.approx(published_curve(metric, size), abs=1)


def test_what_papers_cite() -> None:
    for metric, difference, told in (("bleu", 1.06, "65 %"), ("bleu", -2.34, "80 %"), ("chrf", 1.63, "80 %")):
        assert str(agreement_with_people(metric, difference)) == told
    assert str(agreement_with_people("comet22", 0.56)) == "80 %"


def test_beyond_the_table_it_is_a_bound() -> None:
    assert str(agreement_with_people("bleu", 0)) == "<50 %"
    assert str(agreement_with_people("bleu", -0.26)) == "<50 %"
    assert str(agreement_with_people("bleu", 4)) == ">85 %"
    assert str(agreement_with_people("chrf", math.inf)) == ">90 %"
    assert str(agreement_with_people("comet22", 9)) == ">95 %"


def test_other_metrics_are_not_in_the_table() -> None:
    for metric in ("chrf++", "ter", "meteor", "COMET"):
        assert agreement_with_people(metric, 1) is None
    assert agreement_with_people("bleu", math.nan) is None
