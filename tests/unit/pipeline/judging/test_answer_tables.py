"""Answers as tables: what counts, what is compared, and what a judge did."""

from collections.abc import Sequence
from typing import Any

from tfm.pipeline.judging.answer_tables import (
    choice_judgments,
    error_weight,
    judge_stats,
    list_judgments,
    list_preferences,
    make_error_counter,
    make_scale_reader,
    mean_of_scales,
    preferences_as_judgments,
)
from tfm.pipeline.judging.answers import Answer, ErrorSpan, Rating, make_tie_answers
from tfm.pipeline.judging.campaign import AttentionCheck, Campaign, CampaignItem, CampaignKind, Judge, ShownText
from tfm.pipeline.judging.statistics.agreement import estimate_alpha
from tfm.pipeline.judging.statistics.preferences import Preference
from tfm.pipeline.judging.statistics.ratings import Judgment

SYSTEMS = ("x", "y", "z")


def item(name: str, line: int, systems: Sequence[str | None], **more: Any) -> CampaignItem:
    shown = tuple(ShownText(label="ABC"[i], system=system, text=f"{system} {i}") for i, system in enumerate(systems))
    return CampaignItem(**{"id": name, "test": "t", "line": line, "source": "s", "shown": shown, **more})


def campaign(kind: CampaignKind, *items: CampaignItem, ties: tuple[str, ...] = ()) -> Campaign:
    asked = tuple(each.id for each in items if each.id not in ties)
    return Campaign(kind=kind, seed=1, systems=SYSTEMS, items=items, judges=(Judge(name="j", items=asked, ties=ties),))


def marks(adequacy: float, fluency: float) -> Rating:
    return Rating({"adequacy": adequacy, "fluency": fluency})


def test_checks_and_repeats_are_no_ratings() -> None:
    items = [
        item("a", 1, ["x", "y"]),
        item("again", 1, ["y", "x"], repeat_of="a"),
        item("check", 2, [None], check=AttentionCheck(damaged=("A",))),
    ]
    answers = [
        Answer("j", items[0], 4.0, {"A": marks(1, 2), "B": marks(5, 4)}),
        Answer("j", items[1], 2.0, {"A": marks(4, 5), "B": marks(3, 2)}),
        Answer("j", items[2], None, {"A": marks(2, 5)}),
    ]
    assert list_judgments(answers, make_scale_reader("adequacy")) == [
        Judgment("j", "t:1", "x", 1),
        Judgment("j", "t:1", "y", 5),
    ]
    assert [each.value for each in list_judgments(answers, mean_of_scales)] == [1.5, 4.5]
    (found,) = judge_stats(campaign("likert", *items), answers)
    assert (found.num_items, found.num_answered) == (3, 3)
    assert found.checks == [True]
    assert sorted(found.repeats) == [False, True], "x is two marks apart on adequacy, y one"
    assert (found.seconds, found.median_seconds) == ([4.0, 2.0], 3)
    assert found.answers == ["1 2", "5 4"]


def test_errors_by_weight_and_number() -> None:
    rating = Rating({"score": 50}, (ErrorSpan(0, 1, "minor"), ErrorSpan(2, 3, "major"), ErrorSpan(3, 3, "major")))
    assert (error_weight(rating), make_error_counter("minor")(rating), make_error_counter("major")(rating)) == (
        11,
        1,
        2,
    )


def test_preferences_are_in_the_order_of_the_systems_and_have_the_ties_not_shown() -> None:
    of = campaign("pairwise", item("a", 1, ["z", "x"]), item("b", 2, ["x", "y"]), item("c", 3, ["y", "x"]), ties=("c",))
    answers = [
        Answer("j", of.items[0], best=frozenset("A")),
        Answer("j", of.items[1], best=frozenset("AB")),
        *make_tie_answers(of, of.judges[0]),
    ]
    assert list_preferences(answers, SYSTEMS) == [
        Preference("j", "t:1", "x", "z", 0),
        Preference("j", "t:2", "x", "y", 0.5),
        Preference("j", "t:3", "x", "y", 0.5),
    ]
    assert [each.segment for each in choice_judgments("pairwise", answers, SYSTEMS)] == ["t:1", "t:2"]
    (found,) = judge_stats(of, answers)
    assert (found.num_items, found.num_answered, found.answers) == (2, 2, ["A", "A B"])


def test_the_same_preference_again_is_of_the_system_not_the_label() -> None:
    items = [item("a", 1, ["x", "y"]), item("again", 1, ["y", "x"], repeat_of="a")]
    for now, alike in (("B", True), ("A", False), ("AB", False)):
        answers = [Answer("j", items[0], best=frozenset("A")), Answer("j", items[1], best=frozenset(now))]
        assert judge_stats(campaign("pairwise", *items), answers)[0].repeats == [alike]


def test_the_best_of_several() -> None:
    one = item("a", 1, ["z", "x", "y"])
    answers = [Answer("j", one, best=frozenset("A"))]
    assert {(each.system, each.value) for each in choice_judgments("best", answers, SYSTEMS)} == {
        ("x", 0),
        ("y", 0),
        ("z", 1),
    }
    assert list_preferences(answers, SYSTEMS) == [
        Preference("j", "t:1", "x", "z", 0),
        Preference("j", "t:1", "y", "z", 0),
    ]


def test_judges_who_prefer_one_system_agree() -> None:
    """In one fixed order both would say 1 throughout, in which alpha sees no agreement beyond chance."""
    given = [
        Preference(judge, f"t:{line}", "x", "y", float(line != wrong))
        for line in range(60)
        for judge, wrong in (("a", 7), ("b", 8))
    ]
    rows = preferences_as_judgments(given)
    assert {each.system for each in rows} == {"x\ty", "y\tx"}
    turned = {each.segment for each in rows if each.system == "y\tx"}
    assert 20 < len(turned) < 40
    found = estimate_alpha(rows, "nominal").value
    assert found is not None
    assert found > 0.9
    for each, preference in zip(rows, given, strict=True):
        assert each.value == (1 - preference.wins if each.segment in turned else preference.wins)
