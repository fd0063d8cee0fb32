"""The folder of a campaign: what its files tell the judges, and that none of them is taken for answers."""

from pathlib import Path

import pytest

from tests.judged import campaign, systems
from tfm.pipeline.errors import DataError
from tfm.pipeline.judging.answer_files import read_answers
from tfm.pipeline.judging.campaign import CampaignKind
from tfm.pipeline.judging.making.folder import judge_files_by_name, write_campaign_folder


@pytest.mark.parametrize("kind", ["likert", "esa", "pairwise", "best"])
@pytest.mark.parametrize("repeat_share", [0.0, 0.5])
@pytest.mark.parametrize("attention_check_share", [0.0, 0.5])
def test_judges_are_told_of_repeats_and_of_spoiled_texts_only_where_there_are_any(
    kind: CampaignKind, repeat_share: float, attention_check_share: float
) -> None:
    asked = campaign(
        kind, systems(2, 20), repeat_share=repeat_share, attention_check_share=attention_check_share, num_judges=1
    )
    files = {name: text for name, text in judge_files_by_name(asked) if not name.endswith(".csv")}
    assert len(files) == 3
    for text in files.values():
        assert ("exts are shown twice" in text) == (repeat_share > 0)
        assert ("exts are spoiled on purpose" in text) == (attention_check_share > 0)


def test_what_judges_are_given_is_not_taken_for_their_answers(tmp_path: Path) -> None:
    asked = campaign("likert", systems(2, 20))
    write_campaign_folder(asked, tmp_path / "asked")
    for name, problem in (
        ("judge-1.html", "is the page of a judge, not the answers: the page saves them as JUDGE-answers.json"),
        ("campaign.json", "holds no answers of format 1: the page saves them as JUDGE-answers.json"),
        ("pearmut.json", "holds no answers of format 1: the page saves them as JUDGE-answers.json"),
        ("judge-1.csv", "holds no answer"),
        (".", "is a folder, not a file"),
    ):
        with pytest.raises(DataError, match=problem):
            read_answers(asked, [tmp_path / "asked" / name])
