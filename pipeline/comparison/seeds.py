"""Runs that differ in their seed alone, folded into one row: the mean of a figure, and how far seeds scatter it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from tfm.pipeline.artifacts.canonical_json import sha256_of_json, to_jsonable
from tfm.pipeline.comparison.signatures import comparable_parts, describe_signature_difference
from tfm.pipeline.reports.run_summary import RunSummary

SCORE_PREFIXES = ("valid", "test")
"""Prefixes before the dot in the name of a figure that is a score, and whose signature names its definition."""


@dataclass(frozen=True)
class ComparisonRow:
    """A run, or several that differ in their seed alone."""

    name: str
    runs: Sequence[RunSummary]

    @property
    def seeds(self) -> list[int | None]:
        return [run.model.seed for run in self.runs]

    def values(self, figure: str) -> list[float]:
        """A figure of each run that has it."""
        return [run.figures[figure].score for run in self.runs if figure in run.figures]

    def runs_without(self, figure: str) -> list[str]:
        """The names of the runs that do not have a figure which others of the row have."""
        names = [run.name for run in self.runs if figure not in run.figures]
        return names if len(names) < len(self.runs) else []

    def no_mean_reason(self, figure: str) -> str | None:
        """Return the difference between signatures by which a score has no mean over its runs; None if it has."""
        part, _, name = figure.partition(".")
        if part not in SCORE_PREFIXES:
            return None
        pairs = [(run, run.figures[figure].signature) for run in self.runs if figure in run.figures]
        for run, signature in pairs[1:]:
            parts, first = (comparable_parts(name, each) for each in (signature, pairs[0][1]))
            if parts != first:
                return f"no mean, as {run.name} has {describe_signature_difference(parts, first)} of {pairs[0][0].name}"
        return None

    def mean(self, figure: str) -> float | None:
        """The mean of a figure over its runs; None if no run has it, or there is a `no_mean_reason`."""
        values = self.values(figure)
        return fmean(values) if values and self.no_mean_reason(figure) is None else None

    def deviation(self, figure: str) -> float | None:
        """The standard deviation of a figure over seeds, sqrt(sum (x - mean)^2 / (n - 1)); None for fewer than two
        seeds, or if one is infinite.
        """
        values = self.values(figure) if self.no_mean_reason(figure) is None else []
        return stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else None


def group_by_seed(runs: Sequence[RunSummary]) -> list[ComparisonRow]:
    """Group runs that have the same config and different seeds into rows, in the order of their first runs.

    Runs of the same seed as well measure nothing of chance, and stay apart. A row is called NAME where its runs are
    NAME-SEED, as `tfm run --seeds` names them; else by the names of them all.
    """
    runs_by_config: dict[str, list[RunSummary]] = {}
    for run in runs:
        runs_by_config.setdefault(_config_digest(run), []).append(run)
    groups: list[list[RunSummary]] = []
    for group in runs_by_config.values():
        seeds = {run.model.seed for run in group}
        groups += [group] if len(seeds) == len(group) else [[run] for run in group]
    positions = {run.name: number for number, run in enumerate(runs)}
    groups.sort(key=lambda group: positions[group[0].name])
    stems = [_common_stem(group) for group in groups]
    names = [run.name for run in runs]
    return [
        ComparisonRow(
            stem
            if stem is not None and stems.count(stem) == 1 and stem not in names
            else ", ".join(run.name for run in group),
            group,
        )
        for stem, group in zip(stems, groups, strict=True)
    ]


def duplicate_seed_reasons(runs: Sequence[RunSummary]) -> list[str]:
    """Return the reasons why runs that differ in their seed share no row: some have the same seed."""
    runs_by_config: dict[str, list[RunSummary]] = {}
    for run in runs:
        runs_by_config.setdefault(_config_digest(run), []).append(run)
    reasons = []
    for group in runs_by_config.values():
        seeds = [run.model.seed for run in group]
        names = [run.name for run in group if seeds.count(run.model.seed) > 1]
        if names and len({*seeds}) > 1:
            reasons.append(
                f"{', '.join(names)} have the same settings and the same seed, and are no two samples: all runs of "
                "this recipe are shown apart, without a mean over seeds; leave out all but one"
            )
    return reasons


def one_row_per_run(runs: Sequence[RunSummary]) -> list[ComparisonRow]:
    """Each run as a row of its own."""
    return [ComparisonRow(run.name, [run]) for run in runs]


def _config_digest(run: RunSummary) -> str:
    """A digest of all settings but the seed."""
    return sha256_of_json({key: to_jsonable(value) for key, value in run.config.items() if key != "seed"})


def _common_stem(runs: Sequence[RunSummary]) -> str | None:
    """The common name of the runs of one `tfm run --seeds`; None for other runs."""
    if len(runs) == 1:
        return None
    stems = {run.name.removesuffix(f"-{run.model.seed}") for run in runs}
    return stems.pop() if len(stems) == 1 and all(run.name.endswith(f"-{run.model.seed}") for run in runs) else None
