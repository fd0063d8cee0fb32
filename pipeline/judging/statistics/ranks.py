"""Ranks of systems by their tests, and what is said where the order of two systems and their test disagree.

An order is by all answers, a test by the segments that two systems share, each counted once: they may differ.
"""

from collections.abc import Sequence

from tfm.pipeline.judging.statistics.differences import DifferenceTest, rank_clusters
from tfm.pipeline.judging.statistics.preferences import SignTest


def significant_pairs(tests: Sequence[DifferenceTest] | Sequence[SignTest], sign: int = 1) -> list[tuple[str, str]]:
    """The better and the worse system of each test that is significant after correction.

    sign: -1 on a scale of which the lower is the better.
    """
    pairs = []
    for test in tests:
        advantage = sign * test.difference if isinstance(test, DifferenceTest) else test.won - test.lost
        if test.is_significant and advantage:
            pairs.append((test.first, test.second) if advantage > 0 else (test.second, test.first))
    return pairs


def rank_clusters_by_pairs(order: Sequence[str], better: Sequence[tuple[str, str]]) -> list[int]:
    """The rank cluster of each system, from 1: `order` has the best first, `better` is of `significant`."""
    return rank_clusters(order, lambda before, after: (before, after) in better)


def contradiction_messages(
    name: str, order: Sequence[str], better: Sequence[tuple[str, str]], by: str, test: str
) -> list[str]:
    """Warnings of significant tests that contradict the order of two systems, which then share a rank."""
    return [
        f"{name}: {loser} stands before {winner} by {by}, but {test} says that {winner} is significantly better: "
        "treat the order of these two as inconclusive"
        for winner, loser in better
        if order.index(loser) < order.index(winner)
    ]
