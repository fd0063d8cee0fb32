"""Ranks that follow from tests, and orders that do not."""

from tfm.pipeline.judging.statistics.differences import difference_tests
from tfm.pipeline.judging.statistics.preferences import Preference, sign_tests, strengths
from tfm.pipeline.judging.statistics.ranks import contradictions, ranks, significant
from tfm.pipeline.judging.statistics.ratings import Judgment, means


def test_preferences_whose_test_favours_the_weaker_system() -> None:
    """One judge on most segments prefers a; on few segments, which five judges saw, all prefer b."""
    given = [Preference("1", f"t:{line}", "a", "b", 1) for line in range(16)]
    given += [Preference(str(judge), f"t:{line}", "a", "b", 0) for line in range(16, 20) for judge in range(5)]
    order = [each.system for each in strengths(given, ["a", "b"])]
    tests = sign_tests(given, order)
    assert order == ["b", "a"]
    assert tests[0].is_significant
    assert significant(tests) == [("a", "b")]
    assert ranks(order, significant(tests)) == [1, 1], "neither is ahead of the other"
    (note,) = contradictions("preferences", order, significant(tests), "strength", "the sign test")
    assert note == (
        "preferences: b stands before a by strength, but the sign test says that a is significantly better: "
        "treat the order of these two as inconclusive"
    )


def test_means_over_all_segments_whose_test_is_of_shared_ones() -> None:
    """a is better wherever both were rated, and was alone given the hard segments."""
    given = [Judgment("1", f"t:{line}", system, value) for line in range(12) for system, value in (("a", 4), ("b", 3))]
    given += [Judgment("1", f"hard:{line}", "a", 1) for line in range(12)]
    order = sorted("ab", key=lambda system: -means(given)[system].value)
    better = significant(difference_tests(given, order))
    assert (order, better) == (["b", "a"], [("a", "b")])
    assert ranks(order, better) == [1, 1]
    assert len(contradictions("adequacy", order, better, "mean", "the test")) == 1


def test_of_errors_fewer_are_better() -> None:
    given = [Judgment("1", f"t:{line}", system, value) for line in range(12) for system, value in (("a", 1), ("b", 3))]
    better = significant(difference_tests(given, ["a", "b"]), -1)
    assert (better, ranks(["a", "b"], better)) == ([("a", "b")], [1, 2])
    assert contradictions("errors", ["a", "b"], better, "mean", "the test") == []
