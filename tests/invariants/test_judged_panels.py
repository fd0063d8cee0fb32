"""Of whatever judges answer there is a table: no error, no warning, and no rank that its own tests contradict."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.pipeline.judging import panel
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.judging.analysis import LOWER_IS_BETTER_SCALES, analyze_answers
from tfm.pipeline.judging.answer_files import read_answers
from tfm.pipeline.judging.campaign import CampaignKind
from tfm.pipeline.judging.findings import Findings
from tfm.pipeline.judging.findings_tables import tables_of_findings
from tfm.pipeline.judging.making.assembly import CampaignSpec, make_campaign
from tfm.pipeline.judging.metric_correlation import add_correlations, campaign_references
from tfm.pipeline.judging.statistics.careless import JudgeStats, judge_verdicts
from tfm.pipeline.judging.statistics.ratings import Judgment

KINDS: tuple[CampaignKind, ...] = ("likert", "esa", "pairwise", "best")
SYSTEMS = dict.fromkeys("abc", 0.3)


def always(value: float) -> panel.Judge:
    """One value for whatever is shown."""
    return lambda true, random: lambda shown: value


def by_system(values: dict[str, float]) -> panel.Judge:
    """One value for each system, whatever it wrote."""
    return lambda true, random: lambda shown: values[shown.system or "a"]


def agreeing(true: panel.Quality, random: np.random.Generator) -> panel.Quality:
    """What the text is worth, exactly."""
    return true


def contrary(true: panel.Quality, random: np.random.Generator) -> panel.Quality:
    return lambda shown: 6 - true(shown)


JUDGES: dict[str, panel.Judge] = {
    "agreeing": agreeing,
    "contrary": contrary,
    "careful": panel.careful,
    "clicking": panel.clicking,
    "best": always(5.0),
    "worst": always(1.0),
    "by system": by_system({"a": 1.0, "b": 3.0, "c": 5.0}),
    "reversed": by_system({"a": 5.0, "b": 3.0, "c": 1.0}),
}


def findings(
    folder: Path, kind: CampaignKind, judges: list[str], segments: int, each: int | None, seed: int
) -> Findings:
    wanted = CampaignSpec(kind, num_segments=segments, num_judges=len(judges), judges_per_text=each, seed=seed)
    campaign = make_campaign(wanted, panel.systems(segments, seed, SYSTEMS))
    files = panel.answer(campaign, [JUDGES[name] for name in judges], folder, seed)
    return analyze_answers(campaign, read_answers(campaign, files))


def check_ranks(found: Findings) -> None:
    """No system ranks behind another that it is significantly better than; where it stands behind, that is said."""
    parts: list[tuple[str, dict[str, tuple[int, int]], list[tuple[str, str]]]] = []
    for scale in found.scales:
        sign = -1 if scale.name in LOWER_IS_BETTER_SCALES else 1
        better = [
            (t.first, t.second) if sign * t.difference > 0 else (t.second, t.first)
            for t in scale.tests
            if t.is_significant
        ]
        parts.append((scale.name, {s.system: (s.rank, n) for n, s in enumerate(scale.systems)}, better))
    if found.choices is not None:
        better = [
            (t.first, t.second) if t.won > t.lost else (t.second, t.first)
            for t in found.choices.tests
            if t.is_significant
        ]
        ranks = {s.strength.system: (s.rank, n) for n, s in enumerate(found.choices.systems)}
        parts.append(("preferences", ranks, better))
    for name, places, better in parts:
        for one, worse in better:
            assert places[one][0] <= places[worse][0], f"{name}: {one} is better than {worse}"
            if places[one][1] > places[worse][1]:
                assert any(
                    note.startswith(f"{name}: {worse} stands before {one}") and f"{one} is significantly better" in note
                    for note in found.notes
                )
        for one, (rank, _) in places.items():
            for other, (other_rank, _) in places.items():
                if rank < other_rank:
                    assert (one, other) in better, f"{name}: {one} ranks before {other}"


def check(folder: Path, kind: CampaignKind, judges: list[str], segments: int, each: int | None, seed: int) -> None:
    found = findings(folder, kind, judges, segments, each, seed)
    check_ranks(found)
    config = EvaluationConfig(metrics=("chrf", "rouge1", "exact_match"))
    found = add_correlations(found, campaign_references(found.campaign), config)
    json.dumps(found.as_json(), allow_nan=False)
    assert all(row for table in tables_of_findings(found) for row in table.rows)
    for scale in found.scales:
        for mean in (one for system in scale.systems for one in (system.mean, system.z) if one is not None):
            assert mean.low is None or mean.high is None or mean.low < mean.high


PANELS = st.tuples(
    st.sampled_from(KINDS),
    st.lists(st.sampled_from(sorted(JUDGES)), min_size=1, max_size=5),
    st.integers(1, 14),
    st.sampled_from([None, 1]),
    st.integers(0, 1000),
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PANELS)
def test_any_panel_is_read(tmp_path: Path, drawn: tuple[CampaignKind, list[str], int, int | None, int]) -> None:
    check(tmp_path, *drawn)


@pytest.mark.parametrize("kind", KINDS)
def test_judges_who_agree_completely(tmp_path: Path, kind: CampaignKind) -> None:
    check(tmp_path, kind, ["agreeing"] * 3, 6, None, 1)


@pytest.mark.parametrize("kind", ["likert", "pairwise"])
def test_judges_who_contradict_each_other_completely(tmp_path: Path, kind: CampaignKind) -> None:
    check(tmp_path, kind, ["agreeing", "contrary", "best"], 6, None, 1)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(
        st.lists(st.sampled_from([1.0, 1.0 + 1e-16, 0.1 + 0.2, 0.3, 2.0, 3.0, 5.0, 1e-300]), min_size=12, max_size=12),
        min_size=1,
        max_size=5,
    )
)
def test_verdicts_on_any_values(values: list[list[float]]) -> None:
    """Also of judges who agree completely, and of values that differ in the last bit."""
    given_ = [
        Judgment(f"judge-{number}", f"t:{line}", "s", value)
        for number, row in enumerate(values)
        for line, value in enumerate(row)
    ]
    conducts = [JudgeStats(f"judge-{number}", 12, 12) for number in range(len(values))]
    for verdict in judge_verdicts(conducts, given_):
        assert verdict.correlation is None or -1 - 1e-9 <= verdict.correlation <= 1 + 1e-9
