"""The findings of a campaign: every statistic of its answers, put together."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tfm.pipeline.artifacts.canonical_json import to_jsonable
from tfm.pipeline.judging.answers import Answer
from tfm.pipeline.judging.campaign import Campaign
from tfm.pipeline.judging.statistics.agreement import CohenKappa, KrippendorffAlpha
from tfm.pipeline.judging.statistics.careless import CarelessnessVerdict
from tfm.pipeline.judging.statistics.correlation import MetricCorrelation
from tfm.pipeline.judging.statistics.differences import DifferenceTest
from tfm.pipeline.judging.statistics.preferences import SignTest, SystemStrength
from tfm.pipeline.judging.statistics.ratings import Estimate, Judgment, MeanRating

METHOD_DESCRIPTIONS: Mapping[str, str] = {
    "means": "of segments, each by the mean of its judges; intervals by Student's t, of 100 segments (errors: 200)",
    "z": "(value - mean of the judge) / standard deviation of the judge",
    "differences": "of z; paired: approximate randomisation; unpaired: permutation test; 10,000 trials, two-sided; "
    "intervals by Student's or Welch's t, of 20 segments, of unpaired 100 each (errors: 200)",
    "strengths": "Bradley and Terry, ties half a win, one tie added to each pair; intervals as those of alpha",
    "preferences": "sign test of the majority of each segment, exact, two-sided",
    "p_holm": "Holm's correction over all pairs of systems of a scale, level 0.05",
    "alpha": "Krippendorff's; intervals by 1,000 draws of 100 segments or more, expanded percentiles",
    "kappas": "Cohen's, of each two judges; weights quadratic, or none where the level is nominal; intervals likewise",
    "correlations": "Kendall's tau-b and Pearson's r with z or preferences; intervals as those of alpha",
    "no_interval_reason": "why there is no interval: fewer than 93 of 100 would hold the true figure; at least 10 "
    "segments must differ from the commonest value (strengths: be won, and be lost, by each system; a tie is both)",
}
"""How each figure is found."""


@dataclass(frozen=True)
class SystemRating:
    """A system on one scale. rank: its cluster; z: the mean of the judges' z-scores, None if no judge has any."""

    system: str
    rank: int
    mean: MeanRating
    z: MeanRating | None
    num_ratings: int


@dataclass(frozen=True)
class ScaleFindings:
    """One scale: systems, the best first; tests and correlations are on z-scores, agreement on the values as given."""

    name: str
    lower_is_better: bool
    systems: Sequence[SystemRating]
    tests: Sequence[DifferenceTest]
    alpha: KrippendorffAlpha
    kappas: Sequence[CohenKappa]
    mean_kappa: Estimate
    z_scores: Sequence[Judgment]
    without_z: Sequence[str]


@dataclass(frozen=True)
class SystemPreference:
    """A system by preferences. rank: its cluster, by the sign tests."""

    rank: int
    strength: SystemStrength


@dataclass(frozen=True)
class ChoiceFindings:
    """Preferences: systems, the strongest first, and the tests of each pair; pairs: of items that were shown."""

    systems: Sequence[SystemPreference]
    tests: Sequence[SignTest]
    alpha: KrippendorffAlpha
    kappas: Sequence[CohenKappa]
    mean_kappa: Estimate
    pairs: Sequence[Judgment]


@dataclass(frozen=True)
class Findings:
    """All findings of a campaign.

    Args:
        campaign: the campaign.
        answers: the answers that count.
        without: the judges who are left out.
        judges: every judge who answered, those left out too.
        scales: the findings of each scale.
        errors: in ESA, the mean number of errors of each severity per text, by system.
        choices: the findings of preferences.
        notes: remarks on the findings.
        correlations: by scale, or "preference".
    """

    campaign: Campaign
    answers: Sequence[Answer]
    without: Sequence[str]
    judges: Sequence[CarelessnessVerdict]
    scales: Sequence[ScaleFindings]
    errors: Mapping[str, Mapping[str, MeanRating]]
    choices: ChoiceFindings | None
    notes: Sequence[str]
    correlations: Mapping[str, Sequence[MetricCorrelation]] = field(default_factory=dict)

    def as_json(self) -> Any:
        """Everything but the single ratings."""
        return to_jsonable(
            {
                "campaign": self.campaign.fingerprint,
                "kind": self.campaign.kind,
                "without": list(self.without),
                "judges": [_verdict_json(each) for each in self.judges],
                "scales": {each.name: _scale_json(each) for each in self.scales},
                "errors": {name: {s: asdict(mean) for s, mean in by.items()} for name, by in self.errors.items()},
                "preferences": self.choices and _choices_json(self.choices),
                "correlations": {name: [asdict(each) for each in some] for name, some in self.correlations.items()},
                "methods": METHOD_DESCRIPTIONS,
                "notes": list(self.notes),
            }
        )


def _scale_json(scale: ScaleFindings) -> dict[str, Any]:
    fields = {key: value for key, value in asdict(scale).items() if key not in ("name", "z_scores")}
    return {**fields, "tests": [{**asdict(test), "stands": test.is_significant} for test in scale.tests]}


def _choices_json(choices: ChoiceFindings) -> dict[str, Any]:
    fields = {key: value for key, value in asdict(choices).items() if key != "pairs"}
    systems = [{"rank": each.rank, **asdict(each.strength)} for each in choices.systems]
    return {
        **fields,
        "systems": systems,
        "tests": [{**asdict(test), "stands": test.is_significant} for test in choices.tests],
    }


def _verdict_json(verdict: CarelessnessVerdict) -> dict[str, Any]:
    conduct = verdict.conduct
    return {
        "judge": conduct.judge,
        "items": conduct.num_items,
        "answered": conduct.num_answered,
        "checks": len(conduct.checks),
        "checks_passed": conduct.checks.count(True),
        "repeats": len(conduct.repeats),
        "repeats_alike": conduct.repeats.count(True),
        "median_seconds": conduct.median_seconds,
        "correlation": verdict.correlation,
        "correlation_units": verdict.num_units,
        "seems_careless": verdict.reasons,
    }
