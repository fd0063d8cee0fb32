"""What a simulated panel says: the planted difference is found, and exactly the careless judges are named."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.pipeline.judging import panel
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.judging.analysis import analyze_answers
from tfm.pipeline.judging.answer_files import read_answers
from tfm.pipeline.judging.campaign import Campaign, CampaignKind
from tfm.pipeline.judging.findings import Findings
from tfm.pipeline.judging.findings_tables import tables_of_findings
from tfm.pipeline.judging.making.assembly import CampaignSpec, make_campaign
from tfm.pipeline.judging.metric_correlation import (
    CORRELATED_METRICS,
    add_correlations,
    campaign_references,
    read_references,
)
from tfm.pipeline.judging.statistics.correlation import MetricScores

KINDS: Sequence[CampaignKind] = ("likert", "esa", "pairwise", "best")
ORDER = list(panel.WRONG)


def judged(
    folder: Path,
    kind: CampaignKind,
    seed: int,
    *,
    segments: int = 80,
    each: int | None = 2,
    judges: Sequence[panel.Judge] = panel.PANEL,
    wrong: Mapping[str, float] = panel.WRONG,
    without: Sequence[str] = (),
) -> Findings:
    """What a panel says of systems, by way of the files that its judges send back."""
    each = None if each is None else min(each, len(judges))
    wanted = CampaignSpec(kind, num_segments=segments, num_judges=len(judges), judges_per_text=each, seed=seed)
    campaign = make_campaign(wanted, panel.systems(segments, seed, wrong))
    return analyze_answers(campaign, read_answers(campaign, panel.answer(campaign, judges, folder, seed)), without)


def named(findings: Findings) -> list[str]:
    return [each.conduct.judge for each in findings.judges if each.reasons]


def is_found(findings: Findings) -> bool:
    """Whether, on all scales, no system ranks before a better one, and the best and the worst are apart."""
    if findings.choices is not None:
        ranks = [{each.strength.system: each.rank for each in findings.choices.systems}]
    else:
        ranks = [{each.system: each.rank for each in scale.systems} for scale in findings.scales]
    return all(rank["good"] <= rank["middling"] <= rank["poor"] != rank["good"] for rank in ranks)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(2)
def test_a_panel_with_three_careless_judges(tmp_path: Path, kind: CampaignKind) -> None:
    findings = judged(tmp_path, kind, seed=1)
    assert is_found(findings)
    assert named(findings) == panel.CARELESS
    told = [note for note in findings.notes if "seems careless" in note]
    assert [note.split()[0] for note in told] == panel.CARELESS
    assert all("The answers count; --without judge-" in note for note in told)
    for scale in findings.scales:
        z = {each.system: each.z.value for each in scale.systems if each.z is not None}
        for test in scale.tests:  # of z, over all segments
            assert test.difference == pytest.approx(z[test.first] - z[test.second], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_over_many_seeds(tmp_path: Path, kind: CampaignKind) -> None:
    """Each of 25 panels finds the planted difference; each names the three careless judges and nobody else."""
    found = [judged(tmp_path, kind, seed) for seed in range(100, 125)]
    assert [is_found(each) for each in found] == [True] * 25
    assert [named(each) for each in found] == [panel.CARELESS] * 25


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["likert", "pairwise"])
def test_where_everyone_sees_everything(tmp_path: Path, kind: CampaignKind) -> None:
    for seed in range(10):
        found = judged(tmp_path, kind, seed, segments=25, each=None)
        assert is_found(found)
        assert named(found) == panel.CARELESS


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "num_judges"), [("likert", 4), ("likert", 2), ("pairwise", 4)])
def test_equal_systems_are_seldom_told_apart(tmp_path: Path, kind: CampaignKind, num_judges: int) -> None:
    """Of 200 panels on three equal systems at most 5 % may see any difference, by Holm's correction over the pairs.

    More than 16 of 200 are seen with a chance of 2 % where it is 5 %. Two judges see one system of a segment alone, so
    that the tests are unpaired.
    """
    equal = dict.fromkeys(ORDER, 0.24)
    seen = 0
    for seed in range(200):
        found = judged(tmp_path, kind, seed, segments=30, judges=[panel.careful] * num_judges, wrong=equal)
        tests = found.choices.tests if found.choices else found.scales[0].tests
        seen += any(test.is_significant for test in tests)
    assert seen <= 16


@pytest.mark.parametrize("kind", ["esa", "pairwise"])
def test_the_order_of_files_and_answers_changes_no_figure(tmp_path: Path, kind: CampaignKind) -> None:
    campaign = make_campaign(CampaignSpec(kind, num_segments=50, num_judges=2), panel.systems(50, 3, panel.WRONG))
    files = panel.answer(campaign, [panel.careful, panel.clicking], tmp_path, seed=3)
    config = EvaluationConfig(metrics=("exact_match",))
    answers = [read_answers(campaign, files), read_answers(campaign, files[::-1])]
    answers[1].reverse()
    first, second = (
        add_correlations(analyze_answers(campaign, each), campaign_references(campaign), config) for each in answers
    )
    assert first.as_json() == second.as_json()


def test_without_leaves_out_and_changes_no_verdict(tmp_path: Path) -> None:
    everyone = judged(tmp_path, "likert", seed=2, segments=40)
    careful = judged(tmp_path, "likert", seed=2, segments=40, without=panel.CARELESS)
    assert careful.judges == everyone.judges
    assert sum(each.num_ratings for each in everyone.scales[0].systems) == 440
    assert sum(each.num_ratings for each in careful.scales[0].systems) == 320
    assert careful.scales[0].alpha.value > 0.5 > everyone.scales[0].alpha.value  # type: ignore[operator]
    assert len(careful.scales[0].kappas) == 28
    assert [note for note in careful.notes if "careless" in note] == []
    assert "judge-9 is left out (--without)" in careful.notes
    with pytest.raises(RecipeError, match="--without judge-99: no such judge; answers are from judge-1, judge-2"):
        judged(tmp_path, "likert", seed=2, segments=10, without=["judge-99"])
    with pytest.raises(RecipeError, match="no answer on the systems is left"):
        judged(tmp_path, "likert", seed=2, segments=10, judges=[panel.careful], without=["judge-1"])


def stopped(campaign: Campaign, files: Sequence[Path], first: int) -> Findings:
    """The findings where the first judge stopped after so many answers."""
    content = json.loads(files[0].read_text("utf-8"))
    files[0].write_text(json.dumps({**content, "answers": content["answers"][:first]}), encoding="utf-8")
    return analyze_answers(campaign, read_answers(campaign, files, partial=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_judge_who_stopped_early_is_counted_and_told(tmp_path: Path, kind: CampaignKind) -> None:
    campaign = make_campaign(
        CampaignSpec(kind, num_segments=20, num_judges=3, judges_per_text=2, seed=1), panel.systems(20, 1)
    )
    found = stopped(campaign, panel.answer(campaign, [panel.careful] * 3, tmp_path, 1), 5)
    num = len(campaign.judges[0].items)
    assert [note for note in found.notes if note.startswith(f"judge-1 answered 5 of {num} items")]
    assert [each.conduct.num_answered for each in found.judges] == [5, *(len(j.items) for j in campaign.judges[1:])]


@pytest.mark.parametrize("kind", KINDS)
def test_one_judge_alone(tmp_path: Path, kind: CampaignKind) -> None:
    """There is nobody to agree with, and of each segment one system alone is rated."""
    found = judged(tmp_path, kind, seed=1, segments=12, judges=[panel.careful])
    assert found.judges[0].correlation is None
    for scale in found.scales:
        assert (scale.alpha.value, scale.kappas) == (None, [])
        assert [(test.paired, test.num_first) for test in scale.tests] == [(False, 4)] * 3
    rows = [row for table in tables_of_findings(found) for row in table.rows]
    assert rows
    json.dumps(found.as_json(), allow_nan=False)


def test_a_system_that_always_wins_is_told(tmp_path: Path) -> None:
    always = {"good": 0.0, "poor": 0.9}
    found = judged(tmp_path, "pairwise", seed=1, segments=20, judges=[panel.careful] * 2, wrong=always)
    assert found.notes == [
        "in good | poor one group won every comparison with another: how far apart they are is not measured, "
        "only limited by the prior"
    ]
    assert found.choices is not None
    assert found.choices.systems[0].strength.low is None


@pytest.mark.parametrize("kind", ["esa", "pairwise"])
def test_metrics_agree_with_judges_who_count_errors(tmp_path: Path, kind: CampaignKind) -> None:
    found = judged(tmp_path, kind, seed=1, segments=40, judges=[panel.careful] * 4)
    done: list[str] = []
    found = add_correlations(
        found, campaign_references(found.campaign), EvaluationConfig(metrics=CORRELATED_METRICS), {}, done.append, 20
    )
    assert done == [*CORRELATED_METRICS]
    assert [*found.correlations] == (["score", "errors"] if kind == "esa" else ["preference"])
    for correlations in found.correlations.values():
        assert [each.metric for each in correlations] == [*CORRELATED_METRICS]
        for each in correlations:
            assert each.signature
            assert each.pearson.value is not None
            assert each.pearson.value > 0.3, f"{each.metric}: TER and errors are turned, so that all agree"
            assert each.num_segments == 40
            assert each.num_systems == 3
            assert each.system_kendall == 1 or each.metric == "exact_match", "two systems match nowhere"
    ter = next(each for each in found.correlations["score" if kind == "esa" else "preference"] if each.metric == "ter")
    assert ter.pearson.value is not None
    assert ter.pearson.value > 0.7, "judges count wrong words, as TER does"
    assert "correlations by system are of 3 systems: with fewer than 5 they mean little" in found.notes
    text = json.dumps(found.as_json(), allow_nan=False)
    assert {"campaign", "kind", "judges", "correlations"} <= json.loads(text).keys()


def same_mark(true: panel.Quality, random: object) -> panel.Quality:
    """A judge who gives every text the same mark."""
    return lambda shown: 3.0


def test_nothing_is_said_of_correlations_by_system_where_there_are_none(tmp_path: Path) -> None:
    """Judges with one mark for all have no z, and no metric correlates with them."""
    found = judged(tmp_path, "likert", seed=1, segments=20, judges=[same_mark] * 2)
    found = add_correlations(found, campaign_references(found.campaign), EvaluationConfig(metrics=("chrf",)))
    assert [each.num_systems for some in found.correlations.values() for each in some] == [0, 0]
    assert not any("correlations by system" in note for note in found.notes)


def test_a_text_too_long_for_a_metric_is_named_by_its_line_in_the_test_set(tmp_path: Path) -> None:
    found = judged(tmp_path, "likert", seed=1, segments=12, judges=[panel.careful])
    wanted = campaign_references(found.campaign)
    last = max(found.answers, key=lambda answer: answer.item.line).item
    long = {**wanted, f"t:{last.line}": ["wort " * 1001]}
    notes = add_correlations(found, long, EvaluationConfig(metrics=("ter", "exact_match"))).notes
    assert f"ter: line {last.line} has 1,001 words; compared are at most 1,000" in notes


def test_references_from_a_file(tmp_path: Path) -> None:
    found = judged(tmp_path, "likert", seed=1, segments=12, judges=[panel.careful])
    bare = replace(found, campaign=found.campaign.model_copy(update={"items": tuple(
        item.model_copy(update={"references": ()}) for item in found.campaign.items
    )}))  # fmt: skip
    assert campaign_references(bare.campaign) == {}
    without = add_correlations(bare, {}, EvaluationConfig(metrics=CORRELATED_METRICS))
    assert without.correlations == {}
    assert "so there are no metrics beside the judges: give --reference" in without.notes[-1]
    noted = add_correlations(bare, {}, EvaluationConfig(), {"comet": MetricScores("", {}, {})})
    assert "so there are no other metrics beside the judges" in noted.notes[-1]
    file = tmp_path / "references"
    wanted = campaign_references(found.campaign)
    file.write_text("".join(f"{wanted[f't:{line}'][0]}\n" for line in range(1, 13)), encoding="utf-8")
    assert {name: list(texts) for name, texts in wanted.items()} == read_references(bare.campaign, file)
    file.write_text("one\n", encoding="utf-8")
    old = bare.campaign.model_copy(update={"num_lines": None})
    with pytest.raises(DataError, match="references: has 1 line, but the campaign has line 12 of t"):
        read_references(old, file)


def test_references_of_another_number_of_lines_than_the_test_set_are_refused(tmp_path: Path) -> None:
    """Also where they have every line that was drawn: they are shifted, or of another test set."""
    found = judged(tmp_path, "likert", seed=1, segments=12, judges=[panel.careful])
    num, last = found.campaign.num_lines, max(item.line for item in found.campaign.items if item.is_counted)
    assert num is not None
    for given in (num - 1, num + 1):
        (tmp_path / "references").write_text("word\n" * given, encoding="utf-8")
        with pytest.raises(DataError, match=f"has {given} lines, but the test set t has {num}"):
            read_references(found.campaign, tmp_path / "references")
    old = found.campaign.model_copy(update={"num_lines": None})
    assert old.fingerprint == found.campaign.fingerprint  # answers of campaigns from before stay theirs
    (tmp_path / "references").write_text("word\n" * last, encoding="utf-8")
    assert set(read_references(old, tmp_path / "references")) == set(campaign_references(old))
