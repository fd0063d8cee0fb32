"""Which pairs stay: every rule in order, each on those that passed all before it."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tfm.pipeline.cleaning.limits import Limit
from tfm.pipeline.cleaning.rules.registry import CleaningRule
from tfm.pipeline.cleaning.text_batch import Bools, Floats
from tfm.pipeline.cleaning.work_folder import MeasurementFolder

Keys = NDArray[np.uint64]
LazyPairScorer = Callable[[CleaningRule, Bools], Floats]
"""A rule, and which pairs (n,) are to be scored -> scores (n,), NaN where there is none."""


@dataclass(frozen=True)
class RuleResult:
    """Effect of a rule.

    Args:
        name: of the rule.
        measured: pairs that it looked at.
        alone: pairs that it would drop by itself, of those.
        dropped: pairs that it dropped, of those that passed all rules before.
        changed: pairs whose text it changed.
        limits: as they were used, percentiles as values.
    """

    name: str
    measured: int
    alone: int
    dropped: int
    changed: int | None
    limits: tuple[Limit, ...]


@dataclass(frozen=True)
class Decisions:
    """The fate of all pairs.

    Args:
        dropped_by: (n,) 0 for a pair that stays, else the number of the rule that dropped it, from 1.
        results: of each rule, in order.
        scores: (n,) those that are not in the work folder, by column.
    """

    dropped_by: NDArray[np.int16]
    results: list[RuleResult] = field(default_factory=list)
    scores: dict[str, Floats] = field(default_factory=dict)


def apply_rules(
    rules: Sequence[CleaningRule],
    work: MeasurementFolder,
    score_late: LazyPairScorer,
    *,
    score_dropped_pairs: bool = False,
) -> Decisions:
    """Apply all rules to what was measured.

    Args:
        rules: in order.
        work: scores and keys of all pairs.
        score_late: scores pairs by a model or a command, for the rules that need one.
        score_dropped_pairs: whether late rules score also pairs that another rule dropped.
    """
    decisions = Decisions(np.zeros(work.rows, np.int16))
    for number, rule in enumerate(rules, 1):
        alive = decisions.dropped_by == 0
        if rule.kind == "transform":
            changed = int(np.count_nonzero(work.read_scores(rule.name) == 1.0))
            decisions.results.append(RuleResult(rule.name, work.rows, 0, 0, changed, ()))
            continue
        if rule.kind == "dedup_keys":
            has_failed, result = _apply_keys(rule, work, alive, decisions)
        else:
            if rule.kind == "model_score":
                late_scores = score_late(rule, alive)
                if score_dropped_pairs and not alive.all():  # apart: a pair's score may depend on those beside it
                    late_scores = np.where(alive, late_scores, score_late(rule, ~alive))
                decisions.scores[rule.name] = late_scores
                scores = late_scores[:, None]
            else:
                scores = np.stack([work.read_scores(name) for name in rule.score_names], 1)
            has_failed, result = _apply_scores(rule, scores, alive)
        decisions.dropped_by[has_failed & alive] = number
        decisions.results.append(result)
    return decisions


def is_first_occurrence(keys: Iterable[Keys], count: int) -> Bools:
    """(m,) whether no earlier pair has one of a pair's keys. keys: of each kind (m,), one in memory; count: m."""
    first = np.ones(count, np.bool_)
    for duplicate_rows in map(_repeated_rows, keys):
        first[duplicate_rows] = False
    return first


def count_pairs_with_equal_key(keys: Iterable[Keys], count: int) -> NDArray[np.int64]:
    """(m,) how many pairs have a pair's key, of the kind of which there are most; see `is_first_occurrence`."""
    max_counts = np.zeros(count, np.int64)
    for counts in map(_count_equal_keys, keys):
        np.maximum(max_counts, counts, out=max_counts)
    return max_counts


def percentile_limit(scores: Floats, limit: Limit) -> Limit:
    """Return a limit with a value in place of a percentile: at most that share of the scores (m,) is worse.

    Equal scores have the same fate.
    """
    finite_scores = scores[~np.isnan(scores)]
    if limit.percentile is None or not len(finite_scores):
        return limit
    rank = math.floor(limit.percentile * len(finite_scores) / 100)
    if limit.higher_is_better:
        return limit._replace(low=float(np.partition(finite_scores, rank)[rank]))
    rank = len(finite_scores) - 1 - rank
    return limit._replace(high=float(np.partition(finite_scores, rank)[rank]))


def _repeated_rows(keys: Keys) -> NDArray[np.int64]:
    """The rows of keys (m,) that an earlier row has too."""
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    rows: NDArray[np.int64] = order[1:][sorted_keys[1:] == sorted_keys[:-1]]
    return rows


def _count_equal_keys(keys: Keys) -> NDArray[np.int64]:
    """(m,) how many of keys (m,) are equal to each of them."""
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    begins = np.flatnonzero(np.append(True, sorted_keys[1:] != sorted_keys[:-1])[: len(order)])
    sizes = np.diff(np.append(begins, len(order)))
    counts = np.empty(len(order), np.int64)
    counts[order] = np.repeat(sizes, sizes)
    return counts


def _apply_scores(rule: CleaningRule, scores: Floats, alive: Bools) -> tuple[Bools, RuleResult]:
    """The pairs (n,) that fail a rule by their scores (n, columns). A percentile is of the pairs that are still there;
    by itself the rule would take it of all that it looked at."""

    def find_limits(rows: Bools) -> tuple[Limit, ...]:
        return tuple(percentile_limit(column[rows], limit) for column, limit in zip(scores.T, rule.limits, strict=True))

    limits, is_measured = find_limits(alive), ~np.isnan(scores[:, 0])
    has_failed = rule.find_failed_pairs(scores, limits)
    failed_alone = rule.find_failed_pairs(scores, find_limits(is_measured))
    num_measured, num_alone, num_dropped = (
        int(np.count_nonzero(each)) for each in (is_measured, failed_alone, has_failed & alive)
    )
    return has_failed, RuleResult(rule.name, num_measured, num_alone, num_dropped, None, limits)


def _apply_keys(
    rule: CleaningRule, work: MeasurementFolder, alive: Bools, decisions: Decisions
) -> tuple[Bools, RuleResult]:
    """The pairs (n,) that fail a rule by the keys of all; among all pairs, and among those that are still there."""
    score_columns = []
    for rows in (np.ones(work.rows, np.bool_), alive):
        scores = np.full(work.rows, np.nan)
        keys, count = (work.read_keys(rule.name, number)[rows] for number in range(rule.num_keys)), int(rows.sum())
        scores[rows] = (
            count_pairs_with_equal_key(keys, count) if rule.name == "boilerplate" else ~is_first_occurrence(keys, count)
        )
        score_columns.append(scores)
    decisions.scores[rule.name] = score_columns[1]
    (_, result_alone), (has_failed, result) = (_apply_scores(rule, scores[:, None], alive) for scores in score_columns)
    return has_failed, replace(result, alone=result_alone.alone, measured=work.rows)
