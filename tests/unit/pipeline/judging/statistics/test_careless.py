"""Careless judges: what each rule names, and what it does not."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tfm.pipeline.judging.statistics.careless import CarelessnessVerdict, JudgeStats, judge_verdicts
from tfm.pipeline.judging.statistics.ratings import Judgment

FINE = [JudgeStats(f"fine {i}", 40, 40, [True] * 4, [True] * 5, [12.0] * 40, ["3", "4"] * 20) for i in range(4)]


def verdict_on(**conduct: object) -> CarelessnessVerdict:
    """On a judge beside four that do nothing strange."""
    return judge_verdicts([*FINE, replace(FINE[0], judge="own", **conduct)], [])[-1]


def test_nobody_is_named_for_nothing() -> None:
    assert [each.reasons for each in judge_verdicts(FINE, [])] == [[]] * 4
    assert judge_verdicts([JudgeStats("alone", 3, 0)], [])[0].reasons == []
    assert judge_verdicts([], []) == []


@pytest.mark.parametrize(
    ("conduct", "reason"),
    [
        ({"checks": [False, False, True, True]}, "failed 2 of 4 attention checks"),
        ({"checks": [False, True, True, True]}, None),
        ({"checks": [False] * 2 + [True] * 5}, None),
        ({"repeats": [False] * 5 + [True]}, "answered 1 of 6 repeated questions alike (the others 100 %)"),
        ({"repeats": [False, True, True, True, True]}, None),
        ({"repeats": []}, None),
        ({"answers": ["3"] * 10}, "gave the same answer to all 10 items"),
        ({"answers": ["3"] * 9}, None),
        ({"answers": ["3"] * 39 + ["4"]}, None),
        ({"seconds": [3.9] * 40}, "took 3.9 s an item (the median of the others 12.0 s)"),
        ({"seconds": [4.0] * 40}, None),
        ({"seconds": []}, None),
    ],
)
def test_rules(conduct: dict[str, object], reason: str | None) -> None:
    assert verdict_on(**conduct).reasons == ([reason] if reason else [])


def test_repeats_are_tested_at_a_level_shared_by_all_judges() -> None:
    """2 of 6 beside 54 of 60, p = 0.0037 (Fisher): below 0.01 / 2 of a panel of two, above 0.01 / 11 of eleven."""
    one = JudgeStats("one", 40, 40, repeats=[True, True, *[False] * 4])
    parts = ([True] * 5 + [False] * (number < 6) + [True] * (number >= 6) for number in range(10))
    several = [JudgeStats(f"judge {number}", 40, 40, repeats=part) for number, part in enumerate(parts)]
    together = JudgeStats("the others", 40, 40, repeats=[alike for each in several for alike in each.repeats])
    assert [bool(each.reasons) for each in judge_verdicts([one, together], [])] == [True, False]
    assert not any(each.reasons for each in judge_verdicts([one, *several], []))


def ratings(noise: list[float], num_units: int = 60) -> list[Judgment]:
    """Of each judge: how good the texts are, and noise; a negative one turns the marks around."""
    random = np.random.default_rng(0)
    good = random.normal(size=num_units)
    return [
        Judgment(f"judge {i}", str(line), "s", float(np.sign(each) * good[line] + abs(each) * random.normal()))
        for i, each in enumerate(noise)
        for line in range(num_units)
    ]


def of(noise: list[float], num_units: int = 60) -> list[CarelessnessVerdict]:
    return judge_verdicts([JudgeStats(f"judge {i}", 60, 60) for i in range(len(noise))], ratings(noise, num_units))


def test_who_agrees_with_nobody_is_named_and_judged_by_the_others_alone() -> None:
    found = of([0.5, 0.5, 0.5, 0.5, 50.0, -0.5])
    assert [bool(each.reasons) for each in found] == [False] * 4 + [True] * 2
    assert re.fullmatch(r"correlation -?0\.\d\d with the other judges \(median 0\.\d\d\)", *found[4].reasons)
    assert found[5].correlation is not None
    assert found[5].correlation < -0.7
    for each in found[:4]:
        assert each.correlation is not None
        assert each.correlation > 0.8, "not with the mean of all, which the other two spoil"


def test_somewhat_noisier_judges_are_not_named() -> None:
    assert not any(each.reasons for each in of([0.5, 0.5, 0.5, 0.5, 1.0]))


def test_two_judges_or_few_units_say_nothing() -> None:
    assert not any(each.reasons for each in of([0.5, -0.5]))
    assert not any(each.reasons for each in of([0.5, 0.5, 0.5, 50.0], num_units=9))


def test_chance_alone_names_nobody() -> None:
    """Thirteen texts may give a judge who is no worse than others such a correlation; sixty do not."""
    few, many = (of([1.0, 1.0, 1.0, 1.0, 50.0], num_units)[-1] for num_units in (13, 60))
    assert few.correlation is not None
    assert few.correlation < 0.1
    assert (bool(few.reasons), bool(many.reasons)) == (False, True)


def test_where_nobody_agrees_nobody_is_named() -> None:
    assert not any(each.reasons for each in of([50.0] * 5))


def test_equal_judges_are_named_in_one_panel_of_a_hundred() -> None:
    """Eight judges who differ by chance alone, in all they do: 100 panels, of which one in a hundred may be wrong."""
    random = np.random.default_rng(9)
    wrong = 0
    for _ in range(100):
        good = random.normal(size=40)
        rows = [
            Judgment(f"judge {i}", str(line), "s", float(good[line] + random.normal()))
            for i in range(8)
            for line in range(40)
        ]
        conducts = [
            JudgeStats(f"judge {i}", 40, 40, repeats=[bool(x) for x in random.random(6) < 0.8]) for i in range(8)
        ]
        wrong += any(each.reasons for each in judge_verdicts(conducts, rows))
    assert wrong <= 3
