"""Preferences: strengths of systems by Bradley and Terry (1952), and the sign test for each pair of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components
from scipy.stats import binomtest

from tfm.data.errors import format_count
from tfm.pipeline.judging.statistics.minimums import (
    MIN_SEGMENTS,
    MIN_VALUES_OFF_MODE,
    ONE_SIDED_REASON,
    SAME_SHARE_REASON,
    differ_from_mode,
    round_to_digits,
    too_few_segments_problem,
)
from tfm.pipeline.judging.statistics.ratings import NUM_DRAWS, bootstrap_counts, expanded_interval_percentiles
from tfm.pipeline.significance.holm import SIGNIFICANCE_LEVEL, holm_correction

Floats = npt.NDArray[np.float64]

NUM_PRIOR_TIES = 1.0
"""Ties between every two systems, added to the data so that a system that always wins has a finite strength."""
PRIOR_BOUND_MESSAGE = "some systems won every comparison with others, so that the prior alone bounds it"
LOG_STRENGTH_TOLERANCE = 1e-10
MAX_ITERATIONS = 100_000


@dataclass(frozen=True)
class Preference:
    """The preference of a judge on a segment: `wins` is 1 for the first system, 0 for the second, 0.5 for a tie."""

    judge: str
    segment: str
    first: str
    second: str
    wins: float


@dataclass(frozen=True)
class SystemStrength:
    """A system's strength as a logarithm, the mean of all systems being 0, with its interval; and its comparisons.

    Without an interval of fewer than MIN_SEGMENTS segments, and where a system won or lost in fewer than
    MIN_VALUES_OFF_MODE of them, or its share of wins is one and the same in almost all, or the prior alone bounds the
    strengths (every draw of such data would say the same).
    """

    system: str
    value: float
    low: float | None
    high: float | None
    won: int
    tied: int
    lost: int
    no_interval_reason: str | None = None


@dataclass(frozen=True)
class SignTest:
    """On how many segments most judges preferred one of two systems, on how many neither, and the exact p.

    p_holm: corrected over all pairs of systems.
    """

    first: str
    second: str
    won: int
    tied: int
    lost: int
    p: float
    p_holm: float

    @property
    def is_significant(self) -> bool:
        """Whether the preference is significant at 5 % after correction."""
        return self.p_holm < SIGNIFICANCE_LEVEL


def preferences_from_best(
    judge: str, segment: str, shown_systems: Sequence[str], best_systems: Sequence[str]
) -> list[Preference]:
    """The preferences that a choice of the best systems implies: each beats all others, and the best ones tie."""
    preferences = []
    for first, second in combinations(shown_systems, 2):
        if first in best_systems or second in best_systems:
            wins = 0.5 * (1 + (first in best_systems) - (second in best_systems))
            preferences.append(Preference(judge, segment, first, second, wins))
    return preferences


def win_counts(preferences: Sequence[Preference], systems: Sequence[str]) -> tuple[list[str], Floats]:
    """Segments (N), and counts (N, K, K): how often judges preferred system i to j there, ties as half for each."""
    segments = list(dict.fromkeys(each.segment for each in preferences))
    row, column = ({name: i for i, name in enumerate(names)} for names in (segments, systems))
    counts = np.zeros((len(segments), len(systems), len(systems)))
    for preference in preferences:
        i, j = column[preference.first], column[preference.second]
        counts[row[preference.segment], i, j] += preference.wins
        counts[row[preference.segment], j, i] += 1 - preference.wins
    return segments, counts


def bradley_terry(wins: Floats, prior: float = NUM_PRIOR_TIES) -> Floats:
    """Logarithms of the strengths s (..., K), mean 0, that make the counts (..., K, K) likeliest.

    p(i preferred to j) = s_i / (s_i + s_j). By Hunter's MM algorithm (2004): s_i becomes
    wins_i / Σ_j n_ij / (s_i + s_j) until no logarithm moves by more than 1e-10. `prior` ties are added to each pair.
    """
    num = wins.shape[-1]
    wins = wins + prior / 2 * (1 - np.eye(num))
    comparisons, won = wins + np.swapaxes(wins, -1, -2), wins.sum(-1)
    logs = np.zeros(won.shape)
    for _ in range(MAX_ITERATIONS):
        s = np.exp(logs)
        updated = np.log(won) - np.log((comparisons / (s[..., :, None] + s[..., None, :])).sum(-1))
        updated -= updated.mean(-1, keepdims=True)
        change = float(np.abs(updated - logs).max())
        logs = updated
        if change < LOG_STRENGTH_TOLERANCE:
            break
    return logs


def bradley_terry_strengths(preferences: Sequence[Preference], systems: Sequence[str]) -> list[SystemStrength]:
    """Bradley and Terry's strength of each system, the strongest first; intervals by 1,000 draws of the segments."""
    segments, counts = win_counts(preferences, systems)
    values = bradley_terry(counts.sum(0))
    low, high = [None] * len(systems), [None] * len(systems)
    problem = _interval_problem(counts, systems)
    if problem is None:
        resamples = bootstrap_counts(len(segments), NUM_DRAWS)
        resampled_values = bradley_terry(np.tensordot(resamples, counts, 1))
        low, high = np.percentile(resampled_values, expanded_interval_percentiles(len(segments)), axis=0).tolist()
    strengths = []
    for i, system in enumerate(systems):
        wins = [
            each.wins if each.first == system else 1 - each.wins
            for each in preferences
            if system in (each.first, each.second)
        ]
        won, tied, lost = (sum(win == wanted for win in wins) for wanted in (1, 0.5, 0))
        strengths.append(SystemStrength(system, float(values[i]), low[i], high[i], won, tied, lost, problem))
    return sorted(strengths, key=lambda each: -each.value)


def _interval_problem(counts: Floats, systems: Sequence[str]) -> str | None:
    """Why strengths have no intervals, by the counts (N, K, K); a tie is half won and half lost."""
    won, lost = counts.sum(2), counts.sum(1)
    sides = zip(systems, (won > 0).sum(0).tolist(), (lost > 0).sum(0).tolist(), strict=True)
    problems = [
        ONE_SIDED_REASON.format(system, format_count(wins, "segment"), losses, MIN_VALUES_OFF_MODE)
        for system, wins, losses in sides
        if min(wins, losses) < MIN_VALUES_OFF_MODE
    ]
    for system, wins, losses in zip(systems, won.T, lost.T, strict=True):
        mask = wins + losses > 0
        num_varied = sum(differ_from_mode(round_to_digits((wins[mask] / (wins + losses)[mask]).tolist())))
        problems += (
            [SAME_SHARE_REASON.format(system, format_count(num_varied, "segment"), MIN_VALUES_OFF_MODE)]
            if num_varied < MIN_VALUES_OFF_MODE
            else []
        )
    bounded = len(connected_groups(counts.sum(0), systems, "strong")) > 1
    return (
        too_few_segments_problem(len(counts), MIN_SEGMENTS)
        or next(iter(problems), None)
        or (PRIOR_BOUND_MESSAGE if bounded else None)
    )


def sign_tests(preferences: Sequence[Preference], systems: Sequence[str]) -> list[SignTest]:
    """The two-sided sign test of every two systems that met: segments count once, by the majority of their judges.

    Segments without a majority are left out of the test, as is usual.
    """
    _, counts = win_counts(preferences, systems)
    tests = []
    for (i, first), (j, second) in combinations(enumerate(systems), 2):
        mask = counts[:, i, j] + counts[:, j, i] > 0
        signs = np.sign(counts[mask, i, j] - counts[mask, j, i])
        won, tied, lost = (int((signs == wanted).sum()) for wanted in (1, 0, -1))
        if mask.any():
            p = float(binomtest(won, won + lost).pvalue) if won + lost else 1.0
            tests.append(SignTest(first, second, won, tied, lost, p, p))
    p_values = holm_correction([test.p for test in tests])
    return [replace(test, p_holm=p) for test, p in zip(tests, p_values, strict=True)]


def connected_groups(wins: Floats, systems: Sequence[str], connection: Literal["weak", "strong"]) -> list[list[str]]:
    """The systems in groups, by the counts (K, K).

    weak: groups that never met, not even through others, so that no order of them follows from the data. strong: more
    than one group means that one of them won every comparison with another, and without a prior the strengths would
    have no end (Ford 1957).
    """
    _, numbers = connected_components(wins > 0, directed=True, connection=connection)
    groups: dict[int, list[str]] = {}
    for system, number in zip(systems, numbers, strict=True):
        groups.setdefault(int(number), []).append(system)
    return list(groups.values())
