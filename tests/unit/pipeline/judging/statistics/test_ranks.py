"""Ranks that follow from tests, and orders that do not."""

from tfm.pipeline.judging.statistics.differences import difference_tests
from tfm.pipeline.judging.statistics.preferences import Preference, bradley_terry_strengths, sign_tests
from tfm.pipeline.judging.statistics.ranks import contradiction_messages, rank_clusters_by_pairs, significant_pairs
from tfm.pipeline.judging.statistics.ratings import Judgment, mean_ratings


def test_preferences_whose_test_favours_the_weaker_system() -> None:
    """One judge on most segments prefers a; on few segments, which five judges saw, all prefer b."""
    given = [Preference("1", f"t:{line}", "a", "b", 1) for line in range(16)]
    given += [Preference(str(judge), f"t:{line}", "a", "b", 0) for line in range(16, 20) for judge in range(5)]
    order = [each.system for each in bradley_terry_strengths(given, ["a", "b"])]
    tests = sign_tests(given, order)
    assert order == ["b", "a"]
    assert tests[0].is_significant
    assert significant_pairs(tests) == [("a", "b")]
    assert rank_clusters_by_pairs(order, significant_pairs(tests)) == [1, 1], "neither is ahead of the other"
    (note,) = contradiction_messages("preferences", order, significant_pairs(tests), "strength", "the sign test")
    assert note == (
        "preferences: b stands before a by strength, but the sign test says that a is significantly better: "
        "treat the order of these two as inconclusive"
    )


def test_means_over_all_segments_whose_test_is_of_shared_ones() -> None:
    """a is better wherever both were rated, and was alone given the hard segments."""
    given = [Judgment("1", f"t:{line}", system, value) for line in range(12) for system, value in (("a", 4), ("b", 3))]
    given += [Judgment("1", f"hard:{line}", "a", 1) for line in range(12)]
    order = sorted("ab", key=lambda system: -mean_ratings(given)[system].value)
    better = significant_pairs(difference_tests(given, order))
    assert (order, better) == (["b", "a"], [("a", "b")])
    assert rank_clusters_by_pairs(order, better) == [1, 1]
    assert len(contradiction_messages("adequacy", order, better, "mean", "the test")) == 1


def test_of_errors_fewer_are_better() -> None:
    given = [Judgment("1", f"t:{line}", system, value) for line in range(12) for system, value in (("a", 1), ("b", 3))]
    better = significant_pairs(difference_tests(given, ["a", "b"]), -1)
    assert (better, rank_clusters_by_pairs(["a", "b"], better)) == ([("a", "b")], [1, 2])
    assert contradiction_messages("errors", ["a", "b"], better, "mean", "the test") == []
