"""`tfm judge score` as a user types it: answers of a panel in, tables or JSON out; what does not fit is refused."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.user import tfm, write_lines
from tests.unit.pipeline.judging import panel
from tfm.pipeline.judging.campaign import Campaign, CampaignKind, write_campaign
from tfm.pipeline.judging.making.assembly import CampaignSpec, make_campaign

JUDGES = [panel.careful, panel.careful, panel.upside_down]


def judged(folder: Path, kind: CampaignKind, segments: int = 20) -> tuple[Campaign, list[Path]]:
    """A campaign in a folder, and what three judges sent back, of whom the last took 1 for the best mark."""
    campaign = make_campaign(
        CampaignSpec(kind, segments, len(JUDGES), judges_per_text=2, seed=4), panel.systems(segments, 4)
    )
    write_campaign(campaign, folder / "campaign.json")
    return campaign, panel.answer(campaign, JUDGES, folder, 4)


def line_of(text: str, *words: str) -> str:
    """The one line that has these words."""
    (found,) = [line for line in text.splitlines() if all(word in line for word in words)]
    return found


def test_tables_of_ratings(tmp_path: Path) -> None:
    _, files = judged(tmp_path, "esa")
    done = tfm("judge", "score", tmp_path, *files)
    assert done.code == 0, done.err
    for title in (
        "score (0 to 100)",
        "score: differences (approximate randomisation; unpaired: permutation test)",
        "errors (minor 1, major 5; lower is better)",
        "judges",
        "agreement (Krippendorff's alpha, Cohen's kappa)",
        "errors: correlation of metrics with the judges (Kendall's tau-b, Pearson's r)",
    ):
        assert f"\n{title}\n" in f"\n{done.out}"
    assert line_of(done.out, "judge-3", "24").split()[:3] == ["judge-3", "24", "24"]
    assert "METEOR exact+stem" in done.out
    assert "\nintervals of 95 % that are not given\n" in done.out
    for num in (20, 100, 200):
        assert f"segments, and it needs {num}" in done.out
    assert "warning: judge-3 seems careless: failed 2 of 2 attention checks" in done.err
    assert "correlations by system are of 3 systems" in done.err


def test_json_has_everything(tmp_path: Path) -> None:
    campaign, files = judged(tmp_path, "pairwise")
    done = tfm("judge", "score", tmp_path / "campaign.json", *files, "--json", "--without", "judge-3")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["campaign"], found["kind"], found["without"]) == (campaign.fingerprint, "pairwise", ["judge-3"])
    assert [each["judge"] for each in found["judges"]] == ["judge-1", "judge-2", "judge-3"]
    assert found["judges"][2]["seems_careless"]
    for each in (found["preferences"]["alpha"], found["preferences"]["mean_kappa"]):
        assert (each["low"], each["high"]) == (None, None), "of so few segments there is no interval"
        assert each["no_interval_reason"].endswith(" segments, and it needs 100")
    systems = found["preferences"]["systems"]
    assert {each["system"] for each in systems} == {*panel.WRONG}
    # every pair of a judge's 20 is a win and a loss, or two ties
    assert sum(each[kind] for each in systems for kind in ("won", "tied", "lost")) == 2 * 2 * 20
    assert all(test["stands"] == (test["p_holm"] < 0.05) for test in found["preferences"]["tests"])
    assert {each["metric"] for each in found["correlations"]["preference"]} >= {"bleu", "ter", "meteor"}
    assert "judge-3 is left out (--without)" in found["notes"]


@pytest.mark.parametrize("kind", ["likert", "best"])
def test_a_judge_who_stopped_early(tmp_path: Path, kind: CampaignKind) -> None:
    _, files = judged(tmp_path, kind)
    content = json.loads(files[1].read_text("utf-8"))
    files[1].write_text(json.dumps({**content, "answers": content["answers"][:7]}), encoding="utf-8")
    done = tfm("judge", "score", tmp_path, *files)
    assert done.code == 0, done.err
    assert "warning: judge-2 answered 7 of " in done.err
    assert line_of(done.out, "judge-2").split()[1] == "7"


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    _, files = judged(tmp_path, "likert")

    def refused(*words: str | Path) -> tuple[int, str]:
        done = tfm("judge", "score", *words)
        assert done.out == ""
        return done.code, done.err

    copy = tmp_path / "copy.json"
    copy.write_bytes(files[0].read_bytes())
    assert refused(tmp_path, *files, copy) == (
        65, f"{copy}: answers for judge-1, for whom {files[0]} answers too\n",
    )  # fmt: skip
    (tmp_path / "other").mkdir()
    _, others = judged(tmp_path / "other", "likert", segments=21)
    code, said = refused(tmp_path, files[0], others[1])
    assert code == 65
    assert f"{others[1]}: is of another campaign" in said
    code, said = refused(tmp_path, files[0], "--without", "judge-2")
    assert (code, said) == (2, "--without judge-2: no such judge; answers are from judge-1\n")
    assert refused(tmp_path, files[0], "--without", "judge-1")[0] == 2
    assert refused(tmp_path / "none", files[0]) == (
        65, f"{tmp_path / 'none'}: no such file; tfm judge make writes it\n",
    )  # fmt: skip
    code, said = refused(tmp_path, files[0], "--wordnet", tmp_path)
    assert code == 65
    assert str(tmp_path) in said


def without_references(campaign: Campaign, systems: Sequence[str]) -> Campaign:
    """The campaign with systems of other names, and without references."""
    names = dict(zip(campaign.systems, systems, strict=True))
    items = []
    for item in campaign.items:
        shown = tuple(
            each.model_copy(update={"system": None if each.system is None else names[each.system]})
            for each in item.shown
        )
        items.append(item.model_copy(update={"references": (), "shown": shown}))
    changed = campaign.model_copy(update={"items": tuple(items), "systems": tuple(systems)})
    return Campaign.model_validate_json(changed.model_dump_json())  # whose fingerprint is its own


def test_strange_names_and_references_of_a_file(tmp_path: Path) -> None:
    """Names are those of folders: of any script, with characters that tables and terminals take for their own."""
    (tmp_path / "first").mkdir()
    made, files = judged(tmp_path / "first", "pairwise")
    names = ["SYSTÈME > נ", "x|y\x1b[31m", "كلب يجري"]
    campaign = without_references(made, names)
    write_campaign(campaign, tmp_path / "campaign.json")
    for file in files:
        content = json.loads(file.read_text("utf-8"))
        file.write_text(json.dumps({**content, "campaign": campaign.fingerprint}), encoding="utf-8")
    done = tfm("judge", "score", tmp_path, *files)
    assert done.code == 0, done.err
    assert "the campaign has no references, so there are no metrics beside the judges: give --reference" in done.err
    assert "correlation of metrics" not in done.out
    assert "كلب يجري" in done.out
    assert "\x1b" not in done.out
    by_line = {item.line: item.references[0] for item in made.items}
    write_lines(tmp_path / "references", [by_line[line] for line in sorted(by_line)])
    done = tfm("judge", "score", tmp_path, *files, "--reference", tmp_path / "references")
    assert done.code == 0, done.err
    rows = [line for line in done.out.splitlines() if line.strip().startswith("TER ")]
    assert len(rows) == 1
    assert float(rows[0].split()[1]) > 0.3
